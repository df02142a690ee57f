//! The counters of a flow, as one type from the engines to `flows.parquet`.
//!
//! An engine fills [`FlowCounters`]. The runner of flows adds the two ends of a flow and its
//! connections, and takes the increase [`since`](FlowCounters::since) the warm-up. A table writes
//! the [`columns`](FlowCounters::columns). All of them pass on the whole type, so that a new
//! counter is a line in the table below and its count in each engine.
//!
//! ```
//! use weir_counters::FlowCounters;
//! use weir_units::ByteSize;
//!
//! let client = FlowCounters { retransmits: 3, ..FlowCounters::ZERO };
//! let server = FlowCounters { delivered: ByteSize::from_kib(64), ..FlowCounters::ZERO };
//! let flow = client + server;
//! let [(name, delivered), ..] = flow.columns();
//! assert_eq!((name, delivered), ("delivered_bytes", 65_536));
//! ```

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use weir_units::{ByteSize, Duration, Rate};

/// Declares the counters: each with its field, its type, and its column in `flows.parquet`.
macro_rules! flow_counters {
    ($($(#[$doc:meta])+ $field:ident: $kind:ty => $column:literal,)+) => {
        /// Counters of a flow, one end of it, or one of its connections, since it began. Counters
        /// never decrease, and saturate at their maximum.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct FlowCounters {
            $($(#[$doc])+ pub $field: $kind,)+
        }

        impl FlowCounters {
            /// All counters at zero.
            pub const ZERO: Self = Self { $($field: <$kind as Counter>::ZERO,)+ };

            /// Number of columns.
            pub const COLUMNS: usize = [$($column),+].len();

            /// Returns each counter's column name, which includes the unit, and its count.
            pub fn columns(&self) -> [(&'static str, u64); Self::COLUMNS] {
                [$(($column, self.$field.count())),+]
            }

            /// Returns the increase since `earlier`. Ends report one after the other, so that a
            /// counter may seem to decrease: then the increase is zero.
            #[must_use]
            pub fn since(self, earlier: Self) -> Self {
                Self { $($field: self.$field.since(earlier.$field),)+ }
            }
        }

        impl Add for FlowCounters {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field.and(other.$field),)+ }
            }
        }
    };
}

flow_counters! {
    /// Bytes delivered in order to the receiving application. Zero where an engine does not know
    /// how much its application has read.
    delivered: ByteSize => "delivered_bytes",
    /// Retransmitted segments or datagrams; in QUIC, packets declared lost, whose contents are
    /// retransmitted.
    retransmits: u64 => "retransmits",
    /// Retransmitted payload in bytes, counted each time; in QUIC, stream and handshake data of
    /// packets declared lost, or copied into probes.
    retransmitted: ByteSize => "retransmitted_bytes",
    /// Expired retransmission timers (RTO); in QUIC, probe timeouts.
    timeouts: u64 => "timeouts",
    /// Packets received with a CE mark: at this end, or at the peer by its report, but not both.
    marks: u64 => "marks",
}

impl FlowCounters {
    /// Returns delivered bytes per time; zero where no time has passed.
    pub fn goodput(&self, span: Duration) -> Rate {
        Rate::average(self.delivered, span)
    }
}

impl AddAssign for FlowCounters {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for FlowCounters {
    fn sum<I: Iterator<Item = Self>>(counters: I) -> Self {
        counters.fold(Self::ZERO, Add::add)
    }
}

/// A number that counts events or bytes.
trait Counter: Copy {
    const ZERO: Self;

    fn count(self) -> u64;
    fn and(self, other: Self) -> Self;
    fn since(self, earlier: Self) -> Self;
}

impl Counter for u64 {
    const ZERO: Self = 0;

    fn count(self) -> u64 {
        self
    }

    fn and(self, other: Self) -> Self {
        self.saturating_add(other)
    }

    fn since(self, earlier: Self) -> Self {
        self.saturating_sub(earlier)
    }
}

impl Counter for ByteSize {
    const ZERO: Self = Self::ZERO;

    fn count(self) -> u64 {
        self.bytes()
    }

    fn and(self, other: Self) -> Self {
        Self::from_bytes(self.bytes().and(other.bytes()))
    }

    fn since(self, earlier: Self) -> Self {
        Self::from_bytes(Counter::since(self.bytes(), earlier.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(delivered: u64, marks: u64) -> FlowCounters {
        FlowCounters {
            delivered: ByteSize::from_bytes(delivered),
            marks,
            ..FlowCounters::ZERO
        }
    }

    #[test]
    fn counters_of_both_ends_add_up() {
        let flow: FlowCounters = [counters(5, u64::MAX), counters(7, 1)].into_iter().sum();
        assert_eq!(flow, counters(12, u64::MAX));
        assert_eq!(flow.since(counters(2, 3)), counters(10, u64::MAX - 3));
        assert_eq!(counters(1, 1).since(flow), FlowCounters::ZERO);
    }

    #[test]
    fn missing_counters_read_as_zero() {
        let text = serde_json::to_string(&counters(5, 7)).unwrap();
        assert_eq!(
            serde_json::from_str::<FlowCounters>(&text).unwrap(),
            counters(5, 7)
        );
        assert_eq!(
            serde_json::from_str::<FlowCounters>("{}").unwrap(),
            FlowCounters::ZERO
        );
    }
}
