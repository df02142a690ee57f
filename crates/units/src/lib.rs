//! Time, rate and size as types: integers inside, `50us`, `25Gbps`, `1.8MB` outside.
//!
//! Operators saturate at zero and at the largest value, so that no arithmetic on values that come
//! from outside can panic; the `checked_*` methods tell. [`Time::MAX`] serves as "never".

mod rate;
mod size;
mod time;

pub use rate::Rate;
pub use size::ByteSize;
pub use time::{Duration, Time};
