//! `Rate_data` and `Rate_max`.

use weir_units::{ByteSize, Duration, Rate};

/// The upper bound of the rates in packets per second, for any report of a receiver.
const FASTEST: f64 = 1e12;

/// The two rates of Figure 4, in packets per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    packet_size: ByteSize,
    pub(crate) data: f64,
    pub(crate) max: f64,
}

impl Rates {
    /// Sets both rates to `capacity`, in packets of this size.
    pub(crate) fn new(capacity: Rate, packet_size: ByteSize) -> Self {
        let packet_size = packet_size.max(ByteSize::from_bytes(1));
        let mut rates = Self {
            packet_size,
            data: 0.0,
            max: 0.0,
        };
        rates.data = rates.packets_per_second(capacity);
        rates.max = rates.data;
        rates
    }

    /// Returns the number of packets in `size`, with fractions.
    pub(crate) fn packets(&self, size: ByteSize) -> f64 {
        size.bytes() as f64 / self.packet_size.bytes() as f64
    }

    pub(crate) fn packets_per_second(&self, rate: Rate) -> f64 {
        rate.bits_per_second() as f64 / (8.0 * self.packet_size.bytes() as f64)
    }

    /// Converts packets per second to a [`Rate`], which is never zero.
    pub(crate) fn rate_of(&self, packets_per_second: f64) -> Rate {
        let bits = packets_per_second * 8.0 * self.packet_size.bytes() as f64;
        Rate::from_bits_per_second((bits as u64).max(1))
    }

    /// Keeps both rates at one packet per round trip or above (section IV-A.3).
    pub(crate) fn bound(&mut self, rtt: Duration) {
        let least = one_packet_per_rtt(rtt);
        self.data = self.data.clamp(least, FASTEST);
        self.max = self.max.clamp(least, FASTEST);
    }

    /// Converts the rates to another packet size. Returns the old packet size in new packets.
    pub(crate) fn resize(&mut self, packet_size: ByteSize) -> f64 {
        let packet_size = packet_size.max(ByteSize::from_bytes(1));
        let scale = self.packet_size.bytes() as f64 / packet_size.bytes() as f64;
        self.packet_size = packet_size;
        self.data *= scale;
        self.max *= scale;
        scale
    }
}

/// Returns one packet per round trip, in packets per second.
pub(crate) fn one_packet_per_rtt(rtt: Duration) -> f64 {
    1.0 / rtt.as_secs_f64()
}
