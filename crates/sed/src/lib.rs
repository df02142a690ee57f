//! SED and RSED: a controller that makes flows meet their deadlines (Lu, "SED: An SDN-Based
//! Explicit-Deadline-Aware TCP for Cloud Data Center Networks", Tsinghua Science and Technology 21(5),
//! 2016).
//!
//! Two state machines without sockets or clocks, and the messages between them:
//!
//! - [`Agent`], an element in a switch's path, watches queues. It [reports](SwitchReport) congestion,
//!   connections and (RSED) drops, and lowers the receive windows of passing ACKs as ordered;
//! - [`Controller`] keeps a table of all flows with their remaining bytes and deadlines
//!   ([`DemandTable`]), and [orders](WindowOrder) each flow's window by the paper's Algorithm 2 or by a
//!   plan ([`Method`]).
//!
//! | file | what it does |
//! |---|---|
//! | `agent` | the switch's side: states NOM and CNG, clamp, duplicate ACKs |
//! | `message` | reports and orders between the two |
//! | `controller` | when windows are computed, leases |
//! | `table` | the global information flow table |
//! | `demand` | sizes and deadlines: registered, or by rules |
//! | `allocation` | equations 3 and 4, Algorithm 2, and the plan |
//! | `sender` | interface for transports that are their own agents |
//! | `schedule` | the most deadlines that can be met (Moore–Hodgson) |

mod agent;
mod allocation;
mod controller;
mod demand;
mod message;
mod recent_max;
pub mod schedule;
mod sender;
mod table;

pub use agent::{Agent, AgentConfig, AgentCounters};
pub use allocation::{AllocationSettings, FlowDemand, LatePolicy, Method, allocate, total_window};
pub use controller::{
    Controller, ControllerConfig, ControllerCounters, PortState, RttReading, Slack,
};
pub use demand::{Demand, DemandError, DemandRule, DemandTable, FlowPattern, shares_prefix};
pub use message::{FlowProgress, PortId, QueueState, SwitchReport, WindowOrder};
pub use sender::{Allocator, Allowance, AllowanceCallback, SenderFlow};
pub use table::Entry;
