//! The controller and what attaches to it as processes: the decisions of [`weir_sed`] about windows and of
//! [`weir_rollout`] about policies, carried by gRPC with mutual TLS.
//!
//! - [`Controller`] listens for agents, applications and operators, and runs [`weir_sed::Controller`]
//!   in real time;
//! - [`AgentChannel`] connects an agent to it, in any data plane;
//! - [`SenderChannel`] connects senders that are their own agents: DCQUIC endpoints;
//! - [`Client`] connects applications and operators;
//! - [`HostChannel`] connects hosts that put policies in force, and [`FleetClient`] those who push them;
//! - [`certificates`] issues the certificates for all of them.
//!
//! | file | what it does |
//! |---|---|
//! | `controller` | the process: authorization, the switches, when to decide |
//! | `agent` | the agent's end of the stream, which reconnects by itself |
//! | `sender` | the same for senders that are their own agents |
//! | `client` | registrations and the status |
//! | `fleet` | the controller of policies, its stores, and both kinds of its clients |
//! | `translate`, `message` | conversion between the wire (`proto/weir/sed/v1`) and [`weir_sed`] |
//! | `certificates`, `credentials`, `role` | authentication and roles |
//! | `connect`, `controller/accept` | TLS connections, and why one is refused |
//! | `leader_epoch` | which of two controllers an agent obeys |
//!
//! # Leader epochs
//!
//! A controller locks its state directory, which holds its name and its term. Each start has a higher
//! term, and a second controller with the same state is refused. An agent announces whose orders are in
//! force. A controller of another name leaves such a switch alone until they have expired, and one that
//! sees a higher term of its own name exits. Orders below the term of an agent's welcome are ignored.
//!
//! # Leases
//!
//! Orders hold for a lease from when they were decided, not from when they arrived. Each carries the
//! last beat of the agent's clock that the controller had received before; orders with too old a beat
//! end the connection and are not obeyed. An agent that receives nothing for a lease releases all
//! windows.

mod agent;
pub mod certificates;
mod client;
mod codec;
mod connect;
mod controller;
mod controller_stream;
mod credentials;
mod error;
mod fleet;
mod handshake_failure;
mod leader_epoch;
mod lease;
pub mod message;
mod quota;
mod role;
mod sender;
mod stream;
mod translate;
pub mod view;

/// The wire format, generated from `proto/weir/sed/v1/sed.proto`.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("weir.sed.v1");
}

/// The wire format, generated from `proto/weir/policy/v1/policy.proto`.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub mod policy_v1 {
    tonic::include_proto!("weir.policy.v1");
}

/// etcd's wire format, generated from `proto/etcd/etcd.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    reason = "generated"
)]
pub(crate) mod etcd {
    tonic::include_proto!("etcdserverpb");
}

/// etcd's elections, generated from `proto/etcd/election.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    reason = "generated"
)]
pub(crate) mod etcd_election {
    tonic::include_proto!("v3electionpb");
}

pub use agent::{
    AgentChannel, AgentEvent, AgentOptions, AgentState, PortDescription, register_agent_metrics,
};
pub use client::{Client, ClientError};
pub use controller::{
    Controller, ControllerError, ControllerHandle, ControllerOptions, register_controller_metrics,
};
pub use credentials::{Credentials, CredentialsError};
pub use error::AgentError;
pub use fleet::{
    AssignedPolicy, FleetClient, FleetClientError, FollowedPolicy, HeldFile, HeldFileError,
    HeldPolicy, HostChannel, HostEvent, HostOptions, HostState, Pushed, ReadPolicy, StoreError,
    StoreLocation, register_fleet_metrics,
};
pub use leader_epoch::{EpochFile, LeaderEpoch, StateError};
pub use role::Role;
pub use sender::{SenderChannel, SenderOptions};
pub use translate::DecodeError;

/// The controller's default port.
pub const DEFAULT_PORT: u16 = 9600;
