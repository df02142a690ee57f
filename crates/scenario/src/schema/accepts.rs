//! The accepted values of a key: their type and range.

use std::fmt;

use weir_fabric::Probability;
use weir_units::{ByteSize, Duration, Rate};

use super::{FromScalar, Scalar};
use crate::document::{Cursor, Reported, Value};
use crate::error::{ProblemKind, nearest};
use crate::level::{Buffer, Level, UNLIMITED};

/// The accepted values of a key. Ranges include their ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Accepts {
    Boolean,
    /// A whole number.
    Count(u64, u64),
    /// A finite number.
    Number(f64, f64),
    /// A number between 0 and 1.
    Probability,
    Rate(Rate, Rate),
    Size(ByteSize, ByteSize),
    Duration(Duration, Duration),
    /// A size or a number of packets.
    Level,
    /// A size, a number of packets, or no limit.
    Buffer,
    /// A size or no limit.
    Limit(ByteSize),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text that is not empty.
    Text,
    /// A structured value, which the reader of the key checks.
    Other(&'static str),
}

/// A type with a default for the accepted values; a key may override it.
pub(crate) trait Accepted {
    const ACCEPTS: Accepts;
}

impl Accepted for bool {
    const ACCEPTS: Accepts = Accepts::Boolean;
}

impl Accepted for Probability {
    const ACCEPTS: Accepts = Accepts::Probability;
}

impl Accepted for Rate {
    const ACCEPTS: Accepts = Accepts::RATE;
}

impl Accepted for Level {
    const ACCEPTS: Accepts = Accepts::Level;
}

impl Accepted for Buffer {
    const ACCEPTS: Accepts = Accepts::Buffer;
}

/// The fastest link. Products of rates and times stay well within 128 bits.
const FASTEST: Rate = Rate::from_gbps(100_000);
/// The slowest link: a packet of 64 KB takes nine minutes.
const SLOWEST: Rate = Rate::from_bits_per_second(1_000);

/// The maximum of a queue length in packets.
const MOST_PACKETS: u64 = 1_000_000_000;
/// More memory than any switch has, and small enough that sums do not overflow.
const LARGEST: ByteSize = ByteSize::from_bytes(1_000_000_000_000);
/// The longest duration: sums of a few hundred of them do not overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(1000 * 3600);

impl Accepts {
    /// A table with its own keys.
    pub(crate) const TABLE: Self = Self::Other("a table");
    /// The rate of a link or a sender.
    pub(crate) const RATE: Self = Self::Rate(SLOWEST, FASTEST);
    /// A size above zero.
    pub(crate) const SIZE: Self = Self::Size(ByteSize::from_bytes(1), LARGEST);
    /// A threshold, which may be zero.
    pub(crate) const THRESHOLD: Self = Self::Size(ByteSize::ZERO, LARGEST);
    /// A time or a duration that may be zero.
    pub(crate) const SPAN: Self = Self::Duration(Duration::ZERO, LONGEST);
    /// A duration above zero.
    pub(crate) const POSITIVE_SPAN: Self = Self::Duration(Duration::from_nanos(1), LONGEST);

    /// Reads the value at a cursor.
    pub(crate) fn read<T: FromScalar>(&self, at: &Cursor<'_>) -> Result<T, Reported> {
        let scalar = self
            .check(&at.node.value)
            .map_err(|kind| at.problem(kind))?;
        T::from_scalar(scalar).ok_or_else(|| at.wrong_kind(self.to_string()))
    }

