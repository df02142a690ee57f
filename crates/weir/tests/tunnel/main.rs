//! `weir tunnel`, client and server as processes.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod blocked;
#[path = "../enforce/namespace.rs"]
mod namespace;
mod pair;
mod processes;
mod redirection;
mod restart;
mod running;
#[path = "../support/mod.rs"]
mod support;
mod transparent;
