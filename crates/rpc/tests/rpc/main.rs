//! Servers and channels over loopback.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod balancing;
mod calls;
mod deadlines;
mod hostile;
mod retries;
mod streams;
mod support;
mod traces;