    /// Checks and converts `value`.
    fn check(&self, value: &Value) -> Result<Scalar, ProblemKind> {
        let wrong_kind = || ProblemKind::WrongKind {
            expected: self.to_string(),
            found: value.describe(),
        };
        let scalar = match (*self, value) {
            (Self::Boolean, Value::Boolean(value)) => Scalar::Boolean(*value),
            (Self::Count(..), Value::Integer(value)) => match u64::try_from(*value) {
                Ok(count) => Scalar::Count(count),
                Err(_) => return Err(self.out_of_range(value)),
            },
            (Self::Number(..), Value::Integer(value)) => Scalar::Number(*value as f64),
            (Self::Number(..), Value::Float(value)) => Scalar::Number(*value),
            (Self::Probability, Value::Integer(value)) => self.probability(*value as f64)?,
            (Self::Probability, Value::Float(value)) => self.probability(*value)?,
            (Self::Rate(..), Value::Text(text)) => Scalar::Rate(text.parse()?),
            (Self::Size(..), Value::Text(text)) => Scalar::Size(text.parse()?),
            (Self::Duration(..), Value::Text(text)) => Scalar::Duration(text.parse()?),
            (Self::Level, Value::Text(text)) => Scalar::Level(text.parse()?),
            (Self::Buffer | Self::Limit(_), Value::Text(text)) if text == UNLIMITED => match self {
                Self::Buffer => Scalar::Buffer(Buffer::Unlimited),
                _ => Scalar::Limit(None),
            },
            (Self::Buffer, Value::Text(text)) => Scalar::Buffer(Buffer::Limited(text.parse()?)),
            (Self::Limit(_), Value::Text(text)) => Scalar::Limit(Some(text.parse()?)),
            (Self::Word(words), Value::Text(text)) => word(words, text)?,
            (Self::Text, Value::Text(text)) if !text.trim().is_empty() => {
                Scalar::Text(text.clone())
            }
            _ => return Err(wrong_kind()),
        };
        if self.contains(&scalar) {
            Ok(scalar)
        } else {
            Err(ProblemKind::OutOfRange {
                expected: self.to_string(),
                found: bare(value),
            })
        }
    }

    fn probability(&self, value: f64) -> Result<Scalar, ProblemKind> {
        match Probability::new(value) {
            Ok(probability) => Ok(Scalar::Probability(probability)),
            Err(_) => Err(self.out_of_range(value)),
        }
    }

    fn out_of_range(&self, value: impl ToString) -> ProblemKind {
        ProblemKind::OutOfRange {
            expected: self.to_string(),
            found: value.to_string(),
        }
    }

    fn contains(&self, scalar: &Scalar) -> bool {
        let level = |level: &Level| match level {
            Level::Bytes(size) => *size <= LARGEST,
            Level::Packets(packets) => *packets <= MOST_PACKETS,
        };
        match (self, scalar) {
            (Self::Count(least, most), Scalar::Count(value)) => (least..=most).contains(&value),
            (Self::Number(least, most), Scalar::Number(value)) => (least..=most).contains(&value),
            (Self::Rate(least, most), Scalar::Rate(value)) => (least..=most).contains(&value),
            (Self::Size(least, most), Scalar::Size(value)) => (least..=most).contains(&value),
            (Self::Duration(least, most), Scalar::Duration(value)) => {
                (least..=most).contains(&value)
            }
            (_, Scalar::Level(value)) => level(value),
            (_, Scalar::Buffer(Buffer::Limited(value))) => level(value) && !value.is_zero(),
            (Self::Limit(least), Scalar::Limit(Some(value))) => (least..=&LARGEST).contains(&value),
            _ => true,
        }
    }
}

fn word(words: &[&'static str], text: &str) -> Result<Scalar, ProblemKind> {
    if words.contains(&text) {
        return Ok(Scalar::Text(text.to_owned()));
    }
    Err(ProblemKind::UnknownWord {
        found: text.to_owned(),
        accepted: words.join(", "),
        nearest: nearest(text, words.iter().copied()),
    })
}

/// Formats the value as written, without the words for its type.
fn bare(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        other => other.describe(),
    }
}

impl fmt::Display for Accepts {
    /// Formats with an article, to continue the sentence "it takes …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("true or false"),
            Self::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Number(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Probability => f.write_str("a probability from 0 to 1"),
            Self::Rate(least, most) => write!(f, "a rate from {least} to {most}, in text"),
            Self::Size(least, most) => write!(f, "a size from {least} to {most}, in text"),
            Self::Duration(least, most) => write!(f, "a duration from {least} to {most}, in text"),
            Self::Level => write!(
                f,
                "a size up to {LARGEST}, or a number of packets such as \"65 packets\""
            ),
            Self::Buffer => write!(
                f,
                "a size from 1B to {LARGEST}, a number of packets such as \"100 packets\", or \
                 \"unlimited\""
            ),
            Self::Limit(least) => {
                write!(f, "a size from {least} to {LARGEST}, or \"unlimited\"")
            }
            Self::Word(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                match words.split_last() {
                    Some((last, [])) => f.write_str(last),
                    Some((last, rest)) => write!(f, "{} or {last}", rest.join(", ")),
                    None => Ok(()),
                }
            }
            Self::Text => f.write_str("text"),
            Self::Other(description) => f.write_str(description),
        }
    }
}
