//! A link: sends packets one after the other at a rate, and delivers each a propagation delay later.
//!
//! The arrival of a packet is known when its transmission starts. The packets on a link are therefore a
//! FIFO with arrival times: a caller needs one timer per link and none per packet.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::flow_hash::mix;

/// The bytes of Ethernet framing that a link carries per packet: preamble and start delimiter 8,
/// header 14, frame check sequence 4, gap 12 (IEEE 802.3).
pub const ETHERNET_FRAMING: ByteSize = ByteSize::from_bytes(38);

/// One direction of a cable between two ports, with its transmitter: computes when packets arrive. The
/// [`EgressPort`](crate::EgressPort) of the link keeps the packets themselves.
#[derive(Clone, Debug)]
// A network has thousands of links, with few different settings.
pub struct Link {
    /// When the next transmission can start; [`Time::MAX`] at rate zero.
    free: Time,
    clock: TransmitterClock,
    /// The transmission time of the last packet. It lies here, as all that follows waits for it.
    work: TransmissionTime,
    last_arrival: Time,
    /// The packets transmitted so far, if there is jitter.
    transmitted: u64,
    jitter_seed: u64,
    settings: Arc<LinkSettings>,
}

/// What does not change from packet to packet.
#[derive(Clone, Debug, PartialEq)]
struct LinkSettings {
    rate: TransmissionRate,
    delay: Duration,
    mtu: ByteSize,
    framing: ByteSize,
    /// Whether arrivals have to be kept in order: there is jitter, or the delay or the rate has changed.
    is_uneven: bool,
    /// The largest random delay of a packet beyond the propagation delay.
    jitter: Duration,
    /// The transmission times of two usual packets: one of the MTU, and an acknowledgment.
    usual: [TransmissionTime; 2],
}

/// The length of a TCP acknowledgment with time stamps.
const ACKNOWLEDGMENT: ByteSize = ByteSize::from_bytes(52);

/// Settings that several links have in common, so that they take memory and cache once.
#[derive(Debug, Default)]
pub struct SharedLinkSettings(VecDeque<Arc<LinkSettings>>);

/// The number of different settings that are remembered: those of links far apart are seldom equal.
const REMEMBERED: usize = 8;

impl SharedLinkSettings {
    /// Makes a link share its settings with one of the last links, if one has the same.
    pub fn share(&mut self, link: &mut Link) {
        match self.0.iter().find(|known| ***known == *link.settings) {
            Some(known) => link.settings = Arc::clone(known),
            None => {
                self.0.push_front(Arc::clone(&link.settings));
                self.0.truncate(REMEMBERED);
            }
        }
    }
}

impl LinkSettings {
    fn new(rate: Rate, delay: Duration) -> Self {
        let mut settings = Self {
            rate: TransmissionRate::new(rate),
            delay,
            mtu: ByteSize::MAX,
            framing: ByteSize::ZERO,
            is_uneven: false,
            jitter: Duration::ZERO,
            usual: [TransmissionTime::UNKNOWN; 2],
        };
        settings.compute_usual();
        settings
    }

    fn compute_usual(&mut self) {
        self.usual = [self.mtu, ACKNOWLEDGMENT].map(|length| self.rate.time(length, self.framing));
    }

