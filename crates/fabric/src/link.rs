//! A link: sends packets one after the other at a rate, and delivers each a propagation delay later.
//!
//! The arrival of a packet is known when its transmission starts. The packets on a link are therefore a
//! FIFO with arrival times: a caller needs one timer per link and none per packet.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::flow_hash::mix;

/// The bytes of Ethernet framing that a link carries per packet: preamble and start delimiter 8,
/// header 14, frame check sequence 4, gap 12 (IEEE 802.3).
pub const ETHERNET_FRAMING: ByteSize = ByteSize::from_bytes(38);

/// One direction of a cable between two ports, with its transmitter: computes when packets arrive. The
/// [`EgressPort`](crate::EgressPort) of the link keeps the packets themselves.
#[derive(Clone, Debug)]
// In this order: the fields that each packet needs come first.
#[repr(C)]
pub struct Link {
    /// When the next transmission can start; [`Time::MAX`] at rate zero.
    free: Time,
    clock: TransmitterClock,
    rate: Rate,
    work: TransmissionTime,
    delay: Duration,
    mtu: ByteSize,
    /// Whether arrivals have to be kept in order: there is jitter, or the delay or the rate has changed.
    is_uneven: bool,
    last_arrival: Time,
    /// The largest random delay of a packet beyond the propagation delay.
    jitter: Duration,
    jitter_seed: u64,
    /// The packets transmitted so far, if there is jitter.
    transmitted: u64,
    /// The packets before the last ones had another length.
    other_work: TransmissionTime,
    framing: ByteSize,
}

impl Link {
    /// Creates an idle link. At [`Rate::MAX`] transmission takes no time; at [`Rate::ZERO`] nothing starts.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            free: if rate.is_zero() {
                Time::MAX
            } else {
                Time::ZERO
            },
            clock: TransmitterClock::default(),
            rate,
            work: TransmissionTime::UNKNOWN,
            delay,
            mtu: ByteSize::MAX,
            is_uneven: false,
            last_arrival: Time::ZERO,
            jitter: Duration::ZERO,
            jitter_seed: 0,
            transmitted: 0,
            other_work: TransmissionTime::UNKNOWN,
            framing: ByteSize::ZERO,
        }
    }

    /// Delays each packet by a random time of up to `jitter`, uniform from zero, that follows from `seed`
    /// and the packet's number. Packets stay in order. None by default.
    pub fn with_jitter(self, jitter: Duration, seed: u64) -> Self {
        Self {
            jitter,
            jitter_seed: seed,
            is_uneven: self.is_uneven || !jitter.is_zero(),
            ..self
        }
    }

    /// Sets the largest IP packet that this link carries; unlimited by default.
    pub fn with_mtu(self, mtu: ByteSize) -> Self {
        Self { mtu, ..self }
    }

    /// Sets the bytes on the wire per packet beside its IP length: 38 bytes on Ethernet (preamble 8,
    /// header 14, check sequence 4, gap 12). Zero by default.
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

    /// The bytes on the wire per packet beside its IP length.
    pub fn framing(&self) -> ByteSize {
        self.framing
    }

    pub(crate) fn set_mtu(&mut self, mtu: ByteSize) {
        self.mtu = mtu;
    }

    /// Changes the rate from `now` on. A transmission in progress ends as it began. Packets after it, from
    /// time `follows` on, are to be transmitted again and arrive no earlier than `last_arrival`.
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
            // Packets that waited for a rate start now, not when the link last fell idle.
            self.clock.start_no_earlier(now);
        }
        self.rate = rate;
        (self.work, self.other_work) = (TransmissionTime::UNKNOWN, TransmissionTime::UNKNOWN);
        self.keep_in_order(last_arrival);
        self.free = if rate.is_zero() {
            Time::MAX
        } else {
            self.clock.reading()
        };
    }

    /// Changes the propagation delay of later packets, which arrive no earlier than `last_arrival`.
    pub(crate) fn set_delay(&mut self, delay: Duration, last_arrival: Time) {
        self.delay = delay;
        self.keep_in_order(last_arrival);
    }

    fn keep_in_order(&mut self, last_arrival: Time) {
        self.is_uneven = true;
        self.last_arrival = last_arrival;
    }

    /// Returns when the next transmission can start; [`Time::MAX`] (never) at rate zero.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free
    }

    /// Transmits a packet that is ready at `ready`: then, or right after the one before it. Returns when
    /// its transmission starts and when it arrives at the far end; [`Time::MAX`] for both at rate zero.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, ready: Time, length: ByteSize) -> (Time, Time) {
        let mut start = self.free;
        if ready > start {
            self.clock.set(ready);
            start = ready;
        } else if start == Time::MAX {
            return (Time::MAX, Time::MAX);
        }
        if length != self.work.length {
            self.set_work(length);
        }
        self.free = self.clock.spend(&self.work, self.rate);
        let mut arrival = self.free + self.delay;
        if self.is_uneven {
            arrival = self.even_out(arrival);
        }
        (start, arrival)
    }

    /// Adds the jitter to an arrival, and keeps the arrivals in order.
    #[inline(always)]
    fn even_out(&mut self, arrival: Time) -> Time {
        self.last_arrival = self.last_arrival.max(arrival + self.next_jitter());
        self.last_arrival
    }

    #[cold]
    fn set_work(&mut self, length: ByteSize) {
        std::mem::swap(&mut self.work, &mut self.other_work);
        if length != self.work.length {
            self.work = TransmissionTime::of(length, self.framing, self.rate);
        }
    }

    /// Returns the jitter of the next packet.
    #[inline]
    fn next_jitter(&mut self) -> Duration {
        if self.jitter.is_zero() {
            return Duration::ZERO;
        }
        self.transmitted += 1;
        let draw = u128::from(mix(self.jitter_seed ^ self.transmitted));
        let choices = u128::from(self.jitter.as_nanos()) + 1;
        Duration::from_nanos(((draw * choices) >> 64) as u64)
    }
}

