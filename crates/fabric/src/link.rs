//! A link: packets are sent one after the other at a rate, and arrive a propagation delay later.
//!
//! Every packet's arrival is known when its transmission starts, so that what is on a link is a FIFO
//! with arrival times: whoever drives it needs one timer per link and none per packet.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Duration, Rate, Time};

/// The bytes of Ethernet framing that a link carries per packet: preamble and start delimiter 8,
/// header 14, frame check sequence 4, gap 12 (IEEE 802.3).
pub const ETHERNET_FRAMING: ByteSize = ByteSize::from_bytes(38);

/// One direction of a cable between two ports, with the transmitter at its head: when what arrives.
/// The packets themselves are kept by the [`EgressPort`](crate::EgressPort) that the link belongs to.
#[derive(Clone, Debug)]
pub struct Link {
    rate: Rate,
    delay: Duration,
    mtu: ByteSize,
    framing: ByteSize,
    clock: TransmitterClock,
    /// When the next transmission can start; [`Time::MAX`] at rate zero.
    free: Time,
    work: TransmissionTime,
    last_arrival: Time,
}

impl Link {
    /// An idle link. [`Rate::MAX`] takes no time for transmission; at [`Rate::ZERO`] nothing starts.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            mtu: ByteSize::MAX,
            framing: ByteSize::ZERO,
            clock: TransmitterClock::default(),
            free: if rate.is_zero() {
                Time::MAX
            } else {
                Time::ZERO
            },
            work: TransmissionTime::of(ByteSize::ZERO, rate),
            last_arrival: Time::ZERO,
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

    /// What each packet takes on the wire beside its IP length.
    pub fn framing(&self) -> ByteSize {
        self.framing
    }

    pub(crate) fn set_mtu(&mut self, mtu: ByteSize) {
        self.mtu = mtu;
    }

    /// Changes the rate from `now` on. A transmission under way ends as it began; what was to follow it
    /// from `follows` on is to be transmitted anew, and arrives no earlier than `last_arrival`.
    pub(crate) fn set_rate(
        &mut self,
        now: Time,
        rate: Rate,
        follows: Option<Time>,
        last_arrival: Time,
    ) {
        match follows {
            Some(time) if time < Time::MAX => self.clock.set(time),
            _ => self.clock.round_up(),
        }
        if self.rate.is_zero() {
            // What waited for a rate starts now, not when the link last fell idle.
            self.clock.start_no_earlier(now);
        }
        self.rate = rate;
        self.work = TransmissionTime::of(ByteSize::ZERO, rate);
        self.last_arrival = last_arrival;
        self.free = if rate.is_zero() {
            Time::MAX
        } else {
            self.clock.reading()
        };
    }

    /// Changes the propagation delay of packets to come, which arrive no earlier than `last_arrival`.
    pub(crate) fn set_delay(&mut self, delay: Duration, last_arrival: Time) {
        self.delay = delay;
        self.last_arrival = last_arrival;
    }

    /// When the next transmission can start; [`Time::MAX`] at rate zero, which is never.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free
    }

    /// Transmits a packet that is `ready` to go: then, or right behind the one before it. Tells when
    /// its transmission starts, and when it arrives at the far end; both are never at rate zero.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, ready: Time, length: ByteSize) -> (Time, Time) {
        if self.free == Time::MAX {
            return (Time::MAX, Time::MAX);
        }
        let start = self.free.max(ready);
        if ready > self.free {
            self.clock.set(ready);
        }
        if self.rate != Rate::MAX {
            let size = length + self.framing;
            if size != self.work.size {
                self.work = TransmissionTime::of(size, self.rate);
            }
            self.clock.spend(&self.work, self.rate);
        }
        self.free = self.clock.reading();
        self.last_arrival = self.last_arrival.max(self.free + self.delay);
        (start, self.last_arrival)
    }

    /// What the link remembers of what it has sent.
    #[inline]
    pub(crate) fn snapshot(&self) -> TransmitSnapshot {
        TransmitSnapshot {
            clock: self.clock,
            last_arrival: self.last_arrival,
        }
    }

    /// As though nothing had been sent since that moment, at a rate that is the same as then.
    pub(crate) fn restore(&mut self, moment: TransmitSnapshot) {
        self.clock = moment.clock;
        self.last_arrival = moment.last_arrival;
        if !self.rate.is_zero() {
            self.free = self.clock.reading();
        }
    }
}

/// What a link remembers of what it has sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransmitSnapshot {
    clock: TransmitterClock,
    last_arrival: Time,
}

impl TransmitSnapshot {
    /// When the next transmission could start.
    pub(crate) fn free_at(self) -> Time {
        self.clock.reading()
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
    #[inline]
    fn reading(&self) -> Time {
        self.nanosecond + Duration::from_nanos(u64::from(self.fraction > 0))
    }

    fn start_no_earlier(&mut self, ready: Time) {
        if ready > self.reading() {
            self.set(ready);
        }
    }

    #[inline]
    fn set(&mut self, nanosecond: Time) {
        *self = Self {
            nanosecond,
            fraction: 0,
        };
    }

    /// The fraction is in units of the old rate.
    fn round_up(&mut self) {
        self.set(self.reading());
    }

    #[inline]
    fn spend(&mut self, work: &TransmissionTime, rate: Rate) {
        self.nanosecond += work.time;
        // Both are smaller than the rate; their sum may be larger than 64 bits hold.
        let (sum, carry) = self.fraction.overflowing_add(work.rest);
        if carry || sum >= rate.bits_per_second() {
            self.nanosecond += Duration::from_nanos(1);
            self.fraction = sum.wrapping_sub(rate.bits_per_second());
        } else {
            self.fraction = sum;
        }
    }
}

/// How long a transmission takes. Packets of the same size follow each other, and a division costs
/// more than all else that a link does: the last result is kept.
#[derive(Clone, Copy, Debug)]
struct TransmissionTime {
    size: ByteSize,
    time: Duration,
    /// Beyond the whole nanoseconds, in units of one nanosecond divided by the rate in bit/s.
    rest: u64,
}

impl TransmissionTime {
    fn of(size: ByteSize, rate: Rate) -> Self {
        let rate = rate.bits_per_second();
        // At rate zero it takes forever.
        let (time, rest) = match size.bytes().checked_mul(8 * 1_000_000_000) {
            // A division of 64 bits is several times faster, and enough for every usual packet.
            Some(bits) => (
                bits.checked_div(rate).unwrap_or(u64::MAX),
                bits.checked_rem(rate).unwrap_or(0),
            ),
            None => {
                let bits = u128::from(size.bytes()) * 8 * 1_000_000_000;
                let time = bits.checked_div(u128::from(rate)).unwrap_or(u128::MAX);
                let rest = bits.checked_rem(u128::from(rate)).unwrap_or(0);
                // The remainder is smaller than the rate.
                (u64::try_from(time).unwrap_or(u64::MAX), rest as u64)
            }
        };
        Self {
            size,
            time: Duration::from_nanos(time),
            rest,
        }
    }
}
