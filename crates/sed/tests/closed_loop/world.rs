//! Senders, a switch with an agent, receivers, and a controller behind a faulty channel.

use std::collections::BTreeMap;

use weir_fabric::{EgressPort, Faults, Link, PortIndex, Queue, Routes, Rule, Switch};
use weir_sed::{
    Agent, Controller, ControllerConfig, Demand, DemandTable, PortId, SwitchReport, WindowOrder,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::{Flags, Options, Segment, Sequence, SynOptions};

use crate::frame::{Frame, key};

pub(crate) const MSS: u32 = 1460;
const SCALE: u8 = 7;
const RATE: Rate = Rate::from_mbps(200);
/// Of each link: the round trip is twice that.
const DELAY: Duration = Duration::from_micros(100);
const STEP: Duration = Duration::from_micros(20);
const FIRST: Sequence = Sequence::new(u32::MAX - 5000);

/// What a flow does.
#[derive(Clone, Debug)]
pub(crate) struct FlowPlan {
    pub(crate) start: Duration,
    /// A pause, and bytes that are sent after it.
    pub(crate) bursts: Vec<(Duration, u64)>,
    pub(crate) demand: Option<Demand>,
}

/// The faults between agent and controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) lost_reports: f64,
    /// Orders arrive up to this late, in any order.
    pub(crate) latest: Duration,
    pub(crate) repeated_orders: f64,
    pub(crate) seed: u64,
}

impl Channel {
    pub(crate) const PERFECT: Self = Self {
        lost_reports: 0.0,
        latest: Duration::ZERO,
        repeated_orders: 0.0,
        seed: 1,
    };

