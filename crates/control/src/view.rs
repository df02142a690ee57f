//! A controller's status for display and JSON.

use std::net::SocketAddr;

use serde::Serialize;
use weir_sed::PortState;
use weir_units::{ByteSize, Duration, Rate};

use crate::translate::{self, DecodeError};
use crate::v1;

/// The status.
#[derive(Clone, Debug, Serialize)]
pub struct StatusView {
    /// The controller's name.
    pub name: String,
    /// Its term.
    pub term: u64,
    /// Its uptime.
    pub up: Duration,
    /// The number of flows in its tables.
    pub flow_count: u64,
    /// The number of registered flows and patterns.
    pub registrations: u64,
    /// The number of senders that are their own agents.
    pub senders: u64,
    /// The known switches.
    pub switches: Vec<SwitchView>,
    /// The most urgent flows.
    pub flows: Vec<FlowView>,
}

/// A switch.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchView {
    /// Its name.
    pub name: String,
    /// Whether its agent is connected.
    pub attached: bool,
    /// Its ports.
    pub ports: Vec<PortView>,
}

/// A port.
#[derive(Clone, Debug, Serialize)]
pub struct PortView {
    /// Its name at the switch.
    pub name: String,
    /// Its number there.
    pub number: u32,
    /// Its link's rate.
    pub rate: Rate,
    /// Its state.
    #[serde(flatten)]
    pub state: PortState,
    /// The number of flows that leave by it.
    pub flows: u64,
}

/// A flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowView {
    /// Its sender.
    pub source: SocketAddr,
    /// Its receiver.
    pub destination: SocketAddr,
    /// The protocol number.
    pub protocol: u8,
    /// The switch where it is controlled.
    pub switch: String,
    /// The port's number there.
    pub port: u32,
    /// Its size, if known.
    pub size: Option<ByteSize>,
    /// Its acknowledged bytes.
    pub acknowledged: ByteSize,
    /// The time until its deadline; negative after it.
    pub time_left: Option<String>,
    /// The same in nanoseconds.
    pub time_left_ns: Option<i64>,
    /// The limit for its bytes in flight; `None` if it is not limited.
    pub window: Option<ByteSize>,
    /// The slack at this window; negative if it will be late.
    pub slack: Option<String>,
    /// The same in nanoseconds.
    pub slack_ns: Option<i64>,
}

impl StatusView {
    /// Converts a controller's answer.
    ///
    /// # Errors
    /// [`DecodeError`] if it is invalid.
    pub fn of(status: &v1::Status) -> Result<Self, DecodeError> {
        let leader_epoch = status
            .leader_epoch
            .clone()
            .ok_or(DecodeError::Missing("leader_epoch"))?;
        Ok(Self {
            name: leader_epoch.name,
            term: leader_epoch.term,
            up: Duration::from_nanos(status.up_nanoseconds),
            flow_count: status.all_flows,
            registrations: status.registrations,
            senders: status.senders,
            switches: status.switches.iter().map(switch).collect(),
            flows: status.flows.iter().map(flow).collect::<Result<_, _>>()?,
        })
    }
}

fn switch(switch: &v1::SwitchStatus) -> SwitchView {
    SwitchView {
        name: switch.name.clone(),
        attached: switch.attached,
        ports: switch.ports.iter().map(port).collect(),
    }
}

fn port(status: &v1::PortStatus) -> PortView {
    let port = status.port.clone().unwrap_or_default();
    PortView {
        name: port.name,
        number: port.number,
        rate: Rate::from_bits_per_second(port.rate_bits_per_second),
        state: PortState {
            congested: status.congested,
            governed: status.governed,
        },
        flows: status.flows,
    }
}

fn flow(status: &v1::FlowStatus) -> Result<FlowView, DecodeError> {
    let flow = translate::flow(status.flow.clone())?;
    let demand = status.demand.map(|demand| translate::demand(Some(demand)));
    let demand = demand.transpose()?;
    let age = i64::try_from(status.age_nanoseconds).unwrap_or(i64::MAX);
    let time_left_ns = demand.map(|demand| {
        let within = i64::try_from(demand.within.as_nanos()).unwrap_or(i64::MAX);
        within.saturating_sub(age)
    });
    Ok(FlowView {
        source: SocketAddr::new(flow.source, flow.source_port),
        destination: SocketAddr::new(flow.destination, flow.destination_port),
        protocol: flow.protocol,
        switch: status.switch.clone(),
        port: status.port,
        size: demand.map(|demand| demand.size),
        acknowledged: ByteSize::from_bytes(status.acknowledged_bytes),
        time_left: time_left_ns.map(signed),
        time_left_ns,
        window: status.window_bytes.map(ByteSize::from_bytes),
        slack: status.slack_nanoseconds.map(signed),
        slack_ns: status.slack_nanoseconds,
    })
}

/// Formats a signed time, to about three digits.
fn signed(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let step = match nanos {
        0..1_000_000 => 1000,
        1_000_000..1_000_000_000 => 100_000,
        _ => 10_000_000,
    };
    format!("{sign}{}", Duration::from_nanos(nanos - nanos % step))
}
