//! Conversion between the wire format and the types of [`weir_sed`].

mod orders;
mod reports;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use weir_sed::{Demand, FlowPattern};
use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;

use crate::v1;

pub(crate) use orders::{order, settings, to_order, to_settings};
pub(crate) use reports::{report, to_report};

/// Why a message is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// An address has a wrong length.
    #[error("an address has 4 or 16 bytes, not {0}")]
    Address(usize),
    /// The two ends of a flow have addresses of different families.
    #[error("one end of a flow has an IPv4 address and the other an IPv6 one")]
    Families,
    /// A field is too large.
    #[error("`{field}` is at most {most}, not {value}")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// Its maximum.
        most: u64,
        /// Its value.
        value: u64,
    },
    /// A deadline is in the past.
    #[error("a deadline lies in the future, not {0} ns from now")]
    Past(i64),
}

pub(crate) fn flow(flow: Option<v1::Flow>) -> Result<FlowKey, DecodeError> {
    let flow = flow.ok_or(DecodeError::Missing("flow"))?;
    let (source, destination) = ends(&flow.source, &flow.destination)?;
    Ok(FlowKey {
        source,
        destination,
        source_port: narrow("source_port", flow.source_port)?,
        destination_port: narrow("destination_port", flow.destination_port)?,
        protocol: protocol(flow.protocol)?,
    })
}

pub(crate) fn to_flow(flow: &FlowKey) -> v1::Flow {
    v1::Flow {
        source: to_address(flow.source),
        destination: to_address(flow.destination),
        source_port: flow.source_port.into(),
        destination_port: flow.destination_port.into(),
        protocol: flow.protocol.into(),
    }
}

pub(crate) fn pattern(pattern: Option<v1::Pattern>) -> Result<FlowPattern, DecodeError> {
    let pattern = pattern.ok_or(DecodeError::Missing("flows"))?;
    let (source, destination) = ends(&pattern.source, &pattern.destination)?;
    let port = |field, port: Option<u32>| port.map(|port| narrow(field, port)).transpose();
    Ok(FlowPattern {
        source,
        destination,
        source_port: port("source_port", pattern.source_port)?,
        destination_port: port("destination_port", pattern.destination_port)?,
        protocol: protocol(pattern.protocol)?,
    })
}

pub(crate) fn to_pattern(pattern: &FlowPattern) -> v1::Pattern {
    v1::Pattern {
        source: to_address(pattern.source),
        destination: to_address(pattern.destination),
        source_port: pattern.source_port.map(u32::from),
        destination_port: pattern.destination_port.map(u32::from),
        protocol: pattern.protocol.into(),
    }
}

pub(crate) fn demand(demand: Option<v1::Demand>) -> Result<Demand, DecodeError> {
    let demand = demand.ok_or(DecodeError::Missing("demand"))?;
    let within = demand.within_nanoseconds;
    let nanos = u64::try_from(within).map_err(|_| DecodeError::Past(within))?;
    Ok(Demand {
        size: ByteSize::from_bytes(demand.size_bytes),
        within: Duration::from_nanos(nanos),
    })
}

pub(crate) fn to_demand(demand: &Demand) -> v1::Demand {
    v1::Demand {
        size_bytes: demand.size.bytes(),
        within_nanoseconds: i64::try_from(demand.within.as_nanos()).unwrap_or(i64::MAX),
    }
}

pub(crate) fn address(bytes: &[u8]) -> Result<IpAddr, DecodeError> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Ok(IpAddr::from(four));
    }
    match <[u8; 16]>::try_from(bytes) {
        Ok(sixteen) => Ok(IpAddr::from(sixteen).to_canonical()),
        Err(_) => Err(DecodeError::Address(bytes.len())),
    }
}

pub(crate) fn to_address(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn ends(source: &[u8], destination: &[u8]) -> Result<(IpAddr, IpAddr), DecodeError> {
    let (source, destination) = (address(source)?, address(destination)?);
    if source.is_ipv4() == destination.is_ipv4() {
        Ok((source, destination))
    } else {
        Err(DecodeError::Families)
    }
}

fn narrow(field: &'static str, value: u32) -> Result<u16, DecodeError> {
    u16::try_from(value).map_err(|_| too_large(field, u16::MAX, value))
}

fn protocol(value: u32) -> Result<u8, DecodeError> {
    u8::try_from(value).map_err(|_| too_large("protocol", u8::MAX, value))
}

fn too_large(field: &'static str, most: impl Into<u64>, value: impl Into<u64>) -> DecodeError {
    DecodeError::TooLarge {
        field,
        most: most.into(),
        value: value.into(),
    }
}
