//! Hostile peers: what a fuzzer writes becomes packets that open, packets that do not, floods and
//! jumps in time, against a whole endpoint that has an honest connection beside.
//!
//! After every step: no panic, memory within its bound, no more sent to an address than it may get,
//! a violation closed with its code, and nobody closed who did nothing wrong. In the end the honest
//! connection still carries data, and nothing is left of the others.
//!
//! Used by `tests/attacks.rs` with few cases and with scripts that once found something, and by the
//! fuzz targets `server` and `client`.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "a test that fails may panic; each user takes its part"
)]

mod arena;
mod flood;
mod frames;
mod host;
mod peer;
mod script;

pub(crate) use arena::{Arena, run};
pub(crate) use script::{Hostile, Look, Number, Script, Seal, Step, Wish, Wrong};
