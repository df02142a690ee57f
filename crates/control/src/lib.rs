//! SED's controller and its agents as processes: what [`weir_sed`] decides, carried by gRPC with mutual TLS.
//!
//! - [`Controller`] listens for agents, applications and operators, and drives [`weir_sed::Controller`] in
//!   real time;
//! - [`AgentChannel`] is an agent's way to it, whatever data plane the agent sits in;
//! - [`SenderChannel`] is that of senders that are their own agents: DCQUIC endpoints;
//! - [`Client`] is an application's and an operator's;
//! - [`certificates`] makes what they prove to each other who they are with.
//!
//! | file | what it does |
//! |---|---|
//! | `controller` | the process: who may say what, which switches there are, when to decide |
//! | `agent` | the other end of its streams, which comes back by itself |
//! | `sender` | the same for senders that are their own agents |
//! | `client` | registrations and the status |
//! | `translate`, `message` | what is on the wire (`proto/weir/sed/v1`) from and to what [`weir_sed`] has |
//! | `certificates`, `credentials`, `role` | who is who |
//! | `term` | which of two controllers has the say |
//!
//! # Who has the say
//!
//! A controller holds a lock on its state directory, where its name and its term are: each start has a
//! higher term, and a second controller with the same state is refused. An agent tells whose orders are in
//! force; a controller of another name leaves such a switch alone until they have expired, and one that
//! hears of a higher term of its own name ends. Orders below the term of an agent's welcome are ignored.
//!
//! # What a lease is worth
//!
//! Orders hold for a lease from when they were decided, not from when they came: each carries the last beat
//! of the agent's clock that the controller had heard before, and those whose beat is too old end the
//! connection instead of being obeyed. An agent that hears nothing lets go of all windows.

mod agent;
pub mod certificates;
mod client;
mod connect;
mod controller;
mod controller_stream;
mod credentials;
mod error;
mod leader_epoch;
mod lease;
pub mod message;
mod quota;
mod role;
mod sender;
mod stream;
mod translate;
pub mod view;

/// What is on the wire, made of `proto/weir/sed/v1/sed.proto`.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("weir.sed.v1");
}

pub use agent::{AgentChannel, AgentEvent, AgentOptions, AgentState, PortDescription};
pub use client::{Client, ClientError};
pub use controller::{Controller, ControllerError, ControllerHandle, ControllerOptions};
pub use credentials::{Credentials, CredentialsError};
pub use error::AgentError;
pub use leader_epoch::{EpochFile, LeaderEpoch, StateError};
pub use role::Role;
pub use sender::{SenderChannel, SenderOptions};
pub use translate::DecodeError;

/// Where a controller listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 9600;
