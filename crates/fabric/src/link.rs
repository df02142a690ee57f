//! A link: packets are sent one after the other at a rate, and arrive a propagation delay later.
//!
//! Every packet's arrival is known when its transmission starts, so a link is a FIFO with arrival
//! times: whoever drives it needs one timer per link and none per packet.

use std::collections::VecDeque;

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::counters::{Counters, Tally};
use crate::packet::Packet;

/// One direction of a cable between two ports, with the transmitter at its head.
#[derive(Clone, Debug)]
pub struct Link<P> {
    rate: Rate,
    delay: Duration,
    mtu: ByteSize,
    framing: ByteSize,
    clock: TransmitterClock,
    last_arrival: Time,
    on_the_way: VecDeque<(Time, P)>,
    in_flight: Tally,
    counters: Counters,
}

impl<P: Packet> Link<P> {
    /// An idle link. [`Rate::MAX`] takes no time for transmission; at [`Rate::ZERO`] nothing starts.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            mtu: ByteSize::MAX,
            framing: ByteSize::ZERO,
            clock: TransmitterClock::default(),
            last_arrival: Time::ZERO,
            on_the_way: VecDeque::new(),
            in_flight: Tally::ZERO,
            counters: Counters::default(),
        }
    }

    /// The largest IP packet that this link carries; unlimited unless set.
    pub fn with_mtu(self, mtu: ByteSize) -> Self {
        Self { mtu, ..self }
    }

    /// What each packet takes on the wire beside its IP length: 38 bytes on Ethernet (preamble 8,
    /// header 14, check sequence 4, gap 12). Nothing unless set.
    pub fn with_framing(self, framing: ByteSize) -> Self {
        Self { framing, ..self }
    }

    /// The rate of transmission.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The propagation delay.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// The largest IP packet that this link carries.
    pub fn mtu(&self) -> ByteSize {
        self.mtu
    }

    /// Changes the MTU for packets to come.
    pub fn set_mtu(&mut self, mtu: ByteSize) {
        self.mtu = mtu;
    }

    /// Changes the rate from `now` on. A transmission under way ends as it began.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.clock.change_rate();
        if self.rate.is_zero() {
            // What waited for a rate starts now, not when the link last fell idle.
            self.clock.start_no_earlier(now);
        }
        self.rate = rate;
    }

    /// Changes the propagation delay of packets to come. Under a shorter delay these do not
    /// overtake: they arrive with the last one that is on the way.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Whether the packet is within the MTU.
    pub fn carries(&self, packet: &P) -> bool {
        packet.length() <= self.mtu
    }

    /// When the next transmission can start; never at rate zero.
    pub fn free_at(&self) -> Option<Time> {
        if self.rate.is_zero() {
            None
        } else {
            Some(self.clock.reading())
        }
    }

    /// Starts the transmission of a packet that is `ready` to go: then, or right behind the one
    /// before it. At rate zero it would never arrive: ask [`Self::free_at`] first.
    pub fn transmit(&mut self, ready: Time, packet: P) {
        self.clock.start_no_earlier(ready);
        self.clock
            .transmit(packet.length() + self.framing, self.rate);
        self.last_arrival = self.last_arrival.max(self.clock.reading() + self.delay);
        self.counters.arrived.record(packet.length());
        self.in_flight.record(packet.length());
        self.on_the_way.push_back((self.last_arrival, packet));
    }

    /// When the next packet arrives at the far end.
    pub fn next_time(&self) -> Option<Time> {
        self.on_the_way
            .front()
            .map(|&(arrival, _)| arrival)
            .filter(|&arrival| arrival < Time::MAX)
    }

    /// The next packet that has arrived at the far end by `now`, and when it did.
    pub fn receive(&mut self, now: Time) -> Option<(Time, P)> {
        self.next_time().filter(|&arrival| arrival <= now)?;
        let (arrival, packet) = self.on_the_way.pop_front()?;
        self.in_flight.remove(packet.length());
        self.counters.departed.record(packet.length());
        Some((arrival, packet))
    }

    /// What is being sent or on the way.
    pub fn in_flight(&self) -> Tally {
        self.in_flight
    }

    /// What became of the packets that came here.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// When the transmitter falls idle, to a fraction of a nanosecond: a 64-byte packet takes 5.12 ns
/// at 100 Gbit/s, and rounding each one up would cost 15 % of the rate.
#[derive(Clone, Copy, Debug, Default)]
struct TransmitterClock {
    nanosecond: Time,
    /// Beyond the nanosecond, in units of one nanosecond divided by the rate in bit/s.
    fraction: u64,
}

impl TransmitterClock {
    /// The first whole nanosecond at which the transmitter is idle.
    fn reading(&self) -> Time {
        if self.fraction == 0 {
            self.nanosecond
        } else {
            self.nanosecond + Duration::from_nanos(1)
        }
    }

    fn start_no_earlier(&mut self, ready: Time) {
        if ready > self.reading() {
            *self = Self {
                nanosecond: ready,
                fraction: 0,
            };
        }
    }

    /// The fraction is in units of the old rate: round it up.
    fn change_rate(&mut self) {
        *self = Self {
            nanosecond: self.reading(),
            fraction: 0,
        };
    }

