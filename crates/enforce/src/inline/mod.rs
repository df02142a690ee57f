//! In line: an element, such as transparent congestion control, between two interfaces of a router or of
//! a host of virtual machines, like a cable.
//!
//! A frame received at one port leaves by the other with its Ethernet addresses. IP packets pass the
//! element segment by segment, as in a switch ([`segment`](crate::segment)). Neighbouring segments that
//! are changed alike leave as super-packets again. Other frames pass unchanged. When the runner ends,
//! packets held by the element are lost, and the cable ends too, unless a [`bypass`] is armed at its
//! interfaces.
//!
//! An [`Enforcer`] is such a cable between two interfaces by name, with transparent congestion control by
//! a policy. An [`AgentBridge`] has queues, and SED's agent to monitor them.
//!
//! ```no_run
//! use weir_enforce::inline::Inline;
//! use weir_enforce::port::PacketSocket;
//! use weir_enforce::segment::Segment;
//! use weir_fabric::Element;
//!
//! # fn example(element: impl Element<Segment> + Send + 'static) -> Result<(), Box<dyn std::error::Error>> {
//! let ports = [PacketSocket::bind("lan")?.into(), PacketSocket::bind("wan")?.into()];
//! let mut cable = Inline::new(ports, element);
//! let stop = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK)?;
// Another thread writes to `stop` to end it.
//! cable.run(&stop)?;
//! println!("{} frames", cable.counters().frames);
//! # Ok(())
//! # }
//! ```

mod agent_bridge;
mod agent_metrics;
mod check;
mod counters;
mod enforcer;
mod interface_pair;
mod rules;
#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use weir_fabric::{EgressPort, Element, Faults, Link, PortIndex, Queue, Routes, Switch};
use weir_units::{Duration, Rate, Time};

use crate::bypass::{
    self, Arming, Bypass, BypassCounts, BypassError, FastPathCounts, Pause, monotonic,
};
use crate::operation::InterfaceFrames;
use crate::port::{PacketSocket, Port};
use crate::segment::{Egress, FramePools, Segment, SegmentRun};

pub use agent_bridge::{AgentBridge, TxQueue, Waker};
pub use agent_metrics::register_agent_metrics;
pub use check::check_rule;
pub use counters::InlineCounters;
pub use enforcer::Enforcer;
pub use interface_pair::AttachError;
use interface_pair::InterfacePair;

/// The number of frames taken from one port before the other one's turn.
const FRAMES: usize = 32;
/// The longest sleep without an event.
const IDLE: Duration = Duration::from_secs(1);
/// The two ports: frames received at one leave by the other.
const SIDES: [PortIndex; 2] = [PortIndex::new(0), PortIndex::new(1)];

/// Two ports, and an element between them.
#[derive(Debug)]
pub struct Inline {
    ports: [Port; 2],
    switch: Switch<Segment>,
    pool: FramePools,
    /// The segments about to leave by each port.
    leaving: [Option<SegmentRun>; 2],
    begun: Instant,
    /// By the port that frames came in at, or were to leave by.
    counters: [InlineCounters; 2],
    bypass: Option<Bypass>,
}

impl Inline {
    /// Creates a cable with an element between two ports.
    pub fn new(ports: [Port; 2], element: impl Element<Segment>) -> Self {
        // Only the element holds packets: the links are infinitely fast, the queues unlimited.
        let pipe = |seed| {
            let link = Link::new(Rate::MAX, Duration::ZERO);
            EgressPort::new(Queue::new([], seed), link, Faults::none())
        };
        Self::with_egress_ports(ports, [pipe(0), pipe(1)], element)
    }

