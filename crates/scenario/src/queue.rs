//! Queues: where packets wait at a port, who is marked, who is dropped.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use weir_fabric::Probability;
use weir_units::{ByteSize, ParseError};

use crate::document::{At, Fields, Reported, section_by_kind};
use crate::schema::{Accepts, Key, Literal, Section};

/// A queue: a first-in, first-out buffer under a discipline. Lengths count IP bytes that wait,
/// without the packet that the link is sending.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// What it does before it is full.
    #[serde(flatten)]
    pub discipline: Discipline,
    /// What it holds; whatever does not fit is dropped.
    pub buffer: Buffer,
}

impl Queue {
    /// A queue that never drops or marks: a host's own, which the operating system keeps from
    /// overflowing by holding back the application.
    pub const UNLIMITED: Self = Self {
        discipline: Discipline::DropTail,
        buffer: Buffer::Unlimited,
    };
}

/// What a queue does with packets before it is full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Discipline {
    /// Nothing.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993).
    Red {
        /// The thresholds and the probability.
        #[serde(flatten)]
        red: Red,
        /// Which length they are compared with.
        #[serde(flatten)]
        length: RedLength,
        /// Whether ECT packets are marked where others are dropped (RFC 3168, section 7).
        ecn: bool,
    },
    /// ECT packets that find more than a threshold are marked (DCTCP, RFC 8257 section 3.1).
    Step {
        /// The threshold, K in the DCTCP paper.
        ecn_threshold: Level,
    },
    /// ECT packets are marked with a probability between two thresholds and always above the
    /// second (DCUDP).
    TwoThreshold {
        /// Marking begins above this.
        ecn_min: ByteSize,
        /// Above this every ECT packet is marked.
        ecn_max: ByteSize,
        /// How probably a packet is marked between the two.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// One queue for ECT and Not-ECT packets: the former are marked above a threshold, the latter
    /// meet RED on the instantaneous length (Vargas et al., section 5.3).
    Shared {
        /// ECT packets that find more than this are marked.
        ecn_threshold: ByteSize,
        /// What Not-ECT packets meet.
        #[serde(flatten)]
        red: Red,
    },
    /// One queue, as Juniper's QFX switches have it with ECN on: ECT packets are marked above the
    /// threshold, Not-ECT packets are dropped there.
    Qfx {
        /// The threshold.
        ecn_threshold: ByteSize,
    },
}

/// RED's drop probability grows from zero at `red_min` to `probability` at `red_max`; above, every
/// packet is dropped. Equal thresholds are drop-tail at that level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Red {
    /// Where dropping begins.
    pub red_min: ByteSize,
    /// Where every packet is dropped.
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
        weight: f64,
        /// Whether the probability grows to 1 between `red_max` and twice that, instead of at once
        /// (Floyd 2000).
        gentle: bool,
    },
}

/// A length of a queue, in bytes or in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// IP bytes.
    Bytes(ByteSize),
    /// Packets of whatever size.
    Packets(u64),
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// This much.
    Limited(Level),
    /// Whatever comes.
    Unlimited,
}

fn serialize_probability<S: Serializer>(value: &Probability, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(value.value())
}

/// How "no limit" is written.
pub(crate) const UNLIMITED: &str = "unlimited";

const UNITS: &str = "B, KB, MB, GB, KiB, MiB, GiB, or packets";

impl Level {
    /// Whether this is nothing.
    pub const fn is_zero(self) -> bool {
        match self {
            Self::Bytes(size) => size.is_zero(),
            Self::Packets(packets) => packets == 0,
        }
    }
}

