//! Queues: where packets wait at a port, who is marked, who is dropped.

mod read;

use serde::{Serialize, Serializer};
use weir_fabric::Probability;
use weir_scenario_derive::Keys;
use weir_units::ByteSize;

use crate::level::{Buffer, Level};
use crate::schema::Accepts;

/// A queue: a first-in, first-out buffer under a discipline. Lengths count IP bytes that wait,
/// without the packet that the link is sending.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
#[keys(check = table.check(fields))]
pub struct Queue {
    /// What it does before it is full.
    #[key(is = Discipline::read_keys(fields, ()))]
    #[serde(flatten)]
    pub discipline: Discipline,
    /// What the queue holds; whatever does not fit is dropped and counted as `buffer`.
    pub buffer: Buffer,
}

impl Queue {
    /// A queue that never drops or marks: a host's own, which the operating system keeps from
    /// overflowing by holding back the application.
    pub const UNLIMITED: Self = Self {
        discipline: Discipline::DropTail,
        buffer: Buffer::Unlimited,
    };

    /// Whether it never drops or marks.
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::UNLIMITED
    }
}

/// What a queue does with packets before it is full.
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
        /// Which length they are compared with.
        #[key(keys = read::LengthKeys, by = RedLength::read(fields))]
        #[serde(flatten)]
        length: RedLength,
        /// Whether ECT packets are marked where others are dropped early (RFC 3168, section 7).
        #[key(default = false)]
        ecn: bool,
    },
    /// ECT packets that find more than a threshold are marked: what DCTCP asks of a switch (RFC 8257,
    /// section 3.1).
    Step {
        /// K: ECT packets that find more than this are marked.
        ecn_threshold: Level,
    },
    /// ECT packets are marked with a probability between two thresholds and always above the second:
    /// DCUDP's marking.
    TwoThreshold {
        /// Marking begins above this.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_min: ByteSize,
        /// Above this every ECT packet is marked; at least `ecn_min`.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_max: ByteSize,
        /// How probably an ECT packet is marked between the two.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// One queue for both kinds of traffic (Vargas et al., section 5.3): ECT packets are marked above a
    /// threshold, Not-ECT packets meet RED on the instantaneous length.
    Shared {
        /// ECT packets that find more than this are marked.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_threshold: ByteSize,
        /// What Not-ECT packets meet.
        #[key(flatten)]
        #[serde(flatten)]
        red: Red,
    },
    /// One queue, as Juniper's QFX switches have it with ECN on: ECT packets are marked above the
    /// threshold, Not-ECT packets are dropped there.
    Qfx {
        /// Above this ECT packets are marked and Not-ECT packets are dropped.
        #[key(accepts = Accepts::THRESHOLD)]
        ecn_threshold: ByteSize,
    },
}

/// RED's drop probability grows from zero at `red_min` to `probability` at `red_max`; above, every
/// packet is dropped. Equal thresholds are drop-tail at that level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
pub struct Red {
    /// Up to here nothing is dropped early; from here on the drop probability grows from zero.
    #[key(accepts = Accepts::THRESHOLD)]
    pub red_min: ByteSize,
    /// Above this every packet is dropped, at least `red_min`; with both equal this is drop-tail at
    /// that level.
    #[key(accepts = Accepts::THRESHOLD)]
    pub red_max: ByteSize,
    /// The drop probability as the length reaches `red_max`.
    #[serde(serialize_with = "serialize_probability")]
    pub drop_probability: Probability,
}

/// The length that RED looks at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "length", rename_all = "kebab-case")]
pub enum RedLength {
    /// The length as the packet arrives.
    Instantaneous,
    /// A moving average over arrivals.
    Average {
        /// How much one arrival counts, w_q in the paper.
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
    /// The lengths at which something changes, by their keys.
    pub fn thresholds(&self) -> Vec<(&'static str, Level)> {
        match *self {
            Self::DropTail => Vec::new(),
            Self::Red { red, .. } => red.thresholds().to_vec(),
            Self::Step { ecn_threshold } => vec![("ecn_threshold", ecn_threshold)],
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