    /// Creates a cable with an egress port in front of each port.
    fn with_egress_ports(
        ports: [Port; 2],
        pipes: [EgressPort<Segment>; 2],
        element: impl Element<Segment>,
    ) -> Self {
        let routes = Routes::new().with(0, [SIDES[0]]).with(1, [SIDES[1]]);
        let switch = Switch::new(pipes, routes, 0);
        let Ok(switch) = switch else {
            unreachable!("both routes lead to ports that are there");
        };
        Self {
            ports,
            switch: switch.with_element(element),
            pool: FramePools::new(),
            leaving: [None, None],
            begun: Instant::now(),
            counters: <[InlineCounters; 2]>::default(),
            bypass: None,
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> InlineCounters {
        self.counters.into_iter().sum()
    }

    /// Returns the counters by interface, with those of a fast path.
    fn frames_of(
        &self,
        ends: &InterfacePair,
        fast_path: Option<FastPathCounts>,
    ) -> Vec<InterfaceFrames> {
        let fast = fast_path.unwrap_or_default();
        let fast = fast.frames.into_iter().zip(fast.bytes);
        let sides = ends.names.iter().zip(ends.overrun).zip(&self.counters);
        (sides.zip(fast))
            .map(
                |(((name, overrun), of), (fast_frames, fast_bytes))| InterfaceFrames {
                    interface: name.clone(),
                    read: of.frames,
                    untouched: of.untouched,
                    unreadable: of.unreadable,
                    overrun,
                    late: of.late,
                    full: of.full,
                    undeliverable: of.down + of.too_long,
                    fast_frames,
                    fast_bytes,
                },
            )
            .collect()
    }

    /// Has the frames of both interfaces pass without this process if it dies or hangs. Forward frames
    /// from now on.
    /// Its fast path, if it is opened, has room for `fast_connections`.
    fn arm_bypass(&mut self, fast_connections: u32) -> Result<Arming, BypassError> {
        let [Port::PacketSocket(one), Port::PacketSocket(other)] = &self.ports else {
            unreachable!("a TAP interface ends with its process, and is not joined by name");
        };
        let (bypass, arming) = Bypass::arm([one, other], fast_connections)?;
        self.bypass = Some(bypass);
        Ok(arming)
    }

    /// Removes the bypass that a process has left at both interfaces.
    fn remove_bypass(&self) -> Result<(), BypassError> {
        let index = |port: &Port| match port {
            Port::PacketSocket(socket) => PacketSocket::interface(socket),
            Port::Tap(_) => 0,
        };
        bypass::remove([index(&self.ports[0]), index(&self.ports[1])])
    }

    /// Returns the counters of the bypass, if one is armed.
    fn bypass_counts(&self) -> Option<BypassCounts> {
        self.bypass.as_ref().map(Bypass::counts)
    }

    /// Returns the element, if it has this type.
    pub fn element<E: Element<Segment>>(&self) -> Option<&E> {
        self.switch.element()
    }

    /// Forwards frames until `stop` is readable.
    ///
    /// # Errors
    /// The system's error while waiting. A port that is down is no error; see [`InlineCounters::down`].
    pub fn run(&mut self, stop: impl AsFd) -> io::Result<()> {
        while !self.run_for(&stop, Duration::MAX)? {}
        Ok(())
    }

    /// Forwards frames for at most `span`; returns whether `stop` is readable. Call it again to continue.
    ///
    /// # Errors
    /// See [`Self::run`].
    pub fn run_for(&mut self, stop: impl AsFd, span: Duration) -> io::Result<bool> {
        let until = self.now().checked_add(span).unwrap_or(Time::MAX);
        loop {
            let stopped = self.turn(stop.as_fd(), until)?;
            if stopped || self.now() >= until {
                return Ok(stopped);
            }
        }
    }

    /// Waits for an event, at most until `until`, and handles it; returns whether `stop` is readable.
    fn turn(&mut self, stop: BorrowedFd<'_>, until: Time) -> io::Result<bool> {
        let (stopped, ready) = self.wait(stop, until)?;
        self.beat();
        for side in [0, 1] {
            if ready.get(side) == Some(&true) {
                self.receive_frames(side);
            }
        }
        self.handle_timeout();
        Ok(stopped)
    }

    /// Returns the time of the element's clock.
    fn now(&self) -> Time {
        Time::ZERO + Duration::from(self.begun.elapsed())
    }

    /// Returns the next timeout of the element or of a packet on a link.
    fn timeout(&self) -> Option<Time> {
        let leaves = |side| self.switch.timeout(side);
        let leaving = SIDES.into_iter().filter_map(leaves);
        leaving.chain(self.switch.timeout_of_elements()).min()
    }

    /// Waits for an event or a frame; returns whether `stop` is ready, and which ports are.
    fn wait(&self, stop: BorrowedFd<'_>, until: Time) -> io::Result<(bool, [bool; 2])> {
        let now = self.now();
        let due = self.timeout().unwrap_or(Time::MAX).min(until);
        let beat = (self.bypass.as_ref()).map_or(IDLE, |it| it.until_next_beat(monotonic()));
        let nanos = due.since(now.min(due)).min(beat).as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let [one, other] = &self.ports;
        let mut sources = [
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(one.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(other.as_fd(), PollFlags::IN),
        ];
        match poll(&mut sources, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [stop, one, other] = sources.map(|source| !source.revents().is_empty());
        Ok((stop, [one, other]))
    }

    /// Beats for the bypass. After a long pause, what has waited meanwhile is dropped first: until the beat
    /// nothing new can have joined it.
    fn beat(&mut self) {
        if self.pause() == Pause::Long {
            self.drop_late();
        }
        if let Some(bypass) = &mut self.bypass {
            bypass.beat(monotonic());
        }
    }

    fn pause(&self) -> Pause {
        let bypass = self.bypass.as_ref();
        bypass.map_or(Pause::None, |bypass| bypass.pause(monotonic()))
    }

    /// Drops the frames that wait in the sockets, and the packets that are due to leave the element or
    /// its links.
    fn drop_late(&mut self) {
        let now = self.now();
        self.switch.handle_timeout(now, |_, _| {});
        for (side, counters) in self.counters.iter_mut().enumerate() {
            counters.late += self.ports[side].discard();
            // What is to leave by the other port came in at this one.
            while self.switch.poll_delivered(now, SIDES[1 - side]).is_some() {
                counters.late += 1;
            }
        }
    }

    /// Reads frames from one side.
    fn receive_frames(&mut self, side: usize) {
        for _ in 0..FRAMES {
            if self.pause() != Pause::None {
                break;
            }
            let Some(port) = self.ports.get(side) else {
                return;
            };
            let frame = self.pool.reading();
            let length = match port.receive(frame.buffer_mut()) {
                Ok(Some(length)) => length,
                Ok(None) => break,
                // The interface is down; the error is returned once.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => break,
                Err(_) => {
                    self.counters[side & 1].unreadable += 1;
                    continue;
                }
            };
            self.counters[side & 1].frames += 1;
            if frame.parse(length).is_ok() {
                self.pass_segments(side);
            } else {
                self.pass_untouched(side, length);
            }
        }
        self.flush();
    }

    /// Passes the segments of the frame just read to the element, one by one.
    fn pass_segments(&mut self, side: usize) {
        let (ingress, now) = (SIDES[side & 1], self.now());
        let to = u32::from(side == 0);
        let frame = self.pool.keep(Duration::ZERO);
        for index in 0..frame.frame.segments() {
            let segment = Segment::new(Arc::clone(&frame), index, to);
            self.counters[side & 1].segments += 1;
            self.switch.forward(now, ingress, segment, |_, _| {});
            self.collect(now);
        }
    }

    /// Forwards a frame that the element does not handle unchanged, after the earlier ones.
    fn pass_untouched(&mut self, side: usize, length: usize) {
        self.counters[side & 1].untouched += 1;
        self.flush();
        let other = 1 - (side & 1);
        let frame = self.pool.reading().buffer_mut();
        if let Some(bytes) = frame.get(..length) {
            send(
                &self.ports[other],
                &[IoSlice::new(bytes)],
                &mut self.counters[other],
            );
        }
    }

    /// Runs the element's timeout if due, and sends packets that have passed their links.
    fn handle_timeout(&mut self) {
        let now = self.now();
        if self.timeout().is_some_and(|time| time <= now) {
            if self
                .switch
                .timeout_of_elements()
                .is_some_and(|time| time <= now)
            {
                self.switch.handle_timeout(now, |_, _| {});
            }
            self.collect(now);
            self.flush();
        }
    }

    /// Collects the packets that the element has released.
    fn collect(&mut self, now: Time) {
        for side in [0, 1] {
            while let Some(segment) = self.switch.poll_delivered(now, SIDES[side]) {
                let run = &mut self.leaving[side];
                let extends = |run: &mut SegmentRun| run.extend(&segment, Egress::Network);
                if run.as_mut().is_some_and(extends) {
                    continue;
                }
                if let Some(run) = run.replace(SegmentRun::new(&segment)) {
                    send(
                        &self.ports[side],
                        &run.frame().slices(),
                        &mut self.counters[side],
                    );
                }
            }
        }
    }

    fn flush(&mut self) {
        for side in [0, 1] {
            if let Some(run) = self.leaving[side].take() {
                send(
                    &self.ports[side],
                    &run.frame().slices(),
                    &mut self.counters[side],
                );
            }
        }
    }
}

fn send(port: &Port, frame: &[IoSlice<'_>], counters: &mut InlineCounters) {
    match port.send(frame) {
        Ok(true) => {}
        Ok(false) => counters.full += 1,
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOMEM) => counters.full += 1,
            Some(libc::EMSGSIZE) => counters.too_long += 1,
            _ => counters.down += 1,
        },
    }
}
