//! Two ends of a connection with a TCon in a switch between them, in virtual time.

use std::net::Ipv4Addr;
use std::sync::Arc;

use weir_congestion::{AlgorithmSpec, Context, Controller};
use weir_fabric::{
    self as fabric, EgressPort, FaultSettings, Faults, Link, Packet, PortIndex, Queue, Routes,
    Switch,
};
use weir_tcon::{FlowInfo, FlowPolicy, Limits, PolicyLookup, Tcon};
use weir_tcp::{Config, Connection};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::{Flags, Options, Segment, Sequence, Timestamps};
use weir_wire::{Ecn, FlowKey};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) to_client: bool,
    pub(crate) segment: Segment,
    pub(crate) ecn: Ecn,
    /// Whether it is to have a frame of its own.
    pub(crate) apart: bool,
}

impl Packet for Datagram {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(60 + u64::from(self.segment.payload))
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn destination(&self) -> u32 {
        u32::from(self.to_client)
    }
    fn flow(&self) -> FlowKey {
        let forth = FlowKey {
            source: Ipv4Addr::new(10, 0, 0, 2).into(),
            destination: Ipv4Addr::new(10, 0, 0, 1).into(),
            source_port: 4000,
            destination_port: 80,
            protocol: FlowKey::TCP,
        };
        if self.to_client {
            forth.reversed()
        } else {
            forth
        }
    }
    fn tcp(&self) -> Option<Segment> {
        Some(self.segment)
    }
    fn set_window(&mut self, window: u16) {
        self.segment.window = window;
    }
    fn set_flags(&mut self, flags: Flags) {
        self.segment.flags = flags;
    }
    fn keep_apart(&mut self) {
        self.apart = true;
    }
    fn set_acknowledgment(&mut self, number: Sequence) {
        self.segment.acknowledgment = number;
    }
    fn set_timestamps(&mut self, timestamps: Timestamps) {
        self.segment.timestamps = Some(timestamps);
    }
    fn clear_sack_blocks(&mut self) {
        if matches!(self.segment.options, Options::Sack(_)) {
            self.segment.options = Options::None;
        }
    }
}

/// A packet as it arrived at the switch, and the window of the server's data after it; zero if there is
/// none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) now: Time,
    pub(crate) datagram: Datagram,
    pub(crate) window: u64,
}

/// The network between the ends.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    /// Whether the server's stack negotiates ECN, too.
    pub(crate) server_ecn: weir_tcp::EcnMode,
    pub(crate) sender: &'static str,
    pub(crate) policy: FlowPolicy,
    /// Whether the client's data is controlled, too.
    pub(crate) both: bool,
    pub(crate) limits: Limits,
    /// Between TCon and the client, in both directions.
    pub(crate) wide: FaultSettings,
    /// From the client to TCon, if it differs.
    pub(crate) back: Option<FaultSettings>,
    /// Between the server and TCon, in both directions.
    pub(crate) near: FaultSettings,
    /// The link between TCon and the client: its rate, its one-way delay, and its buffer.
    pub(crate) link: (Rate, Duration, ByteSize),
    pub(crate) isn: u32,
    pub(crate) seed: u64,
    /// A period in packets: the first two carry an ECN echo if the client sent them, without a CE mark.
    pub(crate) echo_every: Option<usize>,
}

/// Controls the server's data, and optionally the client's.
#[derive(Debug)]
struct Rule {
    policy: FlowPolicy,
    both: bool,
}

