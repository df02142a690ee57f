//! Endpoints over sockets of loopback, in one program: `cargo test -p weir-net --test endpoints streams::`
//! runs one file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod allocation;
mod bursts;
mod calls;
mod crashes;
mod credentials;
mod datagrams;
mod drain;
mod handlers;
mod incoming;
mod interop;
mod known_peers;
mod lifecycle;
mod observe;
mod paths;
mod policy;
mod resumption;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod threads;
mod trust;
mod validation;
