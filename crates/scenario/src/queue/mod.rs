//! Queues of ports: buffers, marking and dropping.

mod read;

use serde::{Serialize, Serializer};
use weir_fabric::Probability;
use weir_scenario_derive::{Keys, Word};
use weir_units::{ByteSize, Duration};

use crate::level::{Buffer, Level};
use crate::schema::Accepts;

/// A queue: a buffer with a discipline, first in, first out in all but `strict-priority`. Lengths count the waiting IP bytes, without the packet
/// that the link is sending.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
#[keys(check = table.check(fields))]
pub struct Queue {
    /// The discipline that applies before the queue is full.
    #[key(is = Discipline::read_keys(fields, ()))]
    #[serde(flatten)]
    pub discipline: Discipline,
    /// The capacity of the queue; packets that do not fit are dropped and counted as `buffer`.
    pub buffer: Buffer,
}

impl Queue {
    /// A queue that never drops or marks, as a host's own: the operating system applies
    /// backpressure to the application before it overflows.
    pub const UNLIMITED: Self = Self {
        discipline: Discipline::DropTail,
        buffer: Buffer::Unlimited,
    };

    /// Returns whether the queue never drops or marks.
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::UNLIMITED
    }
}

/// How a queue marks and drops packets before it is full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[keys(title = "[queues.NAME]", with = Queue, check = table.check(fields))]
pub enum Discipline {
    /// First in, first out, until the buffer is full.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993).
    Red {
        /// The thresholds and the probability.
        #[key(flatten)]
        #[serde(flatten)]
        red: Red,
        /// The queue length that is compared with the thresholds.
        #[key(keys = read::LengthKeys, by = RedLength::read(fields))]
        #[serde(flatten)]
        length: RedLength,
        /// Whether ECT packets are marked instead of dropped early (RFC 3168, section 7).
        #[key(default = false)]
        ecn: bool,
    },
    /// ECT packets that arrive at a queue above a threshold are marked, as DCTCP requires of a
    /// switch (RFC 8257, section 3.1).
    Step {
        /// K: ECT packets that arrive at a queue above this length are marked.
        ecn_threshold: Level,
    },
    /// ECT packets are marked with a fixed probability between two thresholds and always above the
    /// second: DCUDP's marking.
    TwoThreshold {
        /// Above this length marking begins.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_min: ByteSize,
        /// Above this length every ECT packet is marked; at least `ecn_min`.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_max: ByteSize,
        /// The marking probability between the two thresholds.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// One queue for ECT and Not-ECT traffic (Vargas et al., section 5.3): ECT packets are marked
    /// above a threshold, Not-ECT packets are dropped by RED on the instantaneous length.
    Shared {
        /// ECT packets that arrive at a queue above this length are marked.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_threshold: ByteSize,
        /// The RED parameters for Not-ECT packets.
        #[key(flatten)]
        #[serde(flatten)]
        red: Red,
    },
    /// One queue, like that of Juniper's QFX switches with ECN enabled: above the threshold, ECT
    /// packets are marked and Not-ECT packets are dropped.
    Qfx {
        /// Above this length ECT packets are marked and Not-ECT packets are dropped.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_threshold: ByteSize,
    },
    /// CoDel (RFC 8289): packets are dropped as they leave the queue, if the wait was above a target for
    /// a whole interval, and then more and more of them until it is below.
    Codel {
        /// The wait that is acceptable in a standing queue (RFC 8289, section 4.3).
        #[key(accepts = Accepts::POSITIVE_SPAN, default = "5ms")]
        target: Duration,
        /// How long the wait must be above the target before the first drop: about the longest round-trip
        /// time of the flows (RFC 8289, section 4.2); above `target`.
        #[key(accepts = Accepts::POSITIVE_SPAN, default = "100ms")]
        interval: Duration,
        /// Whether ECT packets are marked instead of dropped.
        #[key(default = false)]
        mark: bool,
    },
    /// Two queues, of which one is always sent first: the other waits as long as it has packets. Each has
    /// the `buffer`. The port's length and counts are those of both together.
    StrictPriority {
        /// The packets of the queue that is sent first.
        high: PriorityClass,
        /// ECT packets that arrive at their queue above this length are marked.
        #[key(absent = "nothing is marked")]
        #[serde(skip_serializing_if = "Option::is_none")]
        ecn_threshold: Option<Level>,
    },
}

/// The packets that a port sends before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum PriorityClass {
    /// Those of ECN-capable transports.
    Ect,
    /// Those of other transports.
    NotEct,
}

/// RED's drop probability grows from zero at `red_min` to `probability` at `red_max`; above, every
/// packet is dropped. Equal thresholds give drop-tail at that level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
pub struct Red {
    /// Up to this length nothing is dropped early; above, the drop probability grows from zero.
    #[key(accepts = Accepts::THRESHOLD)]
    pub red_min: ByteSize,
    /// Above this length every packet is dropped; at least `red_min`. With both equal this is
    /// drop-tail at that length.
    #[key(accepts = Accepts::THRESHOLD)]
    pub red_max: ByteSize,
    /// The drop probability at `red_max`.
    #[serde(serialize_with = "serialize_probability")]
    pub drop_probability: Probability,
}

/// The queue length that RED compares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "length", rename_all = "kebab-case")]
pub enum RedLength {
    /// The length when the packet arrives.
    Instantaneous,
    /// A moving average over arrivals.
    Average {
        /// The weight of one arrival, w_q in the paper.
        #[serde(serialize_with = "serialize_probability")]
        weight: Probability,
        /// Whether the probability grows to 1 between `red_max` and twice that, instead of at once
        /// (Floyd 2000).
        gentle: bool,
    },
}

pub(crate) fn serialize_probability<S: Serializer>(
    value: &Probability,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_f64(value.value())
}

impl Discipline {
    /// Whether the link's transmitter decides about a packet only when it takes one: such a port holds its
    /// packets, and each costs two events.
    pub const fn decides_at_dequeue(&self) -> bool {
        matches!(self, Self::Codel { .. } | Self::StrictPriority { .. })
    }

    /// Returns the thresholds by their keys.
    pub fn thresholds(&self) -> Vec<(&'static str, Level)> {
        match *self {
            Self::DropTail | Self::Codel { .. } => Vec::new(),
            Self::Red { red, .. } => red.thresholds().to_vec(),
            Self::Step { ecn_threshold } => vec![("ecn_threshold", ecn_threshold)],
            Self::StrictPriority { ecn_threshold, .. } => {
                let threshold = ecn_threshold.map(|level| ("ecn_threshold", level));
                threshold.into_iter().collect()
            }
            Self::TwoThreshold {
                ecn_min, ecn_max, ..
            } => vec![
                ("ecn_min", Level::Bytes(ecn_min)),
                ("ecn_max", Level::Bytes(ecn_max)),
            ],
            Self::Shared { ecn_threshold, red } => {
                let mut thresholds = vec![("ecn_threshold", Level::Bytes(ecn_threshold))];
                thresholds.extend(red.thresholds());
                thresholds
            }
            Self::Qfx { ecn_threshold } => vec![("ecn_threshold", Level::Bytes(ecn_threshold))],
        }
    }
}

impl Red {
    fn thresholds(&self) -> [(&'static str, Level); 2] {
        [
            ("red_min", Level::Bytes(self.red_min)),
            ("red_max", Level::Bytes(self.red_max)),
        ]
    }
}
