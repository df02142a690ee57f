//! An emulated network in real time: the scenario that the simulator runs in virtual time, with real
//! endpoints in network namespaces and the same switch between them.
//!
//! [`run`] does it all. What it makes is gone when it returns, and when its process dies:
//!
//! - A **director**, the process that calls [`run`], checks scenario and machine, makes a [`plan`],
//!   starts a process per host, orders what endpoints do, brings faults about, and puts results together.
//! - Each **host** is a process in a network namespace that has no name and lives as long as the process.
//!   Its interfaces are TAP devices whose other ends it hands to the director; its endpoints are the
//!   kernel's TCP and UDP, TLS over it, and DCQUIC.
//! - The **switch**, a thread of the director, is the simulator's network between these ends, in real time.
//!
//! | module | what it tells |
//! |---|---|
//! | [`plan`] | what a scenario becomes on this machine, before anything is made |
//! | [`host`] | a host process: its namespace and interfaces |
//! | [`control`] | what the director and the agents in the hosts say to each other |
//! | [`agent`] | the endpoints in a host |
//! | `tcp_options` | what of a scenario's TCP a kernel can honour |
//! | [`switch`] | the network between the hosts |
//! | `director` | a run from the outside |
//! | [`runs`] | which runs there are on this machine, and what killed ones left |

pub mod agent;
mod clock;
pub mod control;
mod director;
mod error;
mod handover;
pub mod host;
pub mod plan;
pub mod runs;
pub mod switch;
mod tcp_options;

pub use director::{HOST_COMMAND, check, run};
pub use error::{CongestionError, LabError};
