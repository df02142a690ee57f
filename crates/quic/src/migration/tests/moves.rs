//! Consequences of an alarm: hysteresis, restarted averages, the return; and cases without alarm.

use weir_units::{Duration, Time};

use super::super::{Cause, MigrationConfig, MigrationMonitor, PathView, Wakeup};
use super::{armed, at_ms, ms, paper, path, size_class, stream, us};
use crate::PathId;

const PTO: Duration = Duration::from_micros(650);

/// Makes sequential requests that take `time` each, all of it the network's.
struct Requests {
    monitor: MigrationMonitor,
    now: Time,
    next: u64,
}

impl Requests {
    fn new(config: MigrationConfig) -> Self {
        Self {
            monitor: armed(config),
            now: Time::ZERO,
            next: 0,
        }
    }

    fn complete_requests(&mut self, count: usize, bytes: u64, time: Duration) {
        for _ in 0..count {
            let (id, path) = (stream(self.next), self.monitor.current());
            self.next += 1;
            self.monitor.on_stream_opened(self.now, id);
            self.monitor.on_packet_sent(self.now, path);
            self.monitor.on_request_sent(self.now, id);
            self.now += time;
            self.monitor.on_packet_received(self.now, path);
            self.monitor.on_rtt_sample(self.now, path, time, PTO);
            self.monitor.on_response(self.now, id);
            self.monitor.on_fin(self.now, id, bytes, 0);
            self.monitor.on_stream_finished(self.now, id);
        }
    }

    /// Sends a request without an answer, until the monitor wants a decision.
    fn interrupt(&mut self) {
        let (id, path) = (stream(self.next), self.monitor.current());
        self.next += 1;
        self.monitor.on_stream_opened(self.now, id);
        self.monitor.on_packet_sent(self.now, path);
        self.monitor.on_request_sent(self.now, id);
        while !self.monitor.wants_decision() {
            self.now = self.monitor.timeout().unwrap();
            assert_eq!(self.monitor.handle_timeout(self.now), Wakeup::Nothing);
        }
        self.monitor.on_stream_abandoned(id);
    }
}

fn both() -> [PathView; 2] {
    [path(0, us(100)), path(1, us(100))]
}

#[test]
fn smaller_tasks_alone_move_the_papers_detector_only() {
    for (config, moves) in [(paper(), true), (size_class(), false)] {
        let mut requests = Requests::new(config);
        requests.complete_requests(60, 100_000, us(1_000));
        assert!(!requests.monitor.wants_decision());
        requests.complete_requests(12, 100, us(100));
        assert_eq!(requests.monitor.wants_decision(), moves);
        let decision = requests.monitor.decide(requests.now, &both());
        assert_eq!(decision.is_some(), moves);
        if let Some(decision) = decision {
            let Cause::Equation4(figures) = decision.cause else {
                panic!("{decision}");
            };
            assert!(figures.ratio > 2.0 && figures.short_term > figures.long_term);
        }
    }
}

#[test]
fn two_moves_are_never_within_the_hysteresis_interval() {
    let mut requests = Requests::new(size_class());
    requests.complete_requests(20, 1000, us(100));
    requests.interrupt();
    let first = requests.monitor.decide(requests.now, &both()).unwrap();
    requests.monitor.on_moved(requests.now, first.to, Some(PTO));
    assert_eq!(requests.monitor.current(), PathId(1));
    requests.complete_requests(20, 1000, us(100));
    // The new path fails at once: the decision is deferred, then requested without a new event.
    requests.interrupt();
    let second = requests.monitor.decide(requests.now, &both()).unwrap();
    assert_eq!((second.from, second.to), (PathId(1), PathId(0)));
    assert_eq!(second.at, first.at + Duration::from_secs(1));
}

#[test]
fn a_decision_that_is_not_applied_is_retried() {
    let mut requests = Requests::new(size_class());
    requests.complete_requests(20, 1000, us(100));
    requests.interrupt();
    let first = requests.monitor.decide(requests.now, &both()).unwrap();
    assert!(requests.monitor.decide(requests.now, &both()).is_none());
    assert_eq!(
        requests.monitor.timeout(),
        Some(first.at + Duration::from_secs(1))
    );
}

#[test]
fn an_alarm_without_a_valid_path_waits_for_validation() {
    let mut requests = Requests::new(size_class());
    requests.complete_requests(20, 1000, us(100));
    requests.interrupt();
    let unvalidated = PathView {
        validated: false,
        ..path(1, us(100))
    };
    let now = requests.now;
    assert!(
        requests
            .monitor
            .decide(now, &[path(0, us(100)), unvalidated])
            .is_none()
    );
    assert!(!requests.monitor.wants_decision());
    assert_eq!(requests.monitor.timeout(), None);
    requests.monitor.on_path_validated(now, PathId(1));
    assert!(requests.monitor.wants_decision());
    assert!(requests.monitor.decide(now, &both()).is_some());
}

