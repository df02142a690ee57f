//! Converts a connection's events to records.

use serde::Serialize;
use weir_quic::observe::{Observation, Observer, Phase, Subject};
use weir_quic::{PathId, Side};
use weir_units::{Duration, Time};

use crate::connection::{
    ConnectionClosed, ConnectionStarted, MigrationDecided, MigrationState, MtuUpdated,
    ParametersSet, StateUpdated, TupleAssigned, initiator,
};
use crate::packet::{PacketData, PacketDropped, PacketLost};
use crate::record::{Header, Record, tuple};
use crate::recovery::{KeyUpdated, MetricsUpdated, ValueUpdated, ecn_state};
use crate::sink::{Batch, Sink};

/// Precedes each record (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
/// Records are flushed to the sink when they have this many bytes …
const FULL: usize = 16 * 1024;
/// … or at the first event when the oldest is this old.
const OLD: Duration = Duration::from_millis(100);

/// Records the events of one connection. Remaining records go to the sink on drop.
pub struct Recorder<S: Sink> {
    sink: S,
    /// Wall-clock time of [`Time::ZERO`], since 1970.
    epoch: Duration,
    side: Side,
    began: Time,
    records: Vec<u8>,
    events: u64,
    /// When the oldest record in `records` was written.
    oldest: Time,
    metrics: (PathId, MetricsUpdated),
    /// ACK delay exponents of this side and of the peer.
    exponents: [u8; 2],
}

impl<S: Sink> Recorder<S> {
    /// Creates a recorder for a connection. `epoch` is the wall-clock time of [`Time::ZERO`], since
    /// 1970.
    pub fn new(subject: &Subject, epoch: Duration, sink: S) -> Self {
        Self {
            sink,
            epoch,
            side: subject.side,
            began: Time::ZERO,
            records: Vec::new(),
            events: 0,
            oldest: Time::ZERO,
            metrics: (PathId::FIRST, MetricsUpdated::default()),
            exponents: [3; 2],
        }
    }

    fn begin(&mut self, now: Time, subject: &Subject) {
        self.began = now;
        self.oldest = now;
        let began = self.epoch + now.since(Time::ZERO);
        self.append(&Header::new(subject, began));
        self.event(
            now,
            "quic:connection_started",
            None,
            ConnectionStarted::new(subject),
        );
        let attempted = StateUpdated::ATTEMPTED;
        self.event(now, "quic:connection_state_updated", None, attempted);
    }

    /// Writes an event on a path; `None` is the handshake's path.
    fn event(&mut self, now: Time, name: &'static str, path: Option<PathId>, data: impl Serialize) {
        self.append(&Record {
            time: now.since(self.began).as_nanos() as f64 / 1e6,
            name,
            tuple: path.and_then(tuple),
            data,
        });
        self.events += 1;
    }

    fn append(&mut self, record: &impl Serialize) {
        let begin = self.records.len();
        self.records.push(RECORD_SEPARATOR);
        // The types have no maps with keys that are not text, and writing to memory does not fail.
        match serde_json::to_writer(&mut self.records, record) {
            Ok(()) => self.records.push(b'\n'),
            Err(_) => self.records.truncate(begin),
        }
    }

    fn metrics(&mut self, now: Time, path: PathId, is: MetricsUpdated) {
        let (known, was) = &self.metrics;
        let changes = if *known == path {
            is.since(was)
        } else {
            Some(is)
        };
        if let Some(changes) = changes {
            self.event(now, "quic:recovery_metrics_updated", Some(path), changes);
        }
        self.metrics = (path, is);
    }

    fn flush(&mut self) {
        if self.records.is_empty() {
            return;
        }
        let room = Vec::with_capacity(FULL + FULL / 8);
        let batch = Batch {
            records: std::mem::replace(&mut self.records, room),
            events: std::mem::take(&mut self.events),
        };
        self.sink.write(batch);
    }
}

