//! Scenarios in virtual time: hosts, links and switches, packet by packet.
//!
//! A [`Simulation`] is made of a [`Scenario`](weir_scenario::Scenario), goes through its time event by
//! event, hands what it observes to a [`Recorder`], and ends in a
//! [`RunSummary`](weir_results::RunSummary). The same scenario with the same seed does the same, to the
//! last bit.
//!
//! The way of a packet, from left to right:
//!
//! `workloads` → `hosts` (TCP, DCQUIC, UDP) → `network`: uplink → switch → link → … → `hosts` → `workloads`
//!
//! | file | what it does |
//! |---|---|
//! | `simulation` | from one event to the next |
//! | `calendar` | whose event is the next one |
//! | `network` | links and switches of the topology |
//! | `queues` | from a scenario's queue to the fabric's rules |
//! | `hosts` | endpoints of flows, their timers |
//! | `world` | all of these together, for applications to act upon |
//! | `workloads` | what flows carry, and when |
//! | `flows`, `epochs` | the books on flows, and on requests in step |
//! | `deadlines` | which transfers were in time |
//! | `measure`, `recorder` | what is observed, and who takes it |
//! | `capture` | packets for Wireshark |
//! | `tcon` | transparent congestion control in a switch's path |
//! | `experiment`, `thresholds` | a scenario with its variants, and what comes out of all of them |
//! | `sed` | the controller of SED and its channels |
//! | `faults`, `seeds`, `packet` | as they say |
//!
//! One run is one thread. Nothing allocates, hashes or searches per packet.

mod calendar;
mod capture;
mod deadlines;
mod epochs;
mod error;
mod experiment;
pub mod faults;
mod flows;
mod hosts;
mod measure;
mod network;
mod packet;
mod queues;
mod recorder;
mod sed;
mod seeds;
mod simulation;
mod tcon;
mod thresholds;
mod workloads;
mod world;

pub use capture::Capture;
pub use deadlines::{DueTransfer, deadline_summary};
pub use error::BuildError;
pub use experiment::{About, Experiment, Outcome, Results, Run};
pub use hosts::{dcudp_transport, quic_transport};
pub use measure::PortMeter;
pub use network::{Network, Outlet};
pub use packet::Packet;
pub use recorder::Recorder;
pub use sed::ControlPlane;
pub use seeds::{Drawer, Seeds};
pub use simulation::Simulation;
pub use tcon::WhoseAddress;
pub use thresholds::thresholds;
pub use workloads::Random;
