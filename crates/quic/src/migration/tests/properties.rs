//! Arbitrary events in arbitrary order.

use proptest::prelude::*;
use weir_units::{Duration, Time};

use super::super::{Detector, MigrationConfig, MigrationMonitor, PathView, Wakeup};
use super::stream;
use crate::PathId;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Wait(u64),
    UntilTimeout,
    Standby(bool),
    Open(u64),
    Request(u64),
    Response(u64),
    Fin(u64, u64, u64),
    Finished(u64),
    Abandoned(u64),
    Rtt(PathId, u64, u64),
    Sent(PathId),
    Received(PathId),
    ProbeTimeout(PathId, u64),
    Validated(PathId),
    Failed(PathId),
    Moved(PathId, Option<u64>),
    /// Complete sequential requests: count, bytes, time each.
    Requests(u8, u64, u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let id = || prop_oneof![0..20u64, any::<u64>().prop_map(|id| id >> 2)];
    let path = || (0..4u32).prop_map(PathId);
    let span = || prop_oneof![3 => 0..200_000u64, 3 => 0..2_000_000_000u64, 1 => any::<u64>()];
    prop_oneof![
        2 => (0..3_000_000u64).prop_map(Wait),
        6 => Just(UntilTimeout),
        1 => prop::bool::weighted(0.8).prop_map(Standby),
        2 => id().prop_map(Open),
        2 => id().prop_map(Request),
        2 => id().prop_map(Response),
        2 => (id(), any::<u64>(), any::<u64>()).prop_map(|(id, offset, length)| Fin(id, offset, length)),
        2 => id().prop_map(Finished),
        1 => id().prop_map(Abandoned),
        3 => (path(), span(), span()).prop_map(|(path, rtt, pto)| Rtt(path, rtt, pto)),
        4 => path().prop_map(Sent),
        2 => path().prop_map(Received),
        4 => (path(), span()).prop_map(|(path, pto)| ProbeTimeout(path, pto)),
        1 => path().prop_map(Validated),
        1 => path().prop_map(Failed),
        1 => (path(), prop::option::of(span())).prop_map(|(path, pto)| Moved(path, pto)),
        4 => (any::<u8>(), 0..1_000_000u64, 0..50_000_000u64)
            .prop_map(|(count, bytes, nanos)| Requests(count, bytes, nanos)),
    ]
}

fn view() -> impl Strategy<Value = PathView> {
    (
        0..4u32,
        any::<bool>(),
        any::<bool>(),
        prop::option::of(any::<u64>()),
        any::<f64>(),
    )
        .prop_map(|(id, validated, preferred, rtt, loss)| PathView {
            id: PathId(id),
            validated,
            preferred,
            rtt: rtt.map(Duration::from_nanos),
            loss,
        })
}

fn config() -> impl Strategy<Value = MigrationConfig> {
    let detector = prop::sample::select(&Detector::NAMES[..]);
    let returns = prop::option::of(1..2_000_000_000u64);
    (detector, 2..5u32, 1..2_000_000_000u64, returns).prop_map(
        |(detector, probe_timeouts, hysteresis, return_after)| MigrationConfig {
            detector: detector.parse().unwrap_or_default(),
            probe_timeouts,
            hysteresis: Duration::from_nanos(hysteresis),
            return_after: return_after.map(Duration::from_nanos),
            ..MigrationConfig::default()
        },
    )
}

/// A monitor under test, its time, and when it last moved.
struct Subject {
    monitor: MigrationMonitor,
    now: Time,
    last_move: Option<Time>,
    next_stream: u64,
}

