//! Agents on loopback, without namespaces: every workload over every transport, and failures.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ends;
mod failures;
mod support;
mod workloads;
