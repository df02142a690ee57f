//! Reports a connection's events and state to its observer, if there is one.

use weir_units::{ByteSize, Time};

use super::Connection;
use super::close::LifeCycle;
use crate::PathId;
use crate::observe::{
    DropReason, EcnValidation, Interest, LostPacket, Metrics, Observation, Observer, Packet,
    PathAddresses, Phase, Subject, Totals,
};
use crate::path::{MtuPhase, Path};
use crate::transport_parameters::TransportParameters;

/// An observer, and the state reported to it so far.
pub(crate) struct StateReporter {
    subject: Subject,
    observer: Box<dyn Observer>,
    wants_packets: bool,
    /// Our transport parameters, until they are reported.
    parameters: Option<Box<TransportParameters>>,
    last_reported: LastReported,
}

/// The state that was reported last.
#[derive(Default)]
struct LastReported {
    handshake_complete: bool,
    handshake_confirmed: bool,
    end: Option<Phase>,
    key_phase: u64,
    mtu: Option<(PathId, usize, bool)>,
    ecn: Option<(PathId, EcnValidation)>,
    congestion: Option<(PathId, &'static str)>,
    metrics: Option<Metrics>,
}

impl StateReporter {
    pub(crate) fn new(
        subject: Subject,
        observer: Box<dyn Observer>,
        parameters: TransportParameters,
    ) -> Self {
        Self {
            subject,
            wants_packets: observer.interest() == Interest::Everything,
            observer,
            parameters: Some(Box::new(parameters)),
            last_reported: LastReported::default(),
        }
    }

    /// Whether the start of the connection has been reported.
    fn has_started(&self) -> bool {
        self.parameters.is_none()
    }

    /// Reports the start of the connection, once.
    pub(super) fn start(&mut self, now: Time) {
        let Some(parameters) = self.parameters.take() else {
            return;
        };
        let by = self.subject.side;
        self.observer
            .on_event(now, &Observation::Started(&self.subject));
        let parameters = &parameters;
        self.observer
            .on_event(now, &Observation::ParametersSet { by, parameters });
    }

    /// Reports an event. Events before the start are not reported: they may not come from the peer.
    fn emit(&mut self, now: Time, event: &Observation<'_>) {
        if self.has_started() {
            self.observer.on_event(now, event);
        }
    }

    /// Reports a packet that is about to be sealed.
    pub(super) fn packet_sent(&mut self, now: Time, packet: Packet<'_>) {
        if self.wants_packets {
            self.emit(now, &Observation::PacketSent(packet));
        }
    }

    /// Reports an authentic packet.
    pub(super) fn packet_received(&mut self, now: Time, packet: Packet<'_>) {
        self.start(now);
        if self.wants_packets {
            self.emit(now, &Observation::PacketReceived(packet));
        }
    }

    /// Reports a packet of ours that was declared lost.
    pub(super) fn packet_lost(&mut self, now: Time, lost: &LostPacket) {
        if self.wants_packets {
            self.emit(now, &Observation::PacketLost(*lost));
        }
    }

    /// Reports the differences from the last report.
    fn emit_changes(&mut self, now: Time, is: &LastReported) {
        let was = std::mem::take(&mut self.last_reported);
        if is.handshake_complete && !was.handshake_complete {
            self.emit(now, &Observation::Phase(Phase::HandshakeComplete));
        }
        if is.handshake_confirmed && !was.handshake_confirmed {
            self.emit(now, &Observation::Phase(Phase::HandshakeConfirmed));
        }
        for phase in was.key_phase + 1..=is.key_phase {
            self.emit(now, &Observation::KeysUpdated { phase });
        }
        if let (Some((path, new, done)), old) = (is.mtu, was.mtu)
            && is.mtu != old
        {
            let old = old.map_or(new, |(_, size, _)| size);
            let event = Observation::MtuUpdated {
                path,
                old,
                new,
                done,
            };
            self.emit(now, &event);
        }
        if let (Some((path, new)), old) = (is.ecn, was.ecn)
            && is.ecn != old
        {
            let old = old.filter(|old| old.0 == path).map(|(_, old)| old);
            self.emit(now, &Observation::EcnStateUpdated { path, old, new });
        }
        if let (Some((path, new)), old) = (is.congestion, was.congestion)
            && is.congestion != old
        {
            let old = old.filter(|old| old.0 == path).map(|(_, old)| old);
            self.emit(now, &Observation::CongestionStateUpdated { path, old, new });
        }
        if let Some(metrics) = &is.metrics
            && was.metrics.as_ref() != Some(metrics)
        {
            self.emit(now, &Observation::Metrics(metrics));
        }
        if let Some(end) = is.end
            && was.end != Some(end)
        {
            self.emit(now, &Observation::Phase(end));
        }
    }
}

impl Connection {
    /// Reports an event to the observer, if there is one.
    pub(super) fn report(&mut self, now: Time, event: &Observation<'_>) {
        if let Some(reporter) = &mut self.reporter {
            reporter.emit(now, event);
        }
    }

