//! HTTP/3 over real sockets on loopback.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod draining;
mod hostile;
mod hostile_server;
mod memory;
mod requests;
mod support;
