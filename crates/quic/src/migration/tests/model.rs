//! A model of a client that makes requests over one path, in virtual time: RTTs with jitter, single
//! packet losses, a server that computes and delays ACKs, probe timeouts as in RFC 9002. It has
//! only the monitor's inputs: no congestion, no bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use weir_units::{Duration, Rate, Time};

use super::super::{Decision, MigrationConfig, MigrationMonitor, PathView, Wakeup};
use super::{armed, stream};
use crate::PathId;
use crate::path::Rtt;

const PACKET: u64 = 1452;

/// The path, the server and the requests.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) seed: u64,
    pub(super) rtt: Duration,
    /// The one-way delay varies by up to this fraction.
    pub(super) jitter: f64,
    /// The loss probability of each packet.
    pub(super) loss: f64,
    pub(super) max_ack_delay: Duration,
    pub(super) granularity: Duration,
    /// Whether RTT samples exclude all of the peer's delay, or at most `max_ack_delay` of it.
    pub(super) whole_ack_delay: bool,
    /// The longest computing time of the server.
    pub(super) think: Duration,
    /// The sizes of responses, all equally likely.
    pub(super) sizes: &'static [u64],
    /// The interval of requests; `None` for sequential ones.
    pub(super) interval: Option<Duration>,
    /// The start and the amount of an additional one-way delay.
    pub(super) slow: Option<(Time, Duration)>,
    /// From this time the path drops all packets.
    pub(super) dark: Option<Time>,
}

impl Model {
    /// Creates a fabric: RTT 100 µs, 200 requests per second, 20 % jitter, 0.1 % loss.
    pub(super) fn fabric() -> Self {
        Self {
            seed: 1,
            rtt: Duration::from_micros(100),
            jitter: 0.2,
            loss: 0.001,
            max_ack_delay: Duration::from_micros(500),
            granularity: Duration::from_micros(50),
            whole_ack_delay: true,
            think: Duration::ZERO,
            sizes: &[100_000],
            interval: Some(Duration::from_millis(5)),
            slow: None,
            dark: None,
        }
    }

    /// Runs until the monitor decides to move, or until `end`.
    pub(super) fn run(self, config: MigrationConfig, end: Time) -> Outcome {
        let mut run = Run {
            rng: ChaCha8Rng::seed_from_u64(self.seed),
            estimator: Rtt::new(self.rtt),
            monitor: armed(config),
            now: Time::ZERO,
            order: 0,
            events: BinaryHeap::new(),
            outstanding: Vec::new(),
            last_sent: Time::ZERO,
            probe_timeouts: 0,
            requests: Vec::new(),
            finished: 0,
            pings: 0,
            decision: None,
            model: self,
        };
        run.schedule(Time::ZERO, Event::Request);
        while run.now < end && run.decision.is_none() {
            run.step();
        }
        Outcome {
            finished: run.finished,
            started: run.requests.len(),
            slow_since_fault: run.slow_since_fault(),
            pings: run.pings,
            decision: run.decision,
            pto: run.pto(),
        }
    }
}

/// The result of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) decision: Option<Decision>,
    pub(super) started: usize,
    pub(super) finished: u64,
    /// Requests sent or still waiting since the path became slow or dark.
    pub(super) slow_since_fault: usize,
    pub(super) pings: u64,
    pub(super) pto: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A new request.
    Request,
    /// A packet, sent at that time, reaches the server, with a request or without.
    AtServer(Option<usize>, Time),
    /// An ACK of the packet sent at that time arrives; the server delayed it by this duration.
    Acked(Time, Duration),
    First(usize),
    Fin(usize),
    Done(usize),
}

#[derive(Clone, Copy, Default)]
struct Request {
    sent: Time,
    size: u64,
    arrived: bool,
    done: bool,
}

struct Run {
    model: Model,
    rng: ChaCha8Rng,
    estimator: Rtt,
    monitor: MigrationMonitor,
    now: Time,
    order: u64,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    /// Ack-eliciting packets by the time of sending, with their request.
    outstanding: Vec<(Time, Option<usize>)>,
    last_sent: Time,
    probe_timeouts: u32,
    requests: Vec<Request>,
    finished: u64,
    pings: u64,
    decision: Option<Decision>,
}

impl Run {
    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// Returns a number between 0 and 1.
    fn random(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / f64::from(u32::MAX)
    }