impl PolicyLookup for Rule {
    fn policy_for(&self, flow: &FlowInfo) -> Option<&FlowPolicy> {
        (self.both || flow.key.source_port == 80).then_some(&self.policy)
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    up_client: EgressPort<Datagram>,
    up_server: EgressPort<Datagram>,
    pub(crate) switch: Switch<Datagram>,
    /// What was delivered to the server, if it is recorded.
    pub(crate) to_server: Vec<Datagram>,
    pub(crate) to_client: Vec<Datagram>,
    pub(crate) record: bool,
    /// The packets that arrived at the switch.
    pub(crate) passed: Vec<Passed>,
    echo_every: Option<usize>,
}

const TO_SERVER: PortIndex = PortIndex::new(0);
const TO_CLIENT: PortIndex = PortIndex::new(1);

fn controller(spec: &str, config: &Config) -> Box<dyn Controller> {
    let context = Context {
        packet_size: config.mss,
        seed: 1,
        is_paced: false,
    };
    spec.parse::<AlgorithmSpec>().unwrap().build(&context)
}

fn egress_port(
    (rate, delay, buffer): (Rate, Duration, ByteSize),
    faults: FaultSettings,
    seed: u64,
) -> EgressPort<Datagram> {
    let link = Link::new(rate, delay).with_mtu(ByteSize::from_bytes(100_000));
    EgressPort::new(
        Queue::new([fabric::Rule::tail_drop(buffer)], seed),
        link,
        Faults::new(faults, seed),
    )
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        let isn = Sequence::new(setup.isn);
        let server = Config {
            ecn: setup.server_ecn,
            ..setup.config.clone()
        };
        let client = controller(setup.sender, &setup.config);
        let near = Duration::from_micros(50);
        let far = setup.link;
        let near = (Rate::from_gbps(1), near, ByteSize::MAX);
        let ports = [
            egress_port(near, setup.near, setup.seed),
            egress_port(far, setup.wide, setup.seed + 1),
        ];
        let routes = Routes::new().with(0, [TO_SERVER]).with(1, [TO_CLIENT]);
        let rule = Rule {
            policy: setup.policy.clone(),
            both: setup.both,
        };
        let tcon: Tcon<Datagram> = Tcon::new(setup.limits, Box::new(rule), setup.seed);
        Self {
            now,
            client: Connection::client(now, &Arc::new(setup.config.clone()), client, isn).unwrap(),
            server: Connection::server(
                &Arc::new(server.clone()),
                controller(setup.sender, &server),
                isn + 77_777,
            )
            .unwrap(),
            up_client: egress_port(far, setup.back.unwrap_or(setup.wide), setup.seed + 2),
            up_server: egress_port(near, setup.near, setup.seed + 3),
            switch: Switch::new(ports, routes, 1).unwrap().with_element(tcon),
            to_server: Vec::new(),
            to_client: Vec::new(),
            record: setup.limits.memory.is_zero(),
            passed: Vec::new(),
            echo_every: setup.echo_every,
        }
    }

    pub(crate) fn tcon(&self) -> &Tcon<Datagram> {
        self.switch.element().unwrap()
    }

    pub(crate) fn flush(&mut self) {
        while let Some((segment, ecn)) = self.client.next_segment(self.now) {
            self.up_client.send(
                self.now,
                Datagram {
                    to_client: false,
                    segment,
                    ecn,
                    apart: false,
                },
            );
        }
        while let Some((segment, ecn)) = self.server.next_segment(self.now) {
            self.up_server.send(
                self.now,
                Datagram {
                    to_client: true,
                    segment,
                    ecn,
                    apart: false,
                },
            );
        }
    }

    fn timeout(&self) -> Option<Time> {
        [
            self.client.timeout(),
            self.server.timeout(),
            self.up_client.timeout(),
            self.up_server.timeout(),
            self.switch.timeout(TO_SERVER),
            self.switch.timeout(TO_CLIENT),
            self.switch.timeout_of_elements(),
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
        while let Some(packet) = self.up_client.poll_delivered(next) {
            self.pass(TO_CLIENT, packet);
        }
        while let Some(packet) = self.up_server.poll_delivered(next) {
            self.pass(TO_SERVER, packet);
        }
        if self
            .switch
            .timeout_of_elements()
            .is_some_and(|at| at <= next)
        {
            self.switch.handle_timeout(next, |_, _| {});
            assert!(self.switch.timeout_of_elements().is_none_or(|at| at > next));
        }
        while let Some(packet) = self.switch.poll_delivered(next, TO_SERVER) {
            if self.record {
                self.to_server.push(packet);
            }
            self.server.receive(next, &packet.segment, packet.ecn);
            self.flush();
        }
        while let Some(packet) = self.switch.poll_delivered(next, TO_CLIENT) {
            if self.record {
                self.to_client.push(packet);
            }
            self.client.receive(next, &packet.segment, packet.ecn);
            self.flush();
        }
        for end in [&mut self.client, &mut self.server] {
            if end.timeout().is_some_and(|at| at <= next) {
                end.handle_timeout(next);
            }
        }
        self.flush();
        true
    }

    /// A packet arrives at the switch.
    fn pass(&mut self, ingress: PortIndex, mut packet: Datagram) {
        let count = self.passed.len();
        if let Some(every) = self.echo_every
            && !packet.to_client
            && !packet.segment.flags.contains(Flags::SYN)
            && count % every < 2
        {
            packet.segment.flags |= Flags::ECE;
        }
        self.switch.forward(self.now, ingress, packet, |_, _| {});
        if self.record {
            let flow = self.tcon().flows(self.now).next();
            self.passed.push(Passed {
                now: self.now,
                datagram: packet,
                window: flow.map_or(0, |flow| flow.window.bytes()),
            });
        }
    }

    /// Runs until `condition` holds, for at most `steps` steps. Returns whether it holds.
    pub(crate) fn run_until(&mut self, steps: u64, condition: impl Fn(&Self) -> bool) -> bool {
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
