//! Observers of an endpoint's connections: qlog files, metrics and `tracing`, each on request.
//!
//! The engine reports events to one observer per connection; if none of the three is requested
//! there is none.

mod log;
#[cfg_attr(not(feature = "metrics"), path = "no_metrics.rs")]
mod metrics;
mod qlog;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_quic::observe::{Interest, Observation, Observer, Observers, Subject};
use weir_units::{Duration, Time};

use crate::dcquic::Shared;
use crate::error::EndpointError;
use crate::lost_events::LostEvents;
use log::EndpointLog;
use metrics::EndpointMetrics;
pub(crate) use metrics::Registry;
#[cfg(feature = "metrics")]
pub use metrics::register_metrics;
use qlog::QlogWriter;

/// The requested observers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObserverOptions {
    /// The directory of qlog files; `QLOGDIR` by default.
    pub(crate) qlog: Option<PathBuf>,
    pub(crate) metrics: Option<Registry>,
}

/// Observes all connections of an endpoint.
pub(crate) struct EndpointObservers {
    log: EndpointLog,
    qlog: Option<QlogWriter>,
    metrics: Option<Arc<EndpointMetrics>>,
}

impl EndpointObservers {
    /// # Errors
    /// [`EndpointError::Qlog`] where files cannot be written.
    pub(crate) fn new(
        wishes: ObserverOptions,
        local: SocketAddr,
        epoch: Duration,
    ) -> Result<Self, EndpointError> {
        let from_environment = || std::env::var_os("QLOGDIR").filter(|name| !name.is_empty());
        let directory = wishes
            .qlog
            .or_else(|| from_environment().map(PathBuf::from));
        let open = |directory: &Path| {
            QlogWriter::open(directory, epoch).map_err(|source| EndpointError::Qlog {
                directory: directory.to_owned(),
                source,
            })
        };
        Ok(Self {
            log: EndpointLog::new(local),
            qlog: directory.as_deref().map(open).transpose()?,
            metrics: wishes
                .metrics
                .map(|registry| EndpointMetrics::register(&registry, local)),
        })
    }

    /// Returns the counter of events missing from qlog files.
    pub(crate) fn lost_events(&self) -> Option<Arc<LostEvents>> {
        self.qlog.as_ref().map(QlogWriter::lost_events)
    }

    /// Updates the endpoint's own counters before each scrape.
    pub(crate) fn connect(&self, registry: Option<&Registry>, shared: &Arc<Shared>) {
        if let (Some(metrics), Some(registry)) = (&self.metrics, registry) {
            metrics.follow(registry, shared);
        }
    }
}

impl Observers for EndpointObservers {
    fn observe(&self, subject: &Subject) -> Option<Box<dyn Observer>> {
        let qlog = self.qlog.as_ref().map(|writer| writer.observer(subject));
        let metrics = self.metrics.as_ref().map(EndpointMetrics::observer);
        let log = self.log.observer(subject);
        let mut all: Vec<_> = [qlog, metrics, log].into_iter().flatten().collect();
        match all.len() {
            0 | 1 => all.pop(),
            _ => Some(Box::new(ObserverList(all))),
        }
    }
}

/// Several observers of one connection.
struct ObserverList(Vec<Box<dyn Observer>>);

impl Observer for ObserverList {
    fn interest(&self) -> Interest {
        let mut interests = self.0.iter().map(|observer| observer.interest());
        if interests.any(|interest| interest == Interest::Everything) {
            Interest::Everything
        } else {
            Interest::Changes
        }
    }

    fn on_event(&mut self, now: Time, event: &Observation<'_>) {
        for observer in &mut self.0 {
            observer.on_event(now, event);
        }
    }
}
