//! Parser of scenario files: descriptions of an experiment, as checked types.
//!
//! A [`Scenario`] contains everything that determines an experiment's outcome: the network, its
//! queues, the flows and their data, faults, measurements. [`Scenario::load`] reads it from a TOML
//! file, with [`Setting`]s that override values, and with the file's [`Variant`]s.
//! `docs/scenario.md` describes the file. [`key_reference`] returns its list of keys, from the
//! descriptions that the loader uses.
//!
//! ```
//! use weir_scenario::{Scenario, Transport};
//!
//! let text = r#"
//! title = "Two DCTCP flows share a link"
//! source = "an example"
//! duration = "1s"
//!
//! [parameters]
//! ecn_threshold = "65 packets"
//!
//! [dumbbell]
//! rate = "10Gbps"
//! queue = { kind = "step", ecn_threshold = "$ecn_threshold", buffer = "1MB" }
//!
//! [dumbbell.senders.sender]
//! count = 2
//! rtt = "100us"
//!
//! [groups.dctcp]
//! from = "sender"
//! to = "receiver"
//! congestion = "dctcp"
//! workload = "bulk"
//! "#;
//! let settings = ["parameters.ecn_threshold=20 packets".parse()?];
//! let loaded = Scenario::parse("example.toml", text, &settings)?;
//! let group = &loaded.scenario.groups[0];
//! assert_eq!(group.pairs().count(), 2);
//! assert!(matches!(&group.transport, Transport::Tcp { congestion, .. } if congestion.name() == "dctcp"));
//!
//! let error = Scenario::parse("example.toml", &text.replace("rtt", "rt"), &[]).unwrap_err();
//! assert!(error.to_string().contains("example.toml:15: dumbbell.senders.sender.rt: there is no such key"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [policy](weir_policy::Policy) assigns algorithms to TCP flows on real interfaces;
//! [`load_policy`] reads it in the same way.

mod change;
mod congestion;
mod document;
mod error;
mod fault;
mod group;
mod level;
mod link_share;
mod live;
mod loader;
mod loads;
mod measurements;
#[cfg(test)]
mod one_group;
mod packetization;
mod policy_file;
mod quantity;
mod queue;
mod read;
mod reference;
mod rows;
mod scenario;
mod schema;
mod sed;
pub mod shipped;
mod topology;
mod transport;
mod under_policy;
mod variants;
mod warnings;
mod workload;
mod written;

pub use change::{
    Change, ChangeSchedule, ChangedSettings, QueueChange, SharedBufferChange, WorkloadChange,
};
pub use error::{Position, Problem, ProblemKind, ScenarioError};
pub use fault::{Fault, FaultKind, FaultPeriod};
pub use group::{ArrivalPairs, Group, OfferedLoad, Pairing, StandsFor};
pub use level::{Buffer, Level};
pub use live::{AddressFamily, LiveOptions, Network, NetworkParseError};
pub use loader::{Document, PluginNameError, Setting, SettingError};
pub use measurements::{Measurements, Reduction};
pub use packetization::{Packetization, PathLink, TransferPackets};
pub use policy_file::{
    CheckedPolicy, load_access, load_deadlines, load_policy, load_policy_for, parse_access,
    parse_deadlines, parse_policy, parse_policy_for,
};
pub use quantity::Quantity;
pub use queue::{Discipline, PriorityClass, Queue, Red, RedLength};
pub use reference::{
    access_key_reference, deadline_key_reference, key_reference, policy_key_reference,
};
pub use scenario::Scenario;
pub use sed::{RttAverage, SedAllocation, SedLate, SedOptions};
pub use topology::{
    Crossings, Host, HostIndex, LinkClass, LoadBalancing, Node, PathFault, Port, PortIndex, Route,
    Routes, SharedBuffer, SharedLimit, Switch, SwitchIndex, TconRule, Topology,
};
pub use transport::{
    DcudpAckInterval, DcudpCondition, DcudpEcho, DcudpFeedback, DcudpOptions, DcudpQuit, DcudpRtt,
    DelayedAck, MigrationDetector, MigrationOptions, Pacing, PartialAckTimer, QuicOptions,
    QuicPacketSize, Recovery, RtoFloor, TCP_HEADERS, TcpEcn, TcpOptions, TlsOptions, Transport,
    UDP_HEADERS, UdpEcn, UdpOptions,
};
pub use under_policy::{GroupUnderPolicy, PolicyMisfit, PolicyOutcome};
pub use variants::{LoadedScenario, Variant, VariedKey};
pub use warnings::{Warning, WarningKind};
pub use workload::{
    ArrivalProcess, Arrivals, ConnectionUse, Distribution, Trace, TraceFlow, Workload,
};
