//! Parameters of algorithms: typed, with a default, a range and a line of documentation.

use std::fmt;

use weir_units::{ByteSize, Duration, ParseError, Rate};

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, such as a gain.
    Float(f64),
    /// A whole number.
    Integer(u64),
    /// A boolean.
    Boolean(bool),
    /// A span of time; [`Duration::MAX`] is written `unbounded`.
    Duration(Duration),
    /// An amount of data; [`ByteSize::MAX`] is written `unbounded`.
    Size(ByteSize),
    /// A data rate; [`Rate::MAX`] is written `unbounded`.
    Rate(Rate),
}

const UNBOUNDED: &str = "unbounded";

impl Value {
    /// Returns the kind of value with its article, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "a number",
            Self::Integer(_) => "a whole number",
            Self::Boolean(_) => "true or false",
            Self::Duration(_) => "a duration such as 50us",
            Self::Size(_) => "a size such as 64KiB",
            Self::Rate(_) => "a rate such as 10Gbps",
        }
    }

    /// Parses `text` as a value of the same kind as `self`. Returns `Ok(None)` if it is of another
    /// kind.
    pub(crate) fn parse_alike(&self, text: &str) -> Result<Option<Self>, ParseError> {
        Ok(match self {
            Self::Float(_) => text.parse().ok().map(Self::Float),
            Self::Integer(_) => text.parse().ok().map(Self::Integer),
            Self::Boolean(_) => text.parse().ok().map(Self::Boolean),
            Self::Duration(_) if text == UNBOUNDED => Some(Self::Duration(Duration::MAX)),
            Self::Size(_) if text == UNBOUNDED => Some(Self::Size(ByteSize::MAX)),
            Self::Rate(_) if text == UNBOUNDED => Some(Self::Rate(Rate::MAX)),
            Self::Duration(_) => Some(Self::Duration(text.parse()?)),
            Self::Size(_) => Some(Self::Size(text.parse()?)),
            Self::Rate(_) => Some(Self::Rate(text.parse()?)),
        })
    }

    /// Returns whether `self` lies between `least` and `most`, which are of the same kind.
    fn is_within(&self, least: &Self, most: &Self) -> bool {
        match (least, self, most) {
            (Self::Float(least), Self::Float(value), Self::Float(most)) => {
                (least..=most).contains(&value)
            }
            (Self::Integer(least), Self::Integer(value), Self::Integer(most)) => {
                (least..=most).contains(&value)
            }
            (Self::Duration(least), Self::Duration(value), Self::Duration(most)) => {
                (least..=most).contains(&value)
            }
            (Self::Size(least), Self::Size(value), Self::Size(most)) => {
                (least..=most).contains(&value)
            }
            (Self::Rate(least), Self::Rate(value), Self::Rate(most)) => {
                (least..=most).contains(&value)
            }
            (_, Self::Boolean(_), _) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Boolean(value) => value.fmt(f),
            Self::Duration(Duration::MAX) | Self::Size(ByteSize::MAX) | Self::Rate(Rate::MAX) => {
                f.pad(UNBOUNDED)
            }
            Self::Duration(value) => value.fmt(f),
            Self::Size(value) => value.fmt(f),
            Self::Rate(value) => value.fmt(f),
        }
    }
}

/// A parameter of an algorithm, as the registry describes it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// The default value. It also determines the parameter's kind.
    pub default: Value,
    /// The smallest value accepted.
    pub min: Value,
    /// The largest value accepted.
    pub max: Value,
}

impl Parameter {
    /// Returns whether `value` is of this parameter's kind and within its range.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        value.is_within(&self.min, &self.max)
    }
}

/// A parameter with its Rust type, so that an algorithm reads values that the registry checked.
#[derive(Debug)]
pub(crate) struct Typed<T> {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) default: T,
    pub(crate) min: T,
    pub(crate) max: T,
}

/// A Rust type of parameter values.
pub(crate) trait ParameterType: Copy {
    /// Returns the value, if it is of this type.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! impl_parameter_type {
    ($($type:ty => $variant:ident),+) => {$(
        impl Typed<$type> {
            /// Returns the parameter as the registry describes it.
            pub(crate) const fn parameter(&self) -> Parameter {
                Parameter {
                    name: self.name,
                    doc: self.doc,
                    default: Value::$variant(self.default),
                    min: Value::$variant(self.min),
                    max: Value::$variant(self.max),
                }
            }
        }

        impl ParameterType for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(*value),
                    _ => None,
                }
            }
        }
    )+};
}

impl_parameter_type!(
    f64 => Float,
    u64 => Integer,
    bool => Boolean,
    Duration => Duration,
    ByteSize => Size,
    Rate => Rate
);
