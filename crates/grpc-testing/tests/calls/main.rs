//! Calls by tonic over DCQUIC: what gRPC's own cases leave out.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancellation;
mod deadlines;
mod flow_control;
mod layers;
mod messages;
mod scripted;
mod servers;
mod statuses;
mod support;