impl Subject {
    fn apply(&mut self, operation: Operation) {
        let (monitor, now) = (&mut self.monitor, self.now);
        let nanos = Duration::from_nanos;
        match operation {
            Operation::Wait(span) => self.now += nanos(span),
            Operation::UntilTimeout => self.pass_timeout(),
            Operation::Standby(standby) => monitor.set_standby(now, standby),
            Operation::Open(id) => monitor.on_stream_opened(now, stream(id)),
            Operation::Request(id) => monitor.on_request_sent(now, stream(id)),
            Operation::Response(id) => monitor.on_response(now, stream(id)),
            Operation::Fin(id, offset, length) => monitor.on_fin(now, stream(id), offset, length),
            Operation::Finished(id) => monitor.on_stream_finished(now, stream(id)),
            Operation::Abandoned(id) => monitor.on_stream_abandoned(stream(id)),
            Operation::Rtt(path, rtt, pto) => {
                monitor.on_rtt_sample(now, path, nanos(rtt), nanos(pto));
            }
            Operation::Sent(path) => monitor.on_packet_sent(now, path),
            Operation::Received(path) => monitor.on_packet_received(now, path),
            Operation::ProbeTimeout(path, pto) => monitor.on_probe_timeout(now, path, nanos(pto)),
            Operation::Validated(path) => monitor.on_path_validated(now, path),
            Operation::Failed(path) => monitor.on_path_failed(path),
            Operation::Moved(to, pto) => {
                monitor.on_moved(now, to, pto.map(nanos));
                self.last_move = Some(now);
            }
            Operation::Requests(count, bytes, span) => {
                (0..count).for_each(|_| self.request(bytes, nanos(span)));
            }
        }
    }

    fn request(&mut self, bytes: u64, span: Duration) {
        let (id, path) = (stream(1 << 30 | self.next_stream), self.monitor.current());
        self.next_stream += 1;
        self.monitor.on_stream_opened(self.now, id);
        self.monitor.on_request_sent(self.now, id);
        self.now += span;
        self.monitor.on_rtt_sample(self.now, path, span, span * 2);
        self.monitor.on_response(self.now, id);
        self.monitor.on_fin(self.now, id, bytes, 0);
        self.monitor.on_stream_finished(self.now, id);
    }

    /// Advances to the next timeout. It must make progress: a timer that stays due is a busy loop.
    fn pass_timeout(&mut self) {
        // Skip timers centuries away: the end of time must stay out of reach.
        let Some(at) = self
            .monitor
            .timeout()
            .filter(|at| at.as_nanos() < u64::MAX / 2)
        else {
            return;
        };
        self.now = self.now.max(at);
        for _ in 0..4 {
            if self.monitor.handle_timeout(self.now) == Wakeup::SendPing {
                let path = self.monitor.current();
                self.monitor.on_packet_sent(self.now, path);
            }
            if self.monitor.timeout().is_none_or(|at| at > self.now) {
                return;
            }
        }
        panic!("a timer stays due: {:?}", self.monitor);
    }

    fn decide(&mut self, paths: &[PathView], obedient: bool) -> Result<(), TestCaseError> {
        if !self.monitor.wants_decision() {
            return Ok(());
        }
        let hysteresis = self.monitor.config().hysteresis;
        let from = self.monitor.current();
        let Some(decision) = self.monitor.decide(self.now, paths) else {
            return Ok(());
        };
        prop_assert!(
            paths
                .iter()
                .any(|path| path.id == decision.to && path.validated)
        );
        prop_assert_eq!(decision.from, from);
        prop_assert_ne!(decision.to, from);
        if let Some(last) = self.last_move {
            prop_assert!(self.now - last >= hysteresis, "{} after {}", self.now, last);
        }
        prop_assert!(!decision.to_string().is_empty());
        self.last_move = Some(self.now);
        if obedient {
            self.monitor.on_moved(self.now, decision.to, None);
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn moves_obey_the_rules_and_memory_is_bounded(
        config in config(),
        steps in prop::collection::vec(
            (operation(), prop::collection::vec(view(), 0..5), any::<bool>()),
            0..300,
        ),
    ) {
        let mut monitor = MigrationMonitor::new(config, Time::ZERO, PathId::FIRST).unwrap();
        monitor.set_standby(Time::ZERO, true);
        let mut subject = Subject {
            monitor,
            now: Time::ZERO,
            last_move: None,
            next_stream: 0,
        };
        for (operation, paths, obedient) in steps {
            subject.apply(operation);
            subject.decide(&paths, obedient)?;
            let (streams, times) = subject.monitor.memory();
            prop_assert!(streams <= 512 && times <= 51);
        }
    }
}
