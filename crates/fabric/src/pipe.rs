//! A pipe: one direction between two hosts, read from left to right: queue, link, faults.

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::counters::{Counters, DropReason, Tally};
use crate::faults::{FaultSettings, Faults, Script};
use crate::link::Link;
use crate::packet::Packet;
use crate::queue::{Admission, Queue};
use crate::rule::Rule;

/// A queue, the link that empties it, and the faults at the link's far end.
///
/// Faults come last, as they do on a cable: a lost packet has taken its share of the queue and of
/// the rate, and its mark is lost with it; duplication and jitter act on what the link delivers.
///
/// Drive it by [`Self::send`], and by [`Self::receive`] until `None` whenever [`Self::next_time`]
/// is reached. Called late, it does what would have happened in time; only the caller sees it late.
/// `now` must not run backwards.
#[derive(Debug)]
pub struct Pipe<P> {
    queue: Queue<P>,
    link: Link<P>,
    faults: Faults<P>,
    entrance: Counters,
}

impl<P: Packet + Clone> Pipe<P> {
    /// Puts the three in a row.
    pub fn new(queue: Queue<P>, link: Link<P>, faults: Faults<P>) -> Self {
        Self {
            queue,
            link,
            faults,
            entrance: Counters::default(),
        }
    }

    /// A packet enters, and this is what the queue did with it. One larger than the link's MTU is
    /// dropped before the queue.
    pub fn send(&mut self, now: Time, packet: P) -> Admission {
        self.advance(now);
        self.entrance.arrived.record(packet.length());
        if !self.link.carries(&packet) {
            self.entrance
                .dropped
                .record(DropReason::Mtu, packet.length());
            return Admission::Dropped(DropReason::Mtu);
        }
        let admission = self.queue.push(packet);
        // A link that is idle now had nobody waiting: the next to go is this packet.
        if self.link.free_at().is_some_and(|free| free <= now)
            && let Some(packet) = self.queue.pop()
        {
            self.link.transmit(now, packet);
        }
        admission
    }

    /// When [`Self::receive`] may have something next; `None` while nothing is on the way.
    pub fn next_time(&self) -> Option<Time> {
        [self.link.next_time(), self.faults.next_time()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next packet that has come out by `now`.
    pub fn receive(&mut self, now: Time) -> Option<P> {
        self.advance(now);
        self.faults.receive(now)
    }

    /// Does what is due by `now` inside the pipe, so that what is read from it is up to date.
    pub fn advance(&mut self, now: Time) {
        while let Some(free) = self.link.free_at().filter(|&free| free <= now) {
            let Some(packet) = self.queue.pop() else {
                break;
            };
            self.link.transmit(free, packet);
        }
        while let Some((arrival, packet)) = self.link.receive(now) {
            self.faults.send(arrival, packet);
        }
    }

    /// Changes the link's rate from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.link.set_rate(now, rate);
        self.advance(now);
    }

    /// Changes the propagation delay from `now` on, for packets whose transmission starts then.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.advance(now);
        self.link.set_delay(delay);
    }

    /// Changes the link's MTU for packets to come.
    pub fn set_mtu(&mut self, mtu: ByteSize) {
        self.link.set_mtu(mtu);
    }

