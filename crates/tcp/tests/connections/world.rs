//! Two ends of a connection and a link in each direction, in virtual time.

use std::sync::Arc;

use weir_congestion::{AlgorithmSpec, Context, Controller};
use weir_fabric::{EgressPort, FaultSettings, Faults, Link, Packet, Queue, Rule};
use weir_tcp::{Config, Connection};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;
use weir_wire::tcp::{Segment, Sequence};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) segment: Segment,
    pub(crate) ecn: Ecn,
}

impl Packet for Datagram {
    fn length(&self) -> ByteSize {
        self.segment.header_length() + ByteSize::from_bytes(20 + u64::from(self.segment.payload))
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

/// One direction of the path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) rules: Vec<Rule>,
    pub(crate) faults: FaultSettings,
    pub(crate) seed: u64,
}

impl Default for Path {
    /// A round trip of 1 ms.
    fn default() -> Self {
        Self {
            rate: Rate::from_gbps(10),
            delay: Duration::from_micros(500),
            rules: Vec::new(),
            faults: FaultSettings::default(),
            seed: 1,
        }
    }
}

impl Path {
    pub(crate) fn pipe(&self) -> EgressPort<Datagram> {
        EgressPort::new(
            Queue::new(self.rules.clone(), self.seed),
            Link::new(self.rate, self.delay).with_mtu(ByteSize::from_bytes(1500)),
            Faults::new(self.faults, self.seed),
        )
    }
}

pub(crate) fn controller(spec: &str, config: &Config) -> Box<dyn Controller> {
    let context = Context {
        packet_size: config.mss,
        seed: 1,
        is_paced: false,
    };
    spec.parse::<AlgorithmSpec>().unwrap().build(&context)
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) to_server: EgressPort<Datagram>,
    pub(crate) to_client: EgressPort<Datagram>,
    /// Whether to record the segments sent by both ends.
    pub(crate) record: bool,
    pub(crate) sent: Vec<(Time, Side, Datagram)>,
    /// Segment size to which the network interfaces split bursts, instead of a full segment.
    pub(crate) cut: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// How the connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Handshake,
    Established,
}

impl World {
    /// Two ends with the same configuration and algorithm.
    pub(crate) fn new(config: &Config, spec: &str, opening: Opening, path: &Path) -> Self {
        Self::with(config, config, spec, opening, path, Sequence::new(1_000))
    }

    pub(crate) fn with(
        client: &Config,
        server: &Config,
        spec: &str,
        opening: Opening,
        path: &Path,
        isn: Sequence,
    ) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        let (ours, theirs) = (controller(spec, client), controller(spec, server));
        let (client, server) = (&Arc::new(client.clone()), &Arc::new(server.clone()));
        let peer_isn = isn + 77_777;
        let (a, b) = match opening {
            Opening::Handshake => (
                Connection::client(now, client, ours, isn),
                Connection::server(server, theirs, peer_isn),
            ),
            Opening::Established => (
                Connection::established(now, client, server, ours, isn, peer_isn),
                Connection::established(now, server, client, theirs, peer_isn, isn),
            ),
        };
        let back = Path {
            rules: Vec::new(),
            seed: path.seed + 1,
            ..path.clone()
        };
        Self {
            now,
            client: a.unwrap(),
            server: b.unwrap(),
            to_server: path.pipe(),
            to_client: back.pipe(),
            record: false,
            sent: Vec::new(),
            cut: None,
        }
    }

    /// Returns a summary for messages of failed tests.
    pub(crate) fn summary(&self) -> String {
        [&self.client, &self.server]
            .map(|end| {
                format!(
                    "{:?} {:?} received {} remaining {} next {:?}\n{:?}\n{:?}\n",
                    end.state(),
                    end.ending(),
                    end.received(),
                    end.remaining(),
                    end.timeout(),
                    end.snapshot(),
                    end.counters(),
                )
            })
            .join(&format!("at {}\n", self.now))
    }

    /// Sends all segments that both ends can send now.
    pub(crate) fn flush(&mut self) {
        for side in [Side::Client, Side::Server] {
            loop {
                let (connection, pipe) = match side {
                    Side::Client => (&mut self.client, &mut self.to_server),
                    Side::Server => (&mut self.server, &mut self.to_client),
                };
                let Some((segment, ecn)) = connection.next_segment(self.now) else {
                    break;
                };
                for segment in pieces(segment, self.cut) {
                    let datagram = Datagram { segment, ecn };
                    if self.record {
                        self.sent.push((self.now, side, datagram));
                    }
                    pipe.send(self.now, datagram);
                }
            }
        }
    }

    fn timeout(&self) -> Option<Time> {
        [
            self.client.timeout(),
            self.server.timeout(),
            self.to_server.timeout(),
            self.to_client.timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Processes the next event. Returns false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.flush();
        let Some(next) = self.timeout() else {
            return false;
        };
        assert!(next >= self.now, "time ran backwards");
        self.now = next;
        while let Some(datagram) = self.to_server.poll_delivered(next) {
            self.server.receive(next, &datagram.segment, datagram.ecn);
            self.flush();
        }
        while let Some(datagram) = self.to_client.poll_delivered(next) {
            self.client.receive(next, &datagram.segment, datagram.ecn);
            self.flush();
        }
        if self.client.timeout().is_some_and(|at| at <= next) {
            self.client.handle_timeout(next);
        }
        if self.server.timeout().is_some_and(|at| at <= next) {
            self.server.handle_timeout(next);
        }
        self.flush();
        true
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.flush();
        while self.timeout().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs until `condition`, for at most `steps` steps. Returns false if the condition was not
    /// met.
    pub(crate) fn run_until(
        &mut self,
        steps: u64,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> bool {
        for _ in 0..steps {
            if condition(self) {
                return true;
            }
            if !self.step() {
                break;
            }
        }
        condition(self)
    }
}

/// Splits a burst as a network interface does.
fn pieces(segment: Segment, cut: Option<u32>) -> impl Iterator<Item = Segment> {
    use weir_wire::tcp::Flags;
    let full = if segment.timestamps.is_some() {
        1448
    } else {
        1460
    };
    let mss = cut.unwrap_or(full);
    let pieces = segment.payload.div_ceil(mss).max(1);
    let last_only = Flags::PSH | Flags::FIN;
    (0..pieces).map(move |piece| {
        let last = piece + 1 == pieces;
        Segment {
            sequence: segment.sequence + piece * mss,
            payload: if last {
                segment.payload - piece * mss
            } else {
                mss
            },
            flags: match (piece, last) {
                (0, true) => segment.flags,
                (0, false) => segment.flags.without(last_only),
                (_, false) => segment.flags.without(last_only | Flags::CWR),
                (_, true) => segment.flags.without(Flags::CWR),
            },
            ..segment
        }
    })
}