impl<S: Sink> Observer for Recorder<S> {
    fn on_event(&mut self, now: Time, event: &Observation<'_>) {
        if self.records.is_empty() {
            self.oldest = now;
        }
        let mut urgent = false;
        match event {
            Observation::Started(subject) => self.begin(now, subject),
            Observation::ParametersSet { by, parameters } => {
                let initiator = initiator(*by, self.side);
                self.exponents[usize::from(*by != self.side)] = parameters.ack_delay_exponent;
                let data = ParametersSet {
                    initiator,
                    parameters,
                };
                self.event(now, "quic:parameters_set", None, data);
            }
            Observation::Phase(phase) => {
                let data = StateUpdated::new(*phase);
                self.event(now, "quic:connection_state_updated", None, data);
                urgent = !matches!(phase, Phase::HandshakeComplete);
            }
            Observation::PacketSent(packet) => {
                let data = PacketData::new(packet, self.exponents[0]);
                self.event(now, "quic:packet_sent", Some(packet.path), data);
            }
            Observation::PacketReceived(packet) => {
                let data = PacketData::new(packet, self.exponents[1]);
                self.event(now, "quic:packet_received", Some(packet.path), data);
            }
            Observation::PacketDropped { size, reason } => {
                let data = PacketDropped::new(*size, *reason);
                self.event(now, "quic:packet_dropped", None, data);
            }
            Observation::PacketLost(lost) => {
                let data = PacketLost::new(lost);
                self.event(now, "quic:packet_lost", Some(lost.path), data);
            }
            Observation::Metrics(metrics) => {
                self.metrics(now, metrics.path, MetricsUpdated::new(metrics));
            }
            Observation::CongestionStateUpdated { path, old, new } => {
                let data = ValueUpdated { old: *old, new };
                self.event(now, "quic:congestion_state_updated", Some(*path), data);
            }
            Observation::EcnStateUpdated { path, old, new } => {
                if let Some(new) = ecn_state(*new) {
                    let old = old.and_then(ecn_state);
                    let data = ValueUpdated { old, new };
                    self.event(now, "quic:ecn_state_updated", Some(*path), data);
                }
            }
            Observation::MtuUpdated {
                path,
                old,
                new,
                done,
            } => {
                let (old, new, done) = (*old, *new, *done);
                let data = MtuUpdated { old, new, done };
                self.event(now, "quic:mtu_updated", Some(*path), data);
            }
            Observation::KeysUpdated { phase } => {
                for key_type in ["client_1rtt_secret", "server_1rtt_secret"] {
                    let key_phase = *phase;
                    let data = KeyUpdated {
                        key_type,
                        key_phase,
                    };
                    self.event(now, "quic:key_updated", None, data);
                }
            }
            Observation::PathOpened(path) => {
                self.event(now, "quic:tuple_assigned", None, TupleAssigned::new(path));
            }
            Observation::Path(event, path) => {
                match MigrationState::new(*event, path) {
                    Some(data) => {
                        self.event(now, "quic:migration_state_updated", None, data);
                    }
                    None => self.event(now, "quic:tuple_assigned", None, TupleAssigned::gone(path)),
                }
                urgent = true;
            }
            Observation::Moving(decision) => {
                self.event(
                    now,
                    "weir:migration_decided",
                    None,
                    MigrationDecided(decision),
                );
            }
            Observation::Closed(error) => {
                self.event(
                    now,
                    "quic:connection_closed",
                    None,
                    ConnectionClosed::new(error),
                );
            }
            // Events that this version does not know.
            _ => {}
        }
        if urgent || self.records.len() >= FULL || now.since(self.oldest) >= OLD {
            self.flush();
        }
    }
}

impl<S: Sink> Drop for Recorder<S> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<S: Sink> std::fmt::Debug for Recorder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("side", &self.side)
            .field("waiting", &self.records.len())
            .finish_non_exhaustive()
    }
}
