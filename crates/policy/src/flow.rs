//! A flow as rules see it.

use std::net::SocketAddr;

use weir_wire::FlowKey;

use crate::Dscp;

/// The data that goes one way of a connection, as conditions of rules ask of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFlow<'n> {
    /// Addresses and ports, as the sender of the data names them.
    pub key: FlowKey,
    /// The interface that the data leaves by; `None` where there is none, which fits no rule that names
    /// interfaces.
    pub interface: Option<&'n str>,
    /// The class in the packets of the handshake; zero unless it has been set.
    pub dscp: Dscp,
}

impl PolicyFlow<'_> {
    /// A TCP flow between two ports, by no interface and of the default class.
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
        }
    }
}
