//! A switch with an agent, and hosts on both sides whose senders fill any offered window.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_control::{AgentChannel, PortDescription};
use weir_fabric::{EgressPort, Faults, Link, Packet, PortIndex, Queue, Routes, Rule, Switch};
use weir_sed::{Agent, AgentConfig};
use weir_units::{ByteSize, Duration as Span, Rate, Time};
use weir_wire::tcp::{Flags, Options, Segment, Sequence, SynOptions};
use weir_wire::{Ecn, FlowKey};

const RATE: Rate = Rate::from_mbps(100);
const MSS: u32 = 1460;
/// The window field of receivers, and its scale.
const OFFER: u16 = 1000;
const SCALE: u8 = 7;
/// The bytes in flight of a sender that is not limited.
const OWN_WINDOW: u32 = 40 * MSS;

pub(crate) fn flow(number: u16) -> FlowKey {
    FlowKey {
        source: IpAddr::from([127, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        source_port: number,
        destination_port: 80,
        protocol: FlowKey::TCP,
    }
}

pub(crate) fn ports() -> Vec<PortDescription> {
    let port = |number, behind: [u8; 4]| PortDescription {
        number,
        name: format!("eth{number}"),
        rate: RATE,
        buffer: None,
        behind: vec![(IpAddr::from(behind), 32)],
    };
    vec![port(0, [127, 0, 0, 1]), port(1, [10, 0, 0, 2])]
}

#[derive(Clone, Debug)]
struct Frame {
    segment: Segment,
    forth: bool,
    number: u16,
}

impl Packet for Frame {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(20 + u64::from(self.segment.payload)) + self.segment.header_length()
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn destination(&self) -> u32 {
        u32::from(self.forth)
    }
    fn flow(&self) -> FlowKey {
        if self.forth {
            flow(self.number)
        } else {
            flow(self.number).reversed()
        }
    }
    fn tcp(&self) -> Option<Segment> {
        Some(self.segment)
    }
    fn set_window(&mut self, window: u16) {
        self.segment.window = window;
    }
}

/// The progress of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// The last window offered to its sender, in bytes.
    pub(crate) offered: u32,
    /// Its acknowledged bytes.
    pub(crate) bytes: u64,
    /// The longest time without an ACK.
    pub(crate) longest_gap: Duration,
    last: Instant,
}

impl Progress {
    /// Whether a window is in force.
    pub(crate) fn is_clamped(&self) -> bool {
        self.offered < u32::from(OFFER) << SCALE
    }
}

struct Sender {
    sent: u32,
    acknowledged: u32,
    received: u32,
    progress: Progress,
}

enum Wish {
    Open(u16),
    Close(u16),
    Channel(AgentChannel),
    NewAgent(AgentChannel),
    Stop,
}

/// A data plane on a thread of its own.
pub(crate) struct Plane {
    wishes: mpsc::Sender<Wish>,
    progress: Arc<Mutex<BTreeMap<u16, Progress>>>,
    thread: Option<JoinHandle<()>>,
}

impl Plane {
    pub(crate) fn start(channel: AgentChannel) -> Self {
        let (wishes, wished) = mpsc::channel();
        let progress = Arc::new(Mutex::new(BTreeMap::new()));
        let shown = progress.clone();
        let thread = std::thread::spawn(move || Running::new(channel).run(&wished, &shown));
        Self {
            wishes,
            progress,
            thread: Some(thread),
        }
    }

    fn wish(&self, wish: Wish) {
        self.wishes.send(wish).unwrap();
    }

    pub(crate) fn open(&self, number: u16) {
        self.wish(Wish::Open(number));
    }

    pub(crate) fn close(&self, number: u16) {
        self.wish(Wish::Close(number));
    }

    /// Connects the same agent by another channel.
    pub(crate) fn reconnect(&self, channel: AgentChannel) {
        self.wish(Wish::Channel(channel));
    }

    /// Replaces the agent by one without state, as after a restart.
    pub(crate) fn restart_agent(&self, channel: AgentChannel) {
        self.wish(Wish::NewAgent(channel));
    }

    pub(crate) fn progress(&self) -> Vec<Progress> {
        self.progress.lock().unwrap().values().copied().collect()
    }

    pub(crate) fn all(&self, is_so: impl Fn(&Progress) -> bool) -> bool {
        let progress = self.progress();
        !progress.is_empty() && progress.iter().all(is_so)
    }

    pub(crate) fn longest_gap(&self) -> Duration {
        self.progress()
            .iter()
            .map(|flow| flow.longest_gap)
            .max()
            .unwrap()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.wishes.send(Wish::Stop);
        let _ = self.thread.take().unwrap().join();
    }
}

struct Running {
    switch: Switch<Frame>,
    begin: Instant,
    channel: AgentChannel,
    senders: BTreeMap<u16, Sender>,
}

fn switch() -> Switch<Frame> {
    let pipe = |seed| {
        let buffer = Rule::tail_drop(ByteSize::from_bytes(50_000_000));
        let link = Link::new(RATE, Span::from_micros(50));
        EgressPort::new(Queue::new([buffer], seed), link, Faults::none())
    };
    let routes = Routes::new()
        .with(0, [PortIndex::new(0)])
        .with(1, [PortIndex::new(1)]);
    let switch = Switch::new([pipe(1), pipe(2)], routes, 1).unwrap();
    switch.with_element(Agent::<Frame>::new(AgentConfig::paper(), 5))
}

impl Running {
    fn new(channel: AgentChannel) -> Self {
        Self {
            switch: switch(),
            begin: Instant::now(),
            channel,
            senders: BTreeMap::new(),
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_secs(1) + Span::from(self.begin.elapsed())
    }

    fn run(mut self, wishes: &mpsc::Receiver<Wish>, shown: &Mutex<BTreeMap<u16, Progress>>) {
        loop {
            match wishes.recv_timeout(Duration::from_micros(200)) {
                Ok(Wish::Open(number)) => self.open(number),
                Ok(Wish::Close(number)) => self.close(number),
                Ok(Wish::Channel(channel)) => self.channel = channel,
                Ok(Wish::NewAgent(channel)) => {
                    self.channel = channel;
                    self.switch = switch();
                    // Packets in flight are lost with the switch.
                    for sender in self.senders.values_mut() {
                        sender.sent = sender.acknowledged;
                        sender.received = sender.acknowledged;
                        sender.progress.offered = u32::from(OFFER) << SCALE;
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(Wish::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            self.step();
            let progress = self
                .senders
                .iter()
                .map(|(number, sender)| (*number, sender.progress));
            *shown.lock().unwrap() = progress.collect();
        }
    }

    fn send(&mut self, number: u16, forth: bool, segment: Segment) {
        let (now, ingress) = (self.now(), PortIndex::new(u32::from(!forth)));
        let frame = Frame {
            segment,
            forth,
            number,
        };
        self.switch.forward(now, ingress, frame, |_, _| {});
    }

    fn open(&mut self, number: u16) {
        let options = Options::Syn(SynOptions {
            maximum_segment_size: MSS as u16,
            window_scale: Some(SCALE),
            sack_permitted: false,
        });
        let syn = Segment {
            flags: Flags::SYN,
            window: OFFER,
            options,
            ..Segment::default()
        };
        self.send(number, true, syn);
        let acknowledgment = Sequence::new(1);
        let answer = Segment {
            acknowledgment,
            flags: Flags::SYN | Flags::ACK,
            ..syn
        };
        self.send(number, false, answer);
        let third = Segment {
            sequence: Sequence::new(1),
            acknowledgment,
            flags: Flags::ACK,
            window: OFFER,
            ..Segment::default()
        };
        self.send(number, true, third);
        let progress = Progress {
            offered: u32::from(OFFER) << SCALE,
            bytes: 0,
            longest_gap: Duration::ZERO,
            last: Instant::now(),
        };
        let sender = Sender {
            sent: 0,
            acknowledged: 0,
            received: 0,
            progress,
        };
        self.senders.insert(number, sender);
    }

    fn close(&mut self, number: u16) {
        let Some(sender) = self.senders.remove(&number) else {
            return;
        };
        let fin = Segment {
            sequence: Sequence::new(1 + sender.sent),
            acknowledgment: Sequence::new(1),
            flags: Flags::FIN | Flags::ACK,
            window: OFFER,
            ..Segment::default()
        };
        self.send(number, true, fin);
    }

    /// Processes everything that is due.
    fn step(&mut self) {
        let now = self.now();
        if let Some(agent) = self.switch.element_mut::<Agent<Frame>>() {
            self.channel.exchange(now, agent);
        }
        while self
            .switch
            .timeout_of_elements()
            .is_some_and(|next| next <= now)
        {
            self.switch.handle_timeout(now, |_, _| {});
        }
        while let Some(frame) = self.switch.poll_delivered(now, PortIndex::new(1)) {
            self.receive(&frame);
        }
        while let Some(frame) = self.switch.poll_delivered(now, PortIndex::new(0)) {
            self.acknowledge(&frame);
        }
        let numbers: Vec<_> = self.senders.keys().copied().collect();
        for number in numbers {
            self.fill(number);
        }
    }

    /// Handles a packet at a receiver, which acknowledges.
    fn receive(&mut self, frame: &Frame) {
        let Some(sender) = self.senders.get_mut(&frame.number) else {
            return;
        };
        if frame.segment.payload == 0 {
            return;
        }
        sender.received = sender
            .received
            .max(frame.segment.end().number().wrapping_sub(1));
        let ack = Segment {
            sequence: Sequence::new(1),
            acknowledgment: Sequence::new(1 + sender.received),
            flags: Flags::ACK,
            window: OFFER,
            ..Segment::default()
        };
        self.send(frame.number, false, ack);
    }

    fn acknowledge(&mut self, frame: &Frame) {
        let (segment, now) = (frame.segment, Instant::now());
        let Some(sender) = self.senders.get_mut(&frame.number) else {
            return;
        };
        if segment.flags.contains(Flags::SYN) {
            return;
        }
        let progress = &mut sender.progress;
        progress.offered = u32::from(segment.window) << SCALE;
        let upto = segment.acknowledgment.number().wrapping_sub(1);
        if upto > sender.acknowledged {
            sender.acknowledged = upto;
            progress.bytes = upto.into();
            progress.longest_gap = progress.longest_gap.max(now - progress.last);
            progress.last = now;
        }
    }

    /// Sends as many segments as a sender's window allows.
    fn fill(&mut self, number: u16) {
        while let Some(sender) = self.senders.get_mut(&number) {
            let window = sender.progress.offered.min(OWN_WINDOW);
            if sender.sent + MSS > sender.acknowledged + window {
                return;
            }
            let segment = Segment {
                sequence: Sequence::new(1 + sender.sent),
                acknowledgment: Sequence::new(1),
                payload: MSS,
                flags: Flags::ACK,
                window: OFFER,
                ..Segment::default()
            };
            sender.sent += MSS;
            self.send(number, true, segment);
        }
    }
}