#[test]
fn the_baseline_restarts_after_a_move() {
    for config in [size_class(), paper()] {
        let mut requests = Requests::new(config);
        requests.complete_requests(100, 1000, us(100));
        requests
            .monitor
            .on_moved(requests.now, PathId(1), Some(ms(90)));
        requests.complete_requests(200, 1000, ms(60));
        assert!(!requests.monitor.wants_decision());
    }
}

#[test]
fn the_connection_does_not_move_when_all_paths_are_slow() {
    let mut requests = Requests::new(size_class());
    requests.complete_requests(100, 1000, ms(10));
    requests.complete_requests(5, 1000, ms(60));
    assert!(requests.monitor.wants_decision());
    let slow = [path(0, ms(60)), path(1, ms(55))];
    assert!(requests.monitor.decide(requests.now, &slow).is_none());
    requests.complete_requests(1, 1000, ms(60));
    let better = [path(0, ms(60)), path(1, ms(12))];
    let decision = requests.monitor.decide(requests.now, &better).unwrap();
    assert_eq!(decision.cause.name(), "round-trips");
    assert_eq!(
        (decision.from_rtt, decision.to_rtt),
        (Some(ms(60)), Some(ms(12)))
    );
}

#[test]
fn slow_streams_alone_trigger_a_decision_under_loss() {
    let mut monitor = armed(size_class());
    let mut now = Time::ZERO;
    let mut download = |monitor: &mut MigrationMonitor, index, time| {
        let id = stream(index);
        monitor.on_stream_opened(now, id);
        monitor.on_packet_sent(now, PathId::FIRST);
        monitor.on_request_sent(now, id);
        now += us(100);
        monitor.on_packet_received(now, PathId::FIRST);
        monitor.on_rtt_sample(now, PathId::FIRST, us(100), PTO);
        monitor.on_response(now, id);
        now += time;
        monitor.on_packet_received(now, PathId::FIRST);
        monitor.on_fin(now, id, 1_000_000, 0);
        monitor.on_stream_finished(now, id);
        now
    };
    for index in 0..55 {
        let time = if index < 50 { ms(1) } else { ms(8) };
        download(&mut monitor, index, time);
    }
    assert!(!monitor.wants_decision(), "five of ten");
    let now = download(&mut monitor, 55, ms(8));
    assert!(monitor.wants_decision());
    let lossy = PathView {
        loss: 0.05,
        ..path(0, us(100))
    };
    let decision = monitor.decide(now, &[lossy, path(1, us(100))]).unwrap();
    let Cause::Streams(figures) = decision.cause else {
        panic!("{decision}");
    };
    assert_eq!((figures.slow, figures.of), (6, 10));
    assert_eq!(figures.short_term, us(8_100));
}

#[test]
fn the_connection_returns_to_the_preferred_path() {
    let mut monitor = armed(MigrationConfig {
        return_after: Some(Duration::from_secs(8)),
        ..size_class()
    });
    monitor.on_moved(Time::ZERO, PathId(1), Some(PTO));
    let decision = loop {
        let now = monitor.timeout().unwrap();
        assert_eq!(monitor.handle_timeout(now), Wakeup::Nothing);
        assert!(monitor.wants_decision());
        if let Some(decision) = monitor.decide(now, &both()) {
            break decision;
        }
    };
    assert_eq!((decision.to, decision.at), (PathId(0), at_ms(9_000)));
    assert_eq!(decision.cause.name(), "return");
    monitor.on_moved(decision.at, PathId(0), Some(PTO));
}

#[test]
fn the_monitor_is_inactive_without_a_standby_path() {
    let off = MigrationConfig {
        proactive: false,
        ..size_class()
    };
    for mut monitor in [
        MigrationMonitor::new(size_class(), Time::ZERO, PathId::FIRST).unwrap(),
        armed(off),
    ] {
        assert!(!monitor.is_armed());
        monitor.on_rtt_sample(Time::ZERO, PathId::FIRST, us(100), PTO);
        monitor.on_stream_opened(Time::ZERO, stream(0));
        monitor.on_request_sent(Time::ZERO, stream(0));
        monitor.on_packet_sent(Time::ZERO, PathId::FIRST);
        (0..9).for_each(|_| monitor.on_probe_timeout(at_ms(1), PathId::FIRST, PTO));
        assert_eq!((monitor.timeout(), monitor.memory()), (None, (0, 0)));
        assert!(!monitor.wants_decision() && monitor.decide(at_ms(2), &both()).is_none());
    }
}
