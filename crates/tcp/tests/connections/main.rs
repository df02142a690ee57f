//! Tests of two connections over a path, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod congestion;
mod ecn;
mod hostile;
mod lifecycle;
mod sending;
mod spurious;
mod transfers;
mod twins;
mod windows;
mod world;
