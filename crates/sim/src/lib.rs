//! The simulator: scenarios in virtual time, with hosts, links and switches, packet by packet.
//!
//! A [`Simulation`] is created from a [`Scenario`](weir_scenario::Scenario). It advances event by event,
//! passes its observations to a [`Recorder`](weir_results::Recorder), and ends in a
//! [`RunSummary`](weir_results::RunSummary). The same scenario with the same seed gives the same result, to
//! the last bit.
//!
//! The path of a packet:
//!
//! `workloads` → `hosts` (TCP, DCQUIC, UDP) → [`weir_network`]: uplink → switch → link → … → `hosts` → `workloads`
//!
//! | file | content |
//! |---|---|
//! | `simulation` | the event loop |
//! | `shard`, `windows`, `barrier` | a large network on several threads |
//! | `threads` | which scenarios can run on several threads |
//! | `hosts` | endpoints of flows, their timers |
//! | `world` | hosts and network together, for applications to act upon |
//! | `workloads` | the data of flows, and their times |
//! | `flows`, `epochs` | the flow table, and synchronized requests |
//! | `deadlines` | which transfers were in time |
//! | `measure` | statistics of groups |
//! | `plugins` | which flow's plug-in failed |
//! | `packet` | the packets of hosts |
//! | `destinations` | the hosts of packet addresses |
//! | `experiment` | a scenario with its variants, and their results |
//! | `varied` | the values that variants change, as columns |
//!
//! One run is one thread, unless [several](Simulation::with_threads) are asked for. Nothing allocates, hashes
//! or searches per packet.

mod barrier;
mod deadlines;
mod destinations;
mod epochs;
mod error;
mod experiment;
mod flows;
mod hosts;
mod measure;
mod packet;
mod plugins;
mod shard;
mod simulation;
mod threads;
mod varied;
mod windows;
mod workloads;
mod world;

pub use error::{BuildError, ControllerFailure, RunError};
pub use experiment::{Experiment, ExperimentInfo, Outcome, Results, Run};
pub use simulation::{OpenFlow, Simulation};
pub use threads::{FewerThreads, Threads};
pub use varied::table_value;
