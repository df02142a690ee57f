//! `tracing` output: a span per connection, within its endpoint's.
//!
//! State changes are debug events, packets trace events. Whether a subscriber wants them is checked
//! when a connection begins: without one, the connection gets no observer.

use std::net::SocketAddr;

use tracing::{Level, Span, debug, debug_span, enabled, trace};
use weir_quic::observe::{Interest, Observation, Observer, Packet, Subject};
use weir_units::Time;

/// Creates the spans of an endpoint's connections.
pub(super) struct EndpointLog {
    endpoint: Span,
}

impl EndpointLog {
    pub(super) fn new(local: SocketAddr) -> Self {
        Self {
            endpoint: debug_span!("endpoint", %local),
        }
    }

    pub(super) fn observer(&self, subject: &Subject) -> Option<Box<dyn Observer>> {
        if !enabled!(Level::DEBUG) {
            return None;
        }
        let span = debug_span!(
            parent: &self.endpoint,
            "connection",
            id = %subject.original_destination,
            side = ?subject.side,
            remote = %subject.remote,
        );
        Some(Box::new(LogObserver {
            span,
            packets: enabled!(Level::TRACE),
        }))
    }
}

struct LogObserver {
    span: Span,
    packets: bool,
}

impl LogObserver {
    fn packet(&self, what: &'static str, packet: &Packet<'_>) {
        let Packet {
            level,
            number,
            size,
            path,
            ..
        } = packet;
        trace!(parent: &self.span, ?level, number, size, %path, "{what}");
    }
}

impl Observer for LogObserver {
    fn interest(&self) -> Interest {
        if self.packets {
            Interest::Everything
        } else {
            Interest::Changes
        }
    }

    fn on_event(&mut self, _: Time, event: &Observation<'_>) {
        let span = &self.span;
        match event {
            Observation::Started(_) => debug!(parent: span, "begins"),
            Observation::Phase(phase) => debug!(parent: span, ?phase, "goes on"),
            Observation::PacketSent(packet) => self.packet("sent", packet),
            Observation::PacketReceived(packet) => self.packet("received", packet),
            Observation::PacketDropped { size, reason } => {
                trace!(parent: span, size, ?reason, "dropped");
            }
            Observation::PacketLost(lost) => {
                let (space, number, cause) = (lost.space, lost.number, lost.cause);
                trace!(parent: span, ?space, number, ?cause, "lost");
            }
            Observation::Metrics(metrics) => {
                let (rtt, window, in_flight) =
                    (metrics.smoothed_rtt, metrics.window, metrics.in_flight);
                trace!(parent: span, %rtt, %window, %in_flight, "metrics");
            }
            Observation::CongestionStateUpdated { new, .. } => {
                debug!(parent: span, state = new, "congestion control");
            }
            Observation::EcnStateUpdated { new, .. } => {
                debug!(parent: span, state = ?new, "ECN");
            }
            Observation::MtuUpdated { old, new, .. } => {
                debug!(parent: span, from = old, to = new, "packet size");
            }
            Observation::KeysUpdated { phase } => debug!(parent: span, phase, "keys updated"),
            Observation::PathOpened(path) => {
                debug!(parent: span, path = %path.path, remote = %path.remote, "another path");
            }
            Observation::Path(event, _) => debug!(parent: span, "{event}"),
            Observation::Moving(decision) => debug!(parent: span, %decision, "moving"),
            Observation::Closed(error) => debug!(parent: span, reason = %error, "over"),
            _ => {}
        }
    }
}