    /// A number from 0 to 1 (SplitMix64).
    fn draw(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.seed;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ (value >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[derive(Debug)]
struct Flow {
    plan: FlowPlan,
    opened: bool,
    /// Bytes that the application has written, sent and had acknowledged; bursts that it has begun.
    written: u64,
    sent: u64,
    acknowledged: u64,
    bursts: usize,
    /// When the next burst begins, once the one before is acknowledged.
    next_burst: Option<Time>,
    window: u64,
    congestion_window: u64,
    ignores_windows: bool,
    /// Next expected byte at the receiver.
    received: u64,
    /// Since when it waits, and the longest queue since then.
    moved_at: Time,
    longest_queue: u64,
    history: Vec<(Time, u64)>,
    completed: Option<Time>,
}

pub(crate) struct World {
    switch: Switch<Frame>,
    controller: Controller,
    channel: Channel,
    orders: BTreeMap<(Time, u64), WindowOrder>,
    ordered: u64,
    flows: Vec<Flow>,
    now: Time,
    smallest_window: u64,
    longest_stall: f64,
    pauses: Option<Pauses>,
}

/// When hosts do nothing: at regular intervals, for some time.
#[derive(Clone, Copy, Debug)]
struct Pauses {
    every: Duration,
    span: Duration,
}

fn port(number: u32) -> PortId {
    PortId {
        switch: 0,
        port: number,
    }
}

impl World {
    pub(crate) fn new(config: ControllerConfig, plans: Vec<FlowPlan>, channel: Channel) -> Self {
        // No queue drops: there is no recovery from losses in the way.
        let buffer = ByteSize::from_bytes(4_000_000);
        let egress_port = |seed| {
            let queue = Queue::new([Rule::tail_drop(buffer)], seed);
            EgressPort::new(queue, Link::new(RATE, DELAY), Faults::none())
        };
        let routes = Routes::new()
            .with(0, [PortIndex::new(0)])
            .with(1, [PortIndex::new(1)]);
        let switch = Switch::new([egress_port(1), egress_port(2)], routes, 1).unwrap();
        let mut controller = Controller::new(config, DemandTable::new(Vec::new(), 1000));
        for number in 0..2 {
            controller.add_port(port(number), RATE);
            controller.set_buffer(port(number), ByteSize::from_bytes(512_000));
        }
        for (number, plan) in plans.iter().enumerate() {
            if let Some(demand) = plan.demand {
                let flow = key(number);
                let demands = controller.demands_mut();
                demands.register(flow.source, flow, demand).unwrap();
            }
        }
        let flow = |plan: FlowPlan| Flow {
            plan,
            opened: false,
            written: 0,
            sent: 0,
            acknowledged: 0,
            bursts: 0,
            next_burst: None,
            window: 0,
            congestion_window: u64::from(MSS) * 10,
            ignores_windows: false,
            received: 0,
            moved_at: Time::ZERO,
            longest_queue: 0,
            history: Vec::new(),
            completed: None,
        };
        Self {
            switch: switch.with_element(Agent::<Frame>::new(config.agent(RATE), 5)),
            controller,
            channel,
            orders: BTreeMap::new(),
            ordered: 0,
            flows: plans.into_iter().map(flow).collect(),
            now: Time::ZERO,
            smallest_window: u64::MAX,
            longest_stall: 0.0,
            pauses: None,
        }
    }

    pub(crate) fn ignore_windows(&mut self, flow: usize) {
        self.flows[flow].ignores_windows = true;
    }

    /// Has all hosts pause at this interval, for as long.
    pub(crate) fn pause_hosts(&mut self, every: Duration, span: Duration) {
        self.pauses = Some(Pauses { every, span });
    }

    pub(crate) fn acknowledged(&self, flow: usize) -> u64 {
        self.flows[flow].acknowledged
    }

    /// Returns the time from its start until all was acknowledged.
    pub(crate) fn completed(&self, flow: usize) -> Option<Duration> {
        let flow = &self.flows[flow];
        Some(flow.completed?.since(Time::ZERO + flow.plan.start))
    }

    /// Returns the bytes acknowledged between two times.
    pub(crate) fn carried(&self, flow: usize, from: Duration, until: Duration) -> u64 {
        let at = |time: Duration| {
            let before = |(when, _): &&(Time, u64)| *when <= Time::ZERO + time;
            let history = self.flows[flow].history.iter().rev();
            history
                .skip_while(|entry| !before(entry))
                .map(|(_, bytes)| *bytes)
                .next()
        };
        at(until).unwrap_or(0) - at(from).unwrap_or(0)
    }

    pub(crate) fn smallest_window(&self) -> u64 {
        self.smallest_window
    }

    /// Returns the longest wait of a flow that had something to send, in round trips with the longest
    /// queue at that time.
    pub(crate) fn longest_stall(&self) -> f64 {
        self.longest_stall
    }

    pub(crate) fn flows_in_table(&self) -> usize {
        self.controller.flow_count()
    }

    pub(crate) fn policed(&mut self) -> u64 {
        let agent: &mut Agent<Frame> = self.switch.element_mut().unwrap();
        agent.counters().policed
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.now += STEP;
            let passed = self.now.since(Time::ZERO).as_nanos();
            let is_paused =
                |pauses: Pauses| passed % pauses.every.as_nanos() < pauses.span.as_nanos();
            if !self.pauses.is_some_and(is_paused) {
                self.deliver();
                self.send();
            }
            self.control();
            self.watch();
        }
    }

    fn transmit(&mut self, flow: usize, forth: bool, segment: Segment) {
        let ingress = PortIndex::new(u32::from(!forth));
        let frame = Frame {
            segment,
            forth,
            flow,
        };
        self.switch.forward(self.now, ingress, frame, |_, _| {});
    }

    fn deliver(&mut self) {
        for forth in [true, false] {
            let port = PortIndex::new(u32::from(forth));
            while let Some(frame) = self.switch.poll_delivered(self.now, port) {
                if forth {
                    self.at_receiver(&frame)
                } else {
                    self.at_sender(&frame)
                }
            }
        }
    }

    /// Answers a SYN, and acknowledges data that continues the stream.
    fn at_receiver(&mut self, frame: &Frame) {
        let (flow, segment) = (&mut self.flows[frame.flow], frame.segment);
        let reply = Segment {
            sequence: FIRST,
            acknowledgment: FIRST + 1,
            flags: Flags::ACK,
            window: 4000,
            ..Segment::default()
        };
        if segment.flags.contains(Flags::SYN) {
            let answer = Segment {
                flags: Flags::SYN | Flags::ACK,
                window: u16::MAX,
                options: segment.options,
                ..reply
            };
            return self.transmit(frame.flow, false, answer);
        }
        if segment.payload == 0 {
            return;
        }
        if segment.sequence == FIRST + 1 + flow.received as u32 {
            flow.received += u64::from(segment.payload);
        }
        let acknowledgment = FIRST + 1 + flow.received as u32;
        let reply = Segment {
            sequence: FIRST + 1,
            acknowledgment,
            ..reply
        };
        self.transmit(frame.flow, false, reply);
    }

    fn at_sender(&mut self, frame: &Frame) {
        let (now, segment) = (self.now, frame.segment);
        let flow = &mut self.flows[frame.flow];
        if segment.flags.contains(Flags::SYN) {
            flow.window = segment.window.into();
            flow.moved_at = now;
            let third = Segment {
                sequence: FIRST + 1,
                acknowledgment: FIRST + 1,
                flags: Flags::ACK,
                window: u16::MAX,
                ..Segment::default()
            };
            return self.transmit(frame.flow, true, third);
        }
        let upto = segment.acknowledgment.distance_from(FIRST + 1) as u64;
        flow.window = u64::from(segment.window) << SCALE;
        self.smallest_window = self.smallest_window.min(flow.window);
        if upto > flow.acknowledged {
            let most = u64::from(MSS) * 200;
            flow.congestion_window = (flow.congestion_window + upto - flow.acknowledged).min(most);
            flow.acknowledged = upto;
            flow.history.push((now, upto));
            flow.note_progress(now);
        } else if flow.ignores_windows && flow.sent > upto {
            // A drop: it begins again there, as fast as before.
            flow.sent = upto;
        }
    }

    fn send(&mut self) {
        for number in 0..self.flows.len() {
            self.open(number);
            while let Some(segment) = self.flows[number].next_segment(self.now) {
                self.transmit(number, true, segment);
            }
        }
    }

    fn open(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        if flow.opened || self.now < Time::ZERO + flow.plan.start {
            return;
        }
        flow.opened = true;
        flow.moved_at = self.now;
        let options = Options::Syn(SynOptions {
            maximum_segment_size: MSS as u16,
            window_scale: Some(SCALE),
            sack_permitted: false,
        });
        let syn = Segment {
            sequence: FIRST,
            flags: Flags::SYN,
            window: u16::MAX,
            options,
            ..Segment::default()
        };
        self.transmit(number, true, syn);
    }

    fn control(&mut self) {
        let now = self.now;
        let due = |time: Option<Time>| time.is_some_and(|time| time <= now);
        let agent: &mut Agent<Frame> = self.switch.element_mut().unwrap();
        let reports: Vec<SwitchReport> = std::iter::from_fn(|| agent.next_report()).collect();
        for report in reports {
            if self.channel.draw() >= self.channel.lost_reports {
                self.controller.receive(now, 0, report);
            }
        }
        if due(self.controller.timeout(now)) {
            self.controller.handle_timeout(now);
        }
        while let Some((_, order)) = self.controller.next_order() {
            let copies = 1 + u32::from(self.channel.draw() < self.channel.repeated_orders);
            for _ in 0..copies {
                let late = self.channel.latest.mul_f64(self.channel.draw());
                self.ordered += 1;
                self.orders.insert((now + late, self.ordered), order);
            }
        }
        while let Some(entry) = self
            .orders
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let order = entry.remove();
            let agent: &mut Agent<Frame> = self.switch.element_mut().unwrap();
            agent.receive(now, order);
        }
        while due(self.switch.timeout_of_elements()) {
            self.switch.handle_timeout(now, |_, _| {});
        }
    }

    /// Measures waits.
    fn watch(&mut self) {
        let queue = self.switch.ports()[1].queue().backlog().size.bytes()
            + self.switch.ports()[0].queue().backlog().size.bytes();
        for flow in &mut self.flows {
            flow.longest_queue = flow.longest_queue.max(queue);
            let waits = flow.opened && flow.written > flow.acknowledged;
            if !waits || flow.ignores_windows {
                flow.note_progress(self.now);
                continue;
            }
            let drained = RATE.time_for(ByteSize::from_bytes(flow.longest_queue + 3000));
            let round_trip = DELAY * 2 + drained + STEP * 4;
            let waited = self.now.since(flow.moved_at).as_nanos() as f64;
            self.longest_stall = self
                .longest_stall
                .max(waited / round_trip.as_nanos() as f64);
        }
    }
}

impl Flow {
    fn note_progress(&mut self, now: Time) {
        self.moved_at = now;
        self.longest_queue = 0;
    }

    /// Returns the next segment that its windows allow.
    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.window == 0 {
            return None;
        }
        self.write(now);
        let left = self.written - self.sent;
        let payload = left.min(u64::from(MSS));
        let limit = if self.ignores_windows {
            u64::from(MSS) * 300
        } else {
            self.window.min(self.congestion_window)
        };
        if payload == 0 || self.sent - self.acknowledged + payload > limit {
            return None;
        }
        let segment = Segment {
            sequence: FIRST + 1 + self.sent as u32,
            acknowledgment: FIRST + 1,
            payload: payload as u32,
            flags: Flags::ACK,
            window: 100,
            ..Segment::default()
        };
        self.sent += payload;
        Some(segment)
    }

    /// The application writes a burst, a pause after the one before was acknowledged.
    fn write(&mut self, now: Time) {
        if self.acknowledged < self.written {
            return;
        }
        let Some((pause, bytes)) = self.plan.bursts.get(self.bursts).copied() else {
            self.completed.get_or_insert(now);
            return;
        };
        let begin = *self.next_burst.get_or_insert(now + pause);
        if begin <= now {
            self.written += bytes;
            self.bursts += 1;
            self.next_burst = None;
            self.note_progress(now);
        }
    }
}
