//! Converts accepted values to Rust types.

use weir_fabric::Probability;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::level::{Buffer, Level};

/// A single value, of the type and in the range that the schema accepts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Boolean(bool),
    Count(u64),
    Number(f64),
    Probability(Probability),
    Rate(Rate),
    Size(ByteSize),
    Duration(Duration),
    Level(Level),
    Buffer(Buffer),
    /// `None` for `"unlimited"`.
    Limit(Option<ByteSize>),
    Text(String),
}

/// A type that can be read from a single value.
pub(crate) trait FromScalar: Sized {
    /// Converts the value; `None` if the schema has another type for the key, which is a bug in
    /// this crate.
    fn from_scalar(scalar: Scalar) -> Option<Self>;
}

macro_rules! from_scalar {
    ($($type:ty: $pattern:pat => $value:expr),+ $(,)?) => {$(
        impl FromScalar for $type {
            fn from_scalar(scalar: Scalar) -> Option<Self> {
                match scalar {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
    )+};
}

from_scalar! {
    bool: Scalar::Boolean(value) => Some(value),
    u64: Scalar::Count(value) => Some(value),
    u16: Scalar::Count(value) => u16::try_from(value).ok(),
    u32: Scalar::Count(value) => u32::try_from(value).ok(),
    f64: Scalar::Number(value) => Some(value),
    Probability: Scalar::Probability(value) => Some(value),
    Rate: Scalar::Rate(value) => Some(value),
    ByteSize: Scalar::Size(value) => Some(value),
    Duration: Scalar::Duration(value) => Some(value),
    Time: Scalar::Duration(value) => Some(Time::ZERO + value),
    Level: Scalar::Level(value) => Some(value),
    Buffer: Scalar::Buffer(value) => Some(value),
    Option<ByteSize>: Scalar::Limit(value) => Some(value),
    String: Scalar::Text(value) => Some(value),
}
