//! Several senders and one bottleneck, as in section V-A of the paper but shorter: 1 to 20 senders
//! fill the link. The ignored test prints utilization, queue and fairness for all interpretations
//! of Figure 4; `docs/dcudp.md` explains them.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use weir_dcudp::{
    AckInterval, Connection, ConnectionHandle, Endpoint, Feedback, ReadError, Route, ServerConfig,
    TransportConfig,
};
use weir_fabric::{
    Action, Class, EgressPort, FaultSettings, Faults, Link, Packet, Probability, Queue, Ramp, Rule,
    Trigger,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

const CAPACITY: Rate = Rate::from_gbps(1);
const DELAY: Duration = Duration::from_micros(50);
const PACKET: u64 = 1500;

#[derive(Clone)]
struct Datagram {
    source: SocketAddr,
    destination: SocketAddr,
    bytes: Vec<u8>,
    ecn: Ecn,
}

impl Packet for Datagram {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(self.bytes.len() as u64 + 28)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

struct Host {
    endpoint: Endpoint,
    connections: BTreeMap<ConnectionHandle, Connection>,
    address: SocketAddr,
    received: BTreeMap<ConnectionHandle, u64>,
}

struct Dumbbell {
    now: Time,
    /// The receiver is the last host.
    hosts: Vec<Host>,
    /// Towards the receiver, with the queue, and back.
    pipes: [EgressPort<Datagram>; 2],
    buffer: Vec<u8>,
}

/// The results of the second half of a run.
#[derive(Debug)]
struct Outcome {
    /// Utilization of the link in IP bytes.
    utilization: f64,
    fairness: f64,
    mean_queue: f64,
    drops: u64,
}

/// Marks from one packet on, with certainty above 15; a buffer of 4 MB.
fn rules() -> Vec<Rule> {
    let ramp = Ramp {
        min: ByteSize::from_bytes(PACKET),
        max: ByteSize::from_bytes(15 * PACKET),
        probability: Probability::new(0.1).unwrap(),
    };
    let mark = Rule {
        class: Class::Every,
        trigger: Trigger::Ramp(ramp),
        action: Action::Mark,
    };
    vec![Rule::buffer(ByteSize::from_bytes(4_000_000)), mark]
}

impl Dumbbell {
    fn new(senders: u8, algorithm: &str) -> Self {
        let mut config = TransportConfig::new(Rate::from_mbps(1600));
        config.congestion = algorithm.parse().unwrap();
        if config.congestion.name() != "dcudp" {
            // As the scenarios configure it.
            config.feedback = Feedback::Counts;
            config.ack_interval = AckInterval::IdleRoundTrip;
            config.quit.window = 64;
        }
        let config = Arc::new(config);
        let now = Time::from_nanos(1_000_000_000);
        let host = |index: u8, server| Host {
            endpoint: Endpoint::new(server, [index; 32]).unwrap(),
            connections: BTreeMap::new(),
            address: SocketAddr::from(([10, 0, 0, index], 9000)),
            received: BTreeMap::new(),
        };
        let mut hosts: Vec<_> = (0..senders).map(|index| host(index + 1, None)).collect();
        let receiver = host(200, Some(ServerConfig::new(config.clone())));
        for host in &mut hosts {
            let connected = host
                .endpoint
                .connect(now, config.clone(), receiver.address, None);
            let (handle, connection) = connected.unwrap();
            host.connections.insert(handle, connection);
        }
        hosts.push(receiver);
        let faults = || Faults::new(FaultSettings::default(), 1);
        let queue = Queue::new(rules(), 1).with_occupancy();
        Self {
            now,
            hosts,
            pipes: [
                EgressPort::new(queue, Link::new(CAPACITY, DELAY), faults()),
                EgressPort::new(Queue::new([], 1), Link::new(CAPACITY, DELAY), faults()),
            ],
            buffer: Vec::new(),
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        for index in 0..self.hosts.len() {
            self.service(index);
        }
        loop {
            let pipes = self.pipes.iter().filter_map(EgressPort::timeout);
            let connections = self.hosts.iter().flat_map(|host| host.connections.values());
            let next = pipes
                .chain(connections.filter_map(Connection::timeout))
                .min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
    }

    fn step(&mut self) {
        let now = self.now;
        let mut touched = Vec::new();
        for pipe in 0..2 {
            while let Some(datagram) = self.pipes[pipe].poll_delivered(now) {
                let to = datagram.destination;
                let index = self
                    .hosts
                    .iter()
                    .position(|host| host.address == to)
                    .unwrap();
                self.arrive(index, &datagram);
                touched.push(index);
            }
        }
        for (index, host) in self.hosts.iter_mut().enumerate() {
            for connection in host.connections.values_mut() {
                if connection.timeout().is_some_and(|time| time <= now) {
                    connection.handle_timeout(now);
                    touched.push(index);
                }
            }
        }
        for index in touched {
            self.service(index);
        }
    }

    fn arrive(&mut self, index: usize, datagram: &Datagram) {
        let (now, source) = (self.now, datagram.source);
        let host = &mut self.hosts[index];
        match host.endpoint.route(now, source, None, &datagram.bytes) {
            Route::Connection(handle) => {
                let bytes = BytesMut::from(&datagram.bytes[..]);
                let connection = host.connections.get_mut(&handle).unwrap();
                connection.handle_datagram(now, source, datagram.ecn, bytes);
            }
            Route::New(handle, connection) => {
                host.connections.insert(handle, *connection);
            }
            Route::Reply(reply) => self.send(index, source, Ecn::NotEct, reply),
            Route::Drop => {}
        }
    }

    fn send(&mut self, index: usize, destination: SocketAddr, ecn: Ecn, bytes: Vec<u8>) {
        let pipe = usize::from(index + 1 == self.hosts.len());
        let datagram = Datagram {
            source: self.hosts[index].address,
            destination,
            bytes,
            ecn,
        };
        self.pipes[pipe].send(self.now, datagram);
    }

    fn service(&mut self, index: usize) {
        let is_sender = index + 1 < self.hosts.len();
        let handles: Vec<_> = self.hosts[index].connections.keys().copied().collect();
        for handle in handles {
            let host = &mut self.hosts[index];
            let connection = host.connections.get_mut(&handle).unwrap();
            while connection.poll_event().is_some() {}
            if is_sender {
                while connection.write(&[0; 65_536]).is_ok() {}
            }
            loop {
                let mut chunk = [Bytes::new()];
                match connection.read_chunks(&mut chunk, usize::MAX) {
                    Ok(_) => {
                        *host.received.entry(handle).or_default() += chunk[0].len() as u64;
                    }
                    Err(ReadError::Blocked) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            loop {
                self.buffer.clear();
                let host = &mut self.hosts[index];
                let connection = host.connections.get_mut(&handle).unwrap();
                let transmit = connection.poll_transmit(self.now, &mut self.buffer, 1);
                let Some(transmit) = transmit else {
                    break;
                };
                let bytes = self.buffer.clone();
                self.send(index, transmit.remote, transmit.ecn, bytes);
            }
        }
    }

    fn received(&self) -> Vec<u64> {
        let receiver = self.hosts.last().unwrap();
        receiver.received.values().copied().collect()
    }
}

fn outcome(senders: u8, algorithm: &str, span: Duration) -> Outcome {
    let mut dumbbell = Dumbbell::new(senders, algorithm);
    dumbbell.run(span / 2);
    let before = dumbbell.received();
    let sent = dumbbell.pipes[0].sent();
    let now = dumbbell.now;
    dumbbell.pipes[0].reset_occupancy(now);
    dumbbell.run(span / 2);
    let now = dumbbell.now;
    dumbbell.pipes[0].advance(now);
    let shares: Vec<f64> = dumbbell
        .received()
        .iter()
        .zip(&before)
        .map(|(after, before)| (after - before) as f64)
        .collect();
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| {
        (sum + share, squares + share * share)
    });
    let bytes = (dumbbell.pipes[0].sent() - sent).size;
    let occupancy = dumbbell.pipes[0].queue().occupancy().unwrap();
    Outcome {
        utilization: bytes.bytes() as f64 / CAPACITY.size_in(span / 2).bytes() as f64,
        fairness: sum * sum / (shares.len() as f64 * squares),
        mean_queue: occupancy.mean().bytes() as f64 / PACKET as f64,
        drops: dumbbell.pipes[0].counters().dropped.total().packets,
    }
}

#[test]
fn the_link_is_filled_and_the_queue_settles() {
    for senders in [1, 2, 5, 20] {
        let outcome = outcome(senders, "dcudp-proportional", Duration::from_millis(60));
        assert!(outcome.utilization > 0.98, "{senders}: {outcome:?}");
        assert!(outcome.utilization < 1.005, "{senders}: {outcome:?}");
        assert!(outcome.fairness > 0.6, "{senders}: {outcome:?}");
        assert!(outcome.mean_queue < 60.0, "{senders}: {outcome:?}");
        assert_eq!(outcome.drops, 0, "{senders}");
    }
}

/// Prints all interpretations of Figure 4: `cargo test -p weir-dcudp --test dumbbell -- --ignored
/// --nocapture`.
#[test]
#[ignore = "prints a table"]
fn compare_interpretations_of_figure_4() {
    println!("reading, senders: utilization, fairness, mean queue in packets, drops");
    for spec in [
        "dcudp",
        "dcudp,raise_data=false,stop_at_max=false",
        "dcudp,stop_at_max=false",
        "dcudp,increment_per_rtt=false",
        "dcudp,freeze=false",
        "dcudp-proportional",
        "dcudp-proportional,drain=0",
    ] {
        for senders in [1, 2, 5, 20] {
            let outcome = outcome(senders, spec, Duration::from_millis(400));
            println!(
                "{spec:60} {senders:2}: {:.3} {:.3} {:6.0} {:6}",
                outcome.utilization, outcome.fairness, outcome.mean_queue, outcome.drops
            );
        }
    }
}