    /// Returns when a packet sent at `at` arrives, unless it is lost.
    fn arrival(&mut self, at: Time) -> Option<Time> {
        let jitter = 1.0 + self.model.jitter * (2.0 * self.random() - 1.0);
        let lost =
            self.random() < self.model.loss || self.model.dark.is_some_and(|dark| at >= dark);
        let added = match self.model.slow {
            Some((from, added)) if at >= from => added,
            _ => Duration::ZERO,
        };
        (!lost).then(|| at + (self.model.rtt / 2).mul_f64(jitter) + added)
    }

    fn pto(&self) -> Duration {
        self.estimator.probe_timeout(self.model.granularity) + self.model.max_ack_delay
    }

    fn probe_timer(&self) -> Option<Time> {
        let backoff = 1 << self.probe_timeouts.min(20);
        (!self.outstanding.is_empty()).then(|| self.last_sent + self.pto() * backoff)
    }

    /// Handles the next event or timer.
    fn step(&mut self) {
        let event = self.events.peek().map(|Reverse((at, ..))| *at);
        let timers = [self.monitor.timeout(), self.probe_timer()];
        let timer = timers.into_iter().flatten().min();
        match (event, timer) {
            (Some(at), timer) if timer.is_none_or(|timer| at <= timer) => {
                self.now = at;
                if let Some(Reverse((_, _, event))) = self.events.pop() {
                    self.on_event(event);
                }
            }
            (_, timer) => {
                self.now = timer.unwrap_or(Time::MAX);
                self.on_timers();
            }
        }
        if self.monitor.wants_decision() {
            self.decision = self.monitor.decide(self.now, &self.paths());
        }
    }

    /// The standby path is always far better: only the detector prevents a move.
    fn paths(&self) -> [PathView; 2] {
        let view = |id, rtt, loss| PathView {
            id: PathId(id),
            validated: true,
            preferred: false,
            rtt: Some(rtt),
            loss,
        };
        [
            view(0, self.estimator.smoothed, self.model.loss),
            view(1, self.model.rtt / 3, 0.0),
        ]
    }

    fn on_timers(&mut self) {
        if self.probe_timer().is_some_and(|at| at <= self.now) {
            self.probe_timeouts += 1;
            let (now, pto) = (self.now, self.pto());
            self.monitor.on_probe_timeout(now, PathId::FIRST, pto);
            let oldest = self.outstanding.first().and_then(|(_, request)| *request);
            self.send(oldest);
            self.send(None);
        }
        if self.monitor.handle_timeout(self.now) == Wakeup::SendPing {
            self.pings += 1;
            self.send(None);
        }
    }

    /// Sends an ack-eliciting packet from the client.
    fn send(&mut self, request: Option<usize>) {
        let now = self.now;
        self.outstanding.push((now, request));
        self.last_sent = now;
        self.monitor.on_packet_sent(now, PathId::FIRST);
        if let Some(arrival) = self.arrival(now) {
            self.schedule(arrival, Event::AtServer(request, now));
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Request => self.request(),
            Event::AtServer(request, sent) => self.at_server(request, sent),
            Event::Acked(sent, delay) => self.acked(sent, delay),
            Event::First(request) => {
                self.monitor.on_packet_received(self.now, PathId::FIRST);
                self.monitor.on_response(self.now, stream(request as u64));
            }
            Event::Fin(request) => {
                let size = self.requests[request].size;
                let id = stream(request as u64);
                self.monitor.on_packet_received(self.now, PathId::FIRST);
                self.monitor.on_response(self.now, id);
                self.monitor.on_fin(self.now, id, size, 0);
            }
            Event::Done(request) => self.done(request),
        }
    }

    fn request(&mut self) {
        let index = self.requests.len();
        let size = self.model.sizes[self.rng.next_u32() as usize % self.model.sizes.len()];
        self.requests.push(Request {
            sent: self.now,
            size,
            ..Request::default()
        });
        self.monitor
            .on_stream_opened(self.now, stream(index as u64));
        self.send(Some(index));
        self.monitor.on_request_sent(self.now, stream(index as u64));
        if let Some(interval) = self.model.interval {
            self.schedule(self.now + interval, Event::Request);
        }
    }

