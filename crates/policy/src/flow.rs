//! The properties of a flow that rules match.

use std::net::SocketAddr;

use weir_wire::FlowKey;

use crate::{Dscp, SocketOwner};

/// One direction of a connection, as rules match it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFlow<'n> {
    /// Addresses and ports, from the data sender's view.
    pub key: FlowKey,
    /// The egress interface of the data; `None` where there is none, which matches no rule with
    /// interfaces.
    pub interface: Option<&'n str>,
    /// The DSCP of the handshake's packets; zero unless it has been set.
    pub dscp: Dscp,
    /// The process that opened the socket that sends the data; what is not known matches no rule that
    /// names it.
    pub owner: SocketOwner<'n>,
}

impl PolicyFlow<'_> {
    /// Creates a TCP flow between two ports, without interface and of the default class.
    pub fn between(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            key: FlowKey {
                source: from.ip(),
                destination: to.ip(),
                source_port: from.port(),
                destination_port: to.port(),
                protocol: FlowKey::TCP,
            },
            interface: None,
            dscp: Dscp::DEFAULT,
            owner: SocketOwner::UNKNOWN,
        }
    }
}
