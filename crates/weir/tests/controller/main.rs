//! Controllers of policies as processes, with hosts that this process plays: pushes, kills, roles, and damage.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod endpoints;
mod etcd;
mod file;
mod world;

#[path = "../support/mod.rs"]
mod support;