impl FromStr for Level {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = ["packets", "packet"]
            .iter()
            .find_map(|unit| text.trim().strip_suffix(unit));
        let Some(number) = number else {
            return text.parse().map(Self::Bytes);
        };
        let number = number.trim_end();
        number
            .parse()
            .map(Self::Packets)
            .map_err(|_| ParseError::Number {
                number: number.to_owned(),
                expected: "a number of packets",
                accepted: UNITS,
            })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Packets(1) => f.pad("1 packet"),
            Self::Packets(packets) => f.pad(&format!("{packets} packets")),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(level) => level.fmt(f),
            Self::Unlimited => f.pad(UNLIMITED),
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Buffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const BUFFER: Key = Key::required(
    "buffer",
    Accepts::Buffer,
    "what the queue holds; whatever does not fit is dropped and counted as `buffer`",
);

const RED_MIN: Key = Key::required(
    "red_min",
    Accepts::THRESHOLD,
    "up to here nothing is dropped early; from here on the drop probability grows from zero",
);

const RED_MAX: Key = Key::required(
    "red_max",
    Accepts::THRESHOLD,
    "above this every packet is dropped, at least `red_min`; with both equal this is drop-tail at \
     that level",
);

const DROP_PROBABILITY: Key = Key::required(
    "drop_probability",
    Accepts::Probability,
    "the drop probability as the length reaches `red_max`",
);

static DROP_TAIL: Section = Section {
    title: "[queues.NAME] kind = \"drop-tail\"",
    doc: "First in, first out, until the buffer is full.",
    keys: &[Key::kind(&["drop-tail"]), BUFFER],
};

static RED: Section = Section {
    title: "[queues.NAME] kind = \"red\"",
    doc: "Random early detection (Floyd and Jacobson 1993).",
    keys: &[
        Key::kind(&["red"]),
        BUFFER,
        RED_MIN,
        RED_MAX,
        DROP_PROBABILITY,
        Key::default(
            "length",
            Accepts::Word(&["instantaneous", "average"]),
            Literal::Text("average"),
            "the length that is compared with the thresholds: the queue as the packet arrives, or \
             a moving average",
        ),
        Key::optional(
            "weight",
            Accepts::Number(1e-9, 1.0),
            "0.002 with the average length",
            "how much one arrival counts in the average, w_q in the paper; only with \
             `length = \"average\"`",
        ),
        Key::optional(
            "gentle",
            Accepts::Boolean,
            "true with the average length",
            "whether the probability grows to 1 between `red_max` and twice that, instead of at \
             once; only with `length = \"average\"`",
        ),
        Key::default(
            "ecn",
            Accepts::Boolean,
            Literal::Boolean(false),
            "whether ECT packets are marked where others are dropped early",
        ),
    ],
};

static STEP: Section = Section {
    title: "[queues.NAME] kind = \"step\"",
    doc: "ECT packets that find more than a threshold are marked: what DCTCP asks of a switch.",
    keys: &[
        Key::kind(&["step"]),
        BUFFER,
        Key::required(
            "ecn_threshold",
            Accepts::Level,
            "K: ECT packets that find more than this are marked",
        ),
    ],
};

static TWO_THRESHOLD: Section = Section {
    title: "[queues.NAME] kind = \"two-threshold\"",
    doc: "ECT packets are marked with a probability between two thresholds and always above the \
          second: DCUDP's marking.",
    keys: &[
        Key::kind(&["two-threshold"]),
        BUFFER,
        Key::required("ecn_min", Accepts::THRESHOLD, "marking begins above this"),
        Key::required(
            "ecn_max",
            Accepts::THRESHOLD,
            "above this every ECT packet is marked; at least `ecn_min`",
        ),
        Key::required(
            "probability",
            Accepts::Probability,
            "how probably an ECT packet is marked between the two",
        ),
    ],
};

static SHARED: Section = Section {
    title: "[queues.NAME] kind = \"shared\"",
    doc: "One queue for both kinds of traffic (Vargas et al., section 5.3): ECT packets are marked \
          above a threshold, Not-ECT packets meet RED on the instantaneous length.",
    keys: &[
        Key::kind(&["shared"]),
        BUFFER,
        Key::required(
            "ecn_threshold",
            Accepts::THRESHOLD,
            "ECT packets that find more than this are marked",
        ),
        RED_MIN,
        RED_MAX,
        DROP_PROBABILITY,
    ],
};

static QFX: Section = Section {
    title: "[queues.NAME] kind = \"qfx\"",
    doc: "One queue, as Juniper's QFX switches have it with ECN on: ECT packets are marked above \
          the threshold, Not-ECT packets are dropped there.",
    keys: &[
        Key::kind(&["qfx"]),
        BUFFER,
        Key::required(
            "ecn_threshold",
            Accepts::THRESHOLD,
            "above this ECT packets are marked and Not-ECT packets are dropped",
        ),
    ],
};

/// All kinds of queues.
pub(crate) static SECTIONS: [&Section; 6] =
    [&DROP_TAIL, &RED, &STEP, &TWO_THRESHOLD, &SHARED, &QFX];

impl Queue {
    /// Reads the table of a queue.
    pub(crate) fn read(at: &At<'_>) -> Result<Self, Reported> {
        let section = section_by_kind(at, &SECTIONS)?;
        let fields = Fields::open(at.clone(), section)?;
        let buffer = fields.get("buffer");
        let queue = Self {
            discipline: Discipline::read(&fields)?,
            buffer: buffer?,
        };
        queue.check(&fields)?;
        Ok(queue)
    }

