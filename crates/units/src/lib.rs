//! Types for time, rate and size: integers inside, `50us`, `25Gbps`, `1.8MB` as text.
//!
//! Operators saturate at zero and at the largest value, so that arithmetic on external values
//! cannot panic; the `checked_*` methods report overflow. [`Time::MAX`] serves as "never".

//! Text is parsed exactly, by integer arithmetic, and every value is formatted so that it parses
//! back to itself:
//!
//! ```
//! use weir_units::{ByteSize, Rate};
//!
//! let rate: Rate = "12.5 Gbps".parse()?;
//! assert_eq!(rate.bits_per_second(), 12_500_000_000);
//! assert_eq!(rate.to_string(), "12.5Gbps");
//! assert_eq!(ByteSize::from_kib(64).to_string(), "64KiB");
//! # Ok::<(), weir_units::ParseError>(())
//! ```

mod amount;
mod error;
mod rate;
mod size;
#[cfg(test)]
mod tests;
mod text;
mod time;

pub use error::ParseError;
pub use rate::Rate;
pub use size::ByteSize;
pub use time::{Duration, Time};