    fn done(&mut self, request: usize) {
        self.monitor.on_packet_received(self.now, PathId::FIRST);
        self.monitor
            .on_stream_finished(self.now, stream(request as u64));
        self.requests[request].done = true;
        self.finished += 1;
        if self.model.interval.is_none() {
            self.schedule(self.now, Event::Request);
        }
    }

    fn at_server(&mut self, request: Option<usize>, sent: Time) {
        let new = request.filter(|&index| !self.requests[index].arrived);
        let limit = self.model.max_ack_delay;
        let Some(index) = new else {
            let delay = limit.mul_f64(self.random());
            return self.acknowledge(self.now + delay, sent, delay);
        };
        self.requests[index].arrived = true;
        let think = self.model.think.mul_f64(self.random());
        if think > limit {
            self.acknowledge(self.now + limit, sent, limit);
        }
        let ack = (think <= limit).then_some((sent, think));
        self.respond(self.now + think, index, ack);
    }

    fn acknowledge(&mut self, at: Time, sent: Time, delay: Duration) {
        if let Some(arrival) = self.arrival(at) {
            self.schedule(arrival, Event::Acked(sent, delay));
        }
    }

    /// Sends a response from the server; its first packet carries an ACK if one is due.
    fn respond(&mut self, at: Time, request: usize, ack: Option<(Time, Duration)>) {
        let packets = self.requests[request].size.div_ceil(PACKET).max(1);
        let spacing = Rate::from_gbps(10).time_for(weir_units::ByteSize::from_bytes(PACKET));
        let (mut first, mut last, mut fin) = (Time::MAX, at, at);
        for packet in 0..packets {
            let sent = at + spacing * packet;
            let is_tail = packet + 3 >= packets;
            let Some((left, arrival)) = self.delivery(sent, is_tail) else {
                return;
            };
            if packet == 0
                && let Some((acked, delay)) = ack
            {
                // The ACK in a retransmission is delayed by the same time.
                self.schedule(arrival, Event::Acked(acked, delay + left.since(sent)));
            }
            first = first.min(arrival);
            last = last.max(arrival);
            fin = arrival;
        }
        self.schedule(first, Event::First(request));
        self.schedule(fin, Event::Fin(request));
        self.schedule(last, Event::Done(request));
    }

    /// Returns when the delivered transmission of a response packet leaves and arrives, after
    /// retransmissions; `None` if it never arrives. Probe timeouts repair packets at the tail.
    fn delivery(&mut self, sent: Time, is_tail: bool) -> Option<(Time, Time)> {
        let mut leaves = sent;
        for attempt in 0..12 {
            if let Some(arrival) = self.arrival(leaves) {
                return Some((leaves, arrival));
            }
            leaves += if is_tail {
                self.pto() * (1 << attempt)
            } else {
                self.model.rtt + self.model.rtt / 8
            };
        }
        None
    }

    fn acked(&mut self, sent: Time, delay: Duration) {
        self.monitor.on_packet_received(self.now, PathId::FIRST);
        let Some(at) = self.outstanding.iter().position(|(at, _)| *at == sent) else {
            return;
        };
        let latest = self.now - sent;
        let adjusted =
            self.estimator
                .on_sample(self.now, latest, delay.min(self.model.max_ack_delay));
        let sample = if self.model.whole_ack_delay {
            latest - delay
        } else {
            adjusted
        };
        self.probe_timeouts = 0;
        let (now, pto) = (self.now, self.pto());
        self.monitor.on_rtt_sample(now, PathId::FIRST, sample, pto);
        self.outstanding.remove(at);
        self.repair(sent);
    }

    /// Declares packets lost that were sent one loss delay before an acknowledged one.
    fn repair(&mut self, acked: Time) {
        let threshold = self.estimator.loss_delay(self.model.granularity);
        let now = self.now;
        let mut lost = Vec::new();
        self.outstanding.retain(|(sent, request)| {
            let is_lost = *sent < acked && now.since(*sent) > threshold;
            if is_lost {
                lost.extend(*request);
            }
            !is_lost
        });
        for request in lost {
            if !self.requests[request].done {
                self.send(Some(request));
            }
        }
    }

    fn slow_since_fault(&self) -> usize {
        let fault = self.model.slow.map(|(from, _)| from).or(self.model.dark);
        let Some(fault) = fault else {
            return 0;
        };
        let sees = |request: &&Request| request.sent >= fault || !request.done;
        self.requests.iter().filter(sees).count()
    }
}
