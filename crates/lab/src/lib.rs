//! A network emulator in real time. It runs the simulator's scenarios with real endpoints in network
//! namespaces and the same switch between them.
//!
//! [`run`] is the entry point. Everything it creates is removed when it returns or its process dies:
//!
//! - The **director** is the process that calls [`run`]. It checks the scenario and the machine, makes a
//!   [`plan`], starts one process per host, sends orders to the endpoints, injects faults and collects the
//!   results.
//! - Each **host** is a process in an unnamed network namespace that lives as long as the process. Its
//!   interfaces are TAP devices, whose other ends it hands to the director. Its endpoints are the
//!   kernel's TCP and UDP, TLS over TCP, and DCQUIC.
//! - The **switch**, a thread of the director, runs the simulator's network between them in real time.
//!
//! | module | contents |
//! |---|---|
//! | [`plan`] | what a scenario needs on this machine, computed before anything is created |
//! | [`host`] | a host process: its namespace and interfaces |
//! | [`control`] | the messages between the director and the agents in the hosts |
//! | [`agent`] | the endpoints in a host |
//! | `tcp_options` | the TCP options of a scenario that a kernel supports |
//! | [`switch`] | the network between the hosts |
//! | `director` | a run, seen from outside the hosts |
//! | [`network`] | two namespaces and a link, for programs of any kind |
//! | [`runs`] | the runs on this machine, and the remains of killed ones |

pub mod agent;
mod clock;
pub mod control;
mod director;
mod error;
mod handover;
pub mod host;
pub mod network;
pub mod plan;
pub mod runs;
pub mod switch;
mod tcp_options;

pub use director::{HOST_COMMAND, check, run};
pub use error::{CongestionError, LabError};
