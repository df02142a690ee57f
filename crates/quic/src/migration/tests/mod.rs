//! Tests of the whole monitor: with a model of a client with one path and one standby path, and
//! with arbitrary events.

mod detection;
mod false_alarms;
mod model;
mod moves;
mod properties;

use weir_units::{Duration, Time};

use super::{
    Detector, MigrationConfig, MigrationMonitor, PaperParameters, PathView, SizeClassParameters,
};
use crate::{Direction, PathId, Side, StreamId};

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at_ms(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

fn stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

fn path(id: u32, rtt: Duration) -> PathView {
    PathView {
        id: PathId(id),
        validated: true,
        preferred: id == 0,
        rtt: Some(rtt),
        loss: 0.0,
    }
}

fn paper() -> MigrationConfig {
    MigrationConfig {
        detector: Detector::Paper(PaperParameters::default()),
        ..MigrationConfig::default()
    }
}

fn size_class() -> MigrationConfig {
    MigrationConfig {
        detector: Detector::SizeClass(SizeClassParameters::default()),
        ..MigrationConfig::default()
    }
}

/// Creates a monitor on path 0, with a standby path.
fn armed(config: MigrationConfig) -> MigrationMonitor {
    let mut monitor = MigrationMonitor::new(config, Time::ZERO, PathId::FIRST).unwrap();
    monitor.set_standby(Time::ZERO, true);
    monitor
}