    /// Replaces the queue's rules for packets to come.
    pub fn set_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        self.queue.set_rules(rules);
    }

    /// Changes the random faults for packets that reach the link's far end after `now`.
    pub fn set_faults(&mut self, now: Time, settings: FaultSettings) {
        self.advance(now);
        self.faults.set(settings);
    }

    /// Starts or ends a script, for packets that reach the link's far end after `now`.
    pub fn set_script(&mut self, now: Time, script: Option<Script<P>>) {
        self.advance(now);
        self.faults.set_script(script);
    }

    /// The queue; up to date after [`Self::advance`], as is the rest.
    pub fn queue(&self) -> &Queue<P> {
        &self.queue
    }

    /// The link.
    pub fn link(&self) -> &Link<P> {
        &self.link
    }

    /// The faults.
    pub fn faults(&self) -> &Faults<P> {
        &self.faults
    }

    /// What waits, is on the way or is delayed.
    pub fn inside(&self) -> Tally {
        self.queue.backlog() + self.link.in_flight() + self.faults.held()
    }

    /// What became of the packets that entered. These counters balance with [`Self::inside`].
    pub fn counters(&self) -> Counters {
        let (queue, faults) = (self.queue.counters(), self.faults.counters());
        Counters {
            arrived: self.entrance.arrived,
            duplicated: faults.duplicated,
            departed: faults.departed,
            dropped: self.entrance.dropped + queue.dropped + faults.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::Numbered;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// 1 byte takes 1 ns, and 100 ns pass until it arrives.
    fn pipe(rules: impl Into<Vec<Rule>>) -> Pipe<Numbered> {
        let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(100));
        Pipe::new(Queue::new(rules, 1), link, Faults::none())
    }

    fn drain(pipe: &mut Pipe<Numbered>) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        while let Some(time) = pipe.next_time() {
            out.extend(
                pipe.receive(time)
                    .map(|packet| (time.as_nanos(), packet.number)),
            );
        }
        out
    }

    #[test]
    fn the_packet_being_sent_is_not_in_the_queue() {
        let mut pipe = pipe([Rule::tail_drop(ByteSize::from_bytes(10))]);
        assert_eq!(pipe.send(at(0), Numbered::new(0, 10)), Admission::Queued);
        assert_eq!(pipe.send(at(0), Numbered::new(1, 10)), Admission::Queued);
        assert_eq!(
            pipe.send(at(9), Numbered::new(2, 10)),
            Admission::Dropped(DropReason::Full)
        );
        // The first is out at 10 ns, before what arrives then.
        assert_eq!(pipe.send(at(10), Numbered::new(3, 10)), Admission::Queued);
        assert_eq!(drain(&mut pipe), [(110, 0), (120, 1), (130, 3)]);
    }

    #[test]
    fn larger_than_the_mtu_is_dropped_for_that_reason() {
        let mut pipe = pipe([]);
        pipe.set_mtu(ByteSize::from_bytes(9));
        let admission = pipe.send(at(0), Numbered::new(0, 10));
        assert_eq!(admission, Admission::Dropped(DropReason::Mtu));
        assert_eq!(pipe.counters().dropped.by(DropReason::Mtu).packets, 1);
        assert_eq!(pipe.next_time(), None);
    }

    #[test]
    fn a_stopped_pipe_keeps_its_packets_until_it_gets_a_rate() {
        let mut pipe = pipe([]);
        pipe.set_rate(at(0), Rate::ZERO);
        pipe.send(at(0), Numbered::new(0, 10));
        pipe.send(at(5), Numbered::new(1, 10));
        assert_eq!(pipe.next_time(), None);
        assert_eq!(pipe.queue().backlog().packets, 2);
        pipe.set_rate(at(1000), Rate::from_gbps(8));
        assert_eq!(drain(&mut pipe), [(1110, 0), (1120, 1)]);
    }

    #[test]
    fn a_link_that_goes_down_loses_what_is_on_the_way() {
        let mut pipe = pipe([]);
        pipe.send(at(0), Numbered::new(0, 10));
        pipe.send(at(50), Numbered::new(1, 10));
        // The first has arrived at 110 ns; nobody has asked for it yet.
        pipe.set_faults(
            at(120),
            FaultSettings {
                down: true,
                ..FaultSettings::default()
            },
        );
        assert_eq!(drain(&mut pipe), [(110, 0)]);
        assert_eq!(pipe.counters().dropped.by(DropReason::Down).packets, 1);
    }

    #[test]
    fn rules_and_delay_change_under_way() {
        let mut pipe = pipe([]);
        pipe.send(at(0), Numbered::new(0, 10));
        pipe.set_delay(at(0), Duration::from_nanos(500));
        pipe.set_rules([Rule::tail_drop(ByteSize::ZERO)]);
        assert_eq!(
            pipe.send(at(20), Numbered::new(1, 10)),
            Admission::Dropped(DropReason::Full)
        );
        pipe.set_rules([]);
        pipe.send(at(20), Numbered::new(2, 10));
        assert_eq!(drain(&mut pipe), [(110, 0), (530, 2)]);
    }
}