    /// Returns the transmission time of a packet.
    fn work(&self, length: ByteSize) -> TransmissionTime {
        let mut usual = self.usual.iter();
        match usual.find(|usual| usual.length == length) {
            Some(usual) => *usual,
            None => self.rate.time(length, self.framing),
        }
    }
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
            work: TransmissionTime::UNKNOWN,
            last_arrival: Time::ZERO,
            transmitted: 0,
            jitter_seed: 0,
            settings: Arc::new(LinkSettings::new(rate, delay)),
        }
    }

    fn settings_mut(&mut self) -> &mut LinkSettings {
        self.work = TransmissionTime::UNKNOWN;
        Arc::make_mut(&mut self.settings)
    }

    /// Delays each packet by a random time of up to `jitter`, uniform from zero, that follows from `seed`
    /// and the packet's number. Packets stay in order. None by default.
    pub fn with_jitter(mut self, jitter: Duration, seed: u64) -> Self {
        self.jitter_seed = seed;
        let settings = self.settings_mut();
        settings.jitter = jitter;
        settings.is_uneven |= !jitter.is_zero();
        self
    }

    /// Sets the largest IP packet that this link carries; unlimited by default.
    pub fn with_mtu(mut self, mtu: ByteSize) -> Self {
        self.set_mtu(mtu);
        self
    }

    /// Sets the bytes on the wire per packet beside its IP length: 38 bytes on Ethernet (preamble 8,
    /// header 14, check sequence 4, gap 12). Zero by default.
    pub fn with_framing(mut self, framing: ByteSize) -> Self {
        let settings = self.settings_mut();
        settings.framing = framing;
        settings.compute_usual();
        self
    }

    /// The rate of transmission.
    pub fn rate(&self) -> Rate {
        self.settings.rate.rate
    }

    /// The propagation delay.
    pub fn delay(&self) -> Duration {
        self.settings.delay
    }

    /// The largest IP packet that this link carries.
    #[inline]
    pub fn mtu(&self) -> ByteSize {
        self.settings.mtu
    }

    /// The bytes on the wire per packet beside its IP length.
    pub fn framing(&self) -> ByteSize {
        self.settings.framing
    }

    pub(crate) fn set_mtu(&mut self, mtu: ByteSize) {
        let settings = self.settings_mut();
        settings.mtu = mtu;
        settings.compute_usual();
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
        if self.rate().is_zero() {
            // Packets that waited for a rate start now, not when the link last fell idle.
            self.clock.start_no_earlier(now);
        }
        let settings = self.settings_mut();
        settings.rate = TransmissionRate::new(rate);
        settings.compute_usual();
        self.keep_in_order(last_arrival);
        self.free = if rate.is_zero() {
            Time::MAX
        } else {
            self.clock.reading()
        };
    }

    /// Changes the propagation delay of later packets, which arrive no earlier than `last_arrival`.
    pub(crate) fn set_delay(&mut self, delay: Duration, last_arrival: Time) {
        self.settings_mut().delay = delay;
        self.keep_in_order(last_arrival);
    }

    fn keep_in_order(&mut self, last_arrival: Time) {
        self.settings_mut().is_uneven = true;
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
        if length != self.work.length {
            self.set_work(length);
        }
        let settings = &*self.settings;
        if ready > start {
            self.clock.restart(ready, &self.work);
            start = ready;
        } else if start == Time::MAX {
            return (Time::MAX, Time::MAX);
        } else {
            self.clock.spend(&self.work, settings.rate.rate);
        }
        self.free = self.clock.reading();
        let mut arrival = self.free + settings.delay;
        if settings.is_uneven {
            let jitter = settings.jitter;
            arrival = self.even_out(arrival, jitter);
        }
        (start, arrival)
    }

    #[inline(never)]
    fn set_work(&mut self, length: ByteSize) {
        self.work = self.settings.work(length);
    }

    /// Adds the jitter to an arrival, and keeps the arrivals in order.
    #[inline(always)]
    fn even_out(&mut self, arrival: Time, jitter: Duration) -> Time {
        self.last_arrival = self.last_arrival.max(arrival + self.next_jitter(jitter));
        self.last_arrival
    }

    /// Returns the jitter of the next packet.
    #[inline]
    fn next_jitter(&mut self, jitter: Duration) -> Duration {
        if jitter.is_zero() {
            return Duration::ZERO;
        }
        self.transmitted += 1;
        let draw = u128::from(mix(self.jitter_seed ^ self.transmitted));
        // One more than 584 years is out of reach.
        let choices = u128::from(jitter.as_nanos().saturating_add(1));
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

    /// Advances to the end of a transmission that starts at `ready`, at which the transmitter is idle.
    #[inline(always)]
    fn restart(&mut self, ready: Time, work: &TransmissionTime) {
        *self = Self {
            nanosecond: ready + work.time,
            // Less than a nanosecond.
            fraction: work.rest,
        };
    }

    /// Advances by a transmission that follows the last one.
    #[inline(always)]
    fn spend(&mut self, work: &TransmissionTime, rate: Rate) {
        self.nanosecond += work.time;
        // Both are smaller than the rate; their sum may exceed 64 bits.
        let (sum, carry) = self.fraction.overflowing_add(work.rest);
        // Without a branch, which would be taken at random.
        let rate = rate.bits_per_second();
        let whole = u64::from(carry | (sum >= rate));
        self.fraction = sum.wrapping_sub(rate & whole.wrapping_neg());
        self.nanosecond += Duration::from_nanos(whole);
    }
}

/// The duration of a transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

/// A rate by which numbers are divided without a division, which would be the most expensive step of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TransmissionRate {
    rate: Rate,
    /// 2^64 divided by the rate, rounded down, or a little less.
    reciprocal: u64,
    /// Whether a transmission takes a time at all, and an end.
    is_finite: bool,
}

impl TransmissionRate {
    fn new(rate: Rate) -> Self {
        Self {
            rate,
            reciprocal: u64::MAX
                .checked_div(rate.bits_per_second())
                .unwrap_or_default(),
            is_finite: !rate.is_zero() && rate != Rate::MAX,
        }
    }

    /// Returns the transmission time of a packet of this length.
    #[inline]
    fn time(&self, length: ByteSize, framing: ByteSize) -> TransmissionTime {
        let size = length + framing;
        match size.bytes().checked_mul(8 * 1_000_000_000) {
            Some(bits) if self.is_finite => {
                let rate = self.rate.bits_per_second();
                // One less than the quotient at most, as the product is less than 2^64 below 2^64 times it.
                let mut time = ((u128::from(bits) * u128::from(self.reciprocal)) >> 64) as u64;
                let mut rest = bits - time * rate;
                if rest >= rate {
                    (time, rest) = (time + 1, rest - rate);
                }
                TransmissionTime {
                    length,
                    time: Duration::from_nanos(time),
                    rest,
                }
            }
            _ => self.unusual_time(length, size),
        }
    }

    /// The same for packets that take no time, forever, or very long.
    #[cold]
    fn unusual_time(&self, length: ByteSize, size: ByteSize) -> TransmissionTime {
        if self.rate == Rate::MAX {
            return TransmissionTime {
                length,
                ..TransmissionTime::UNKNOWN
            };
        }
        let rate = u128::from(self.rate.bits_per_second());
        let bits = u128::from(size.bytes()) * 8 * 1_000_000_000;
        // At rate zero it takes forever.
        let time = bits.checked_div(rate).unwrap_or(u128::MAX);
        // The remainder is smaller than the rate.
        let rest = bits.checked_rem(rate).unwrap_or(0) as u64;
        TransmissionTime {
            length,
            time: Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX)),
            rest,
        }
    }
}
