//! Hostile peers: a fuzzer's input becomes valid packets, invalid packets, floods and jumps in
//! time, against a whole endpoint that also has an honest connection.
//!
//! Checks after every step: no panic, memory within its bound, no more bytes sent to an address
//! than allowed, a violation closed with its code, and no honest peer closed. In the end the honest
//! connection still transfers data, and no state of the others remains.
//!
//! Used by `tests/attacks.rs` with few cases and with scripts of earlier findings, and by the fuzz
//! targets `server` and `client`.
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
pub(crate) use script::{ApplicationAction, Hostile, Look, Number, Script, Seal, Step, Wrong};