    fn transmit(&mut self, size: ByteSize, rate: Rate) {
        if rate == Rate::MAX {
            return;
        }
        let rate = rate.bits_per_second();
        let work = u128::from(size.bytes()) * 8 * 1_000_000_000 + u128::from(self.fraction);
        // A division of 64 bits is several times faster, and enough for every usual packet.
        let (nanos, rest) = match u64::try_from(work) {
            Ok(work) => (work.checked_div(rate), work.checked_rem(rate)),
            Err(_) => {
                let nanos = work.checked_div(u128::from(rate));
                let rest = work.checked_rem(u128::from(rate));
                (
                    nanos.and_then(|nanos| u64::try_from(nanos).ok()),
                    rest.map(|rest| rest as u64),
                )
            }
        };
        self.nanosecond += nanos.map_or(Duration::MAX, Duration::from_nanos);
        self.fraction = rest.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::Numbered;

    fn arrivals(link: &mut Link<Numbered>) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| link.receive(Time::MAX))
            .map(|(time, packet)| (time.as_nanos(), packet.number))
            .collect()
    }

    #[test]
    fn transmission_and_propagation_add_up() {
        let mut link = Link::new(Rate::from_gbps(1), Duration::from_micros(25));
        link.transmit(Time::from_nanos(100), Numbered::new(0, 1500));
        link.transmit(Time::from_nanos(100), Numbered::new(1, 500));
        link.transmit(Time::from_nanos(50_000), Numbered::new(2, 1500));
        assert_eq!(
            link.in_flight(),
            Tally {
                packets: 3,
                size: ByteSize::from_bytes(3500)
            }
        );
        assert_eq!(
            link.next_time(),
            Some(Time::from_nanos(100 + 12_000 + 25_000))
        );
        assert!(link.receive(Time::from_nanos(37_099)).is_none());
        assert_eq!(arrivals(&mut link), [(37_100, 0), (41_100, 1), (87_000, 2)]);
        assert_eq!(link.in_flight(), Tally::ZERO);
    }

    #[test]
    fn framing_takes_time_on_the_wire() {
        let framing = ByteSize::from_bytes(38);
        let mut link = Link::new(Rate::from_gbps(1), Duration::ZERO).with_framing(framing);
        link.transmit(Time::ZERO, Numbered::new(0, 1500));
        assert_eq!(link.free_at(), Some(Time::from_nanos(1538 * 8)));
    }

    #[test]
    fn fractions_of_a_nanosecond_do_not_add_up() {
        let mut link = Link::new(Rate::from_gbps(100), Duration::ZERO);
        for number in 0..1_000_000 {
            link.transmit(Time::ZERO, Numbered::new(number, 64));
        }
        assert_eq!(link.free_at(), Some(Time::from_nanos(5_120_000)));
    }

    #[test]
    fn an_unbounded_link_only_delays() {
        let mut link = Link::new(Rate::MAX, Duration::from_nanos(5));
        (0..3).for_each(|number| link.transmit(Time::from_nanos(9), Numbered::new(number, 1500)));
        assert_eq!(arrivals(&mut link), [(14, 0), (14, 1), (14, 2)]);
    }

    #[test]
    fn a_stopped_link_starts_when_it_gets_a_rate() {
        let mut link = Link::new(Rate::ZERO, Duration::ZERO);
        assert_eq!(link.free_at(), None);
        link.set_rate(Time::from_nanos(70), Rate::from_gbps(8));
        assert_eq!(link.free_at(), Some(Time::from_nanos(70)));
        link.transmit(Time::from_nanos(10), Numbered::new(0, 100));
        assert_eq!(arrivals(&mut link), [(170, 0)]);
    }

    #[test]
    fn at_rate_zero_a_packet_never_arrives() {
        let mut link = Link::new(Rate::ZERO, Duration::ZERO);
        link.transmit(Time::ZERO, Numbered::new(0, 100));
        assert_eq!(link.next_time(), None);
        assert!(link.receive(Time::MAX).is_none());
        assert_eq!(link.in_flight().packets, 1);
    }

    #[test]
    fn a_new_rate_applies_to_the_next_packet() {
        let mut link = Link::new(Rate::from_gbps(8), Duration::ZERO);
        link.transmit(Time::ZERO, Numbered::new(0, 1000));
        link.set_rate(Time::from_nanos(500), Rate::from_gbps(4));
        link.transmit(Time::from_nanos(500), Numbered::new(1, 1000));
        assert_eq!(arrivals(&mut link), [(1000, 0), (3000, 1)]);
    }

    #[test]
    fn a_shorter_delay_does_not_reorder() {
        let mut link = Link::new(Rate::from_gbps(8), Duration::from_nanos(5000));
        link.transmit(Time::ZERO, Numbered::new(0, 1000));
        link.set_delay(Duration::from_nanos(10));
        link.transmit(Time::ZERO, Numbered::new(1, 1000));
        link.transmit(Time::from_nanos(9000), Numbered::new(2, 1000));
        assert_eq!(arrivals(&mut link), [(6000, 0), (6000, 1), (10_010, 2)]);
    }

    #[test]
    fn the_mtu_is_the_largest_that_passes() {
        let link = Link::new(Rate::MAX, Duration::ZERO).with_mtu(ByteSize::from_bytes(1500));
        assert!(link.carries(&Numbered::new(0, 1500)) && !link.carries(&Numbered::new(0, 1501)));
    }
}