    /// Thresholds that the queue cannot reach would silently be none.
    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        let Buffer::Limited(buffer) = self.buffer else {
            return Ok(());
        };
        let mut result = Ok(());
        for (name, threshold) in self.discipline.thresholds() {
            let above = match (threshold, buffer) {
                (Level::Bytes(threshold), Level::Bytes(buffer)) => threshold > buffer,
                (Level::Packets(threshold), Level::Packets(buffer)) => threshold > buffer,
                _ => false,
            };
            if above {
                result = Err(fields.blame(name).conflict(
                    format!("{threshold} is above the buffer of {buffer}"),
                    "set a threshold up to the buffer, or a larger buffer",
                ));
            }
        }
        result
    }
}

impl Discipline {
    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let kind: String = fields.get("kind")?;
        Ok(match kind.as_str() {
            "red" => {
                let (red, length) = (Red::read(fields), RedLength::read(fields));
                Self::Red {
                    red: red?,
                    length: length?,
                    ecn: fields.get("ecn")?,
                }
            }
            "step" => Self::Step {
                ecn_threshold: fields.get("ecn_threshold")?,
            },
            "two-threshold" => {
                let (min, max) = ordered(fields, "ecn_min", "ecn_max")?;
                Self::TwoThreshold {
                    ecn_min: min,
                    ecn_max: max,
                    probability: fields.get("probability")?,
                }
            }
            "shared" => {
                let (threshold, red) = (fields.get("ecn_threshold"), Red::read(fields));
                Self::Shared {
                    ecn_threshold: threshold?,
                    red: red?,
                }
            }
            "qfx" => Self::Qfx {
                ecn_threshold: fields.get("ecn_threshold")?,
            },
            _ => Self::DropTail,
        })
    }

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
    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let probability = fields.get("drop_probability");
        let (red_min, red_max) = ordered(fields, "red_min", "red_max")?;
        Ok(Self {
            red_min,
            red_max,
            drop_probability: probability?,
        })
    }

    fn thresholds(&self) -> [(&'static str, Level); 2] {
        [
            ("red_min", Level::Bytes(self.red_min)),
            ("red_max", Level::Bytes(self.red_max)),
        ]
    }
}

impl RedLength {
    /// The weight of one arrival that Floyd and Jacobson recommend.
    const WEIGHT: f64 = 0.002;

    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let length: String = fields.get("length")?;
        if length == "average" {
            return Ok(Self::Average {
                weight: fields.optional("weight")?.unwrap_or(Self::WEIGHT),
                gentle: fields.optional("gentle")?.unwrap_or(true),
            });
        }
        match ["weight", "gentle"].iter().find(|key| fields.has(key)) {
            None => Ok(Self::Instantaneous),
            Some(key) => Err(fields.blame(key).conflict(
                format!("`{key}` has no meaning for the instantaneous length"),
                "remove it, or set `length = \"average\"`",
            )),
        }
    }
}

fn ordered(fields: &Fields<'_>, least: &str, most: &str) -> Result<(ByteSize, ByteSize), Reported> {
    let (min, max) = (fields.get::<ByteSize>(least), fields.get::<ByteSize>(most));
    let (min, max) = (min?, max?);
    if min > max {
        return Err(fields.blame(least).conflict(
            format!("{min} is above `{most}`, {max}"),
            format!("`{least}` must be at most `{most}`"),
        ));
    }
    Ok((min, max))
}
