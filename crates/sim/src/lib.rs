//! Scenarios in virtual time: hosts, links and switches, packet by packet.
//!
//! A [`Simulation`] is made of a [`Scenario`](weir_scenario::Scenario), goes through its time event by
//! event, hands what it observes to a [`Recorder`](weir_results::Recorder), and ends in a
//! [`RunSummary`](weir_results::RunSummary). The same scenario with the same seed does the same, to the
//! last bit.
//!
//! The way of a packet, from left to right:
//!
//! `workloads` → `hosts` (TCP, DCQUIC, UDP) → [`weir_network`]: uplink → switch → link → … → `hosts` → `workloads`
//!
//! | file | what it does |
//! |---|---|
//! | `simulation` | from one event to the next |
//! | `hosts` | endpoints of flows, their timers |
//! | `world` | hosts and network together, for applications to act upon |
//! | `workloads` | what flows carry, and when |
//! | `flows`, `epochs` | the books on flows, and on requests in step |
//! | `deadlines` | which transfers were in time |
//! | `measure` | what is observed of groups |
//! | `packet` | what hosts send each other |
//! | `destinations` | whose the addresses of packets are |
//! | `experiment` | a scenario with its variants, and what comes out of all of them |
//!
//! One run is one thread. Nothing allocates, hashes or searches per packet.

mod deadlines;
mod destinations;
mod epochs;
mod error;
mod experiment;
mod flows;
mod hosts;
mod measure;
mod packet;
mod simulation;
mod workloads;
mod world;

pub use error::BuildError;
pub use experiment::{Experiment, ExperimentInfo, Outcome, Results, Run};
pub use simulation::Simulation;