/// When the transmitter becomes idle, to a fraction of a nanosecond: a 64-byte packet takes 5.12 ns
/// at 100 Gbit/s, and rounding each one up would cost 15 % of the rate.
#[derive(Clone, Copy, Debug, Default)]
struct TransmitterClock {
    nanosecond: Time,
    /// Beyond the nanosecond, in units of one nanosecond divided by the rate in bit/s.
    fraction: u64,
}

impl TransmitterClock {
    /// Returns the first whole nanosecond at which the transmitter is idle.
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

    /// Rounds up to a nanosecond, as the fraction is in units of the old rate.
    fn round_up(&mut self) {
        self.set(self.reading());
    }

    /// Advances by a transmission, and returns the new [reading](Self::reading).
    #[inline(always)]
    fn spend(&mut self, work: &TransmissionTime, rate: Rate) -> Time {
        self.nanosecond += work.time;
        // Both are smaller than the rate; their sum may exceed 64 bits.
        let (sum, carry) = self.fraction.overflowing_add(work.rest);
        if carry || sum >= rate.bits_per_second() {
            self.nanosecond += Duration::from_nanos(1);
            self.fraction = sum.wrapping_sub(rate.bits_per_second());
        } else {
            self.fraction = sum;
        }
        self.reading()
    }
}

/// The duration of a transmission. A division is the most expensive step of a link, and its packets often
/// have one of two lengths.
#[derive(Clone, Copy, Debug)]
struct TransmissionTime {
    /// The length of the IP packet.
    length: ByteSize,
    time: Duration,
    /// Beyond the whole nanoseconds, in units of one nanosecond divided by the rate in bit/s.
    rest: u64,
}

impl TransmissionTime {
    /// The time of no packet.
    const UNKNOWN: Self = Self {
        length: ByteSize::MAX,
        time: Duration::ZERO,
        rest: 0,
    };

    fn of(length: ByteSize, framing: ByteSize, rate: Rate) -> Self {
        if rate == Rate::MAX {
            return Self {
                length,
                ..Self::UNKNOWN
            };
        }
        let size = length + framing;
        let rate = rate.bits_per_second();
        // At rate zero it takes forever.
        let (time, rest) = match size.bytes().checked_mul(8 * 1_000_000_000) {
            // A 64-bit division is several times faster, and suffices for every usual packet.
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
            length,
            time: Duration::from_nanos(time),
            rest,
        }
    }
}