    /// Counts and reports a dropped packet.
    #[cold]
    pub(super) fn drop_packet(&mut self, now: Time, size: usize, reason: DropReason) {
        self.counters.packets_dropped += 1;
        if let Some(reporter) = &mut self.reporter
            && reporter.wants_packets
        {
            reporter.emit(now, &Observation::PacketDropped { size, reason });
        }
    }

    /// Reports the changes since the last call.
    #[inline]
    pub(super) fn report_changes(&mut self, now: Time) {
        if self.reporter.is_some() {
            self.report_observed_changes(now);
        }
    }

    #[inline(never)]
    fn report_observed_changes(&mut self, now: Time) {
        let is = self.current_state();
        if let Some(reporter) = &mut self.reporter
            && reporter.has_started()
        {
            reporter.emit_changes(now, &is);
            reporter.last_reported = is;
        }
    }

    fn current_state(&self) -> LastReported {
        let path = &self.paths[0];
        let done = path.discovery.phase == MtuPhase::SearchComplete;
        LastReported {
            handshake_complete: self.handshake.complete,
            handshake_confirmed: self.handshake.confirmed,
            end: match self.state {
                LifeCycle::Open => None,
                LifeCycle::Closing { .. } => Some(Phase::Closing),
                LifeCycle::Closed => Some(Phase::Drained),
            },
            key_phase: self.keys.update_count(),
            mtu: Some((path.id, path.mtu, done)),
            ecn: Some((path.id, path.ecn.phase.into())),
            congestion: Some((path.id, path.controller.snapshot().phase)),
            metrics: Some(self.metrics()),
        }
    }

    fn metrics(&self) -> Metrics {
        let path = &self.paths[0];
        Metrics {
            path: path.id,
            min_rtt: path.rtt.has_sample().then_some(path.rtt.min),
            smoothed_rtt: path.rtt.smoothed,
            latest_rtt: path.rtt.latest,
            rtt_variation: path.rtt.variation,
            rtt_samples: path.rtt.samples,
            pto_count: self.recovery.pto_count,
            window: path.window(),
            in_flight: ByteSize::from_bytes(path.in_flight),
            pacing_rate: path.controller.pacing_rate(),
            controller: path.controller.snapshot(),
            totals: self.totals(),
        }
    }

    /// Returns the sums over current and closed paths.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.counters.left;
        totals.packets_dropped = self.counters.packets_dropped;
        totals.bytes_retransmitted = ByteSize::from_bytes(self.counters.retransmitted);
        self.paths.iter().for_each(|path| totals.add(path));
        totals
    }
}

impl Totals {
    /// Adds the counters of a path.
    pub(super) fn add(&mut self, path: &Path) {
        let stats = &path.stats;
        self.datagrams_sent += stats.datagrams_sent;
        self.datagrams_received += stats.datagrams_received;
        self.bytes_sent += ByteSize::from_bytes(path.sent);
        self.bytes_received += ByteSize::from_bytes(path.received);
        self.packets_sent += stats.packets_sent;
        self.packets_received += stats.packets_received;
        self.packets_lost += stats.packets_lost;
        self.spurious_losses += stats.spurious_losses;
        self.bytes_lost += ByteSize::from_bytes(stats.bytes_lost);
        self.ce_marks += stats.ce_marks;
        self.congestion_events += stats.congestion_events;
        self.probe_timeouts += stats.probe_timeouts;
        self.black_holes += path.discovery.stats.black_holes;
    }
}

impl Path {
    /// Returns the addresses of the path.
    pub(super) fn addresses(&self) -> PathAddresses {
        PathAddresses {
            path: self.id,
            local: self.local,
            remote: self.remote,
        }
    }
}
