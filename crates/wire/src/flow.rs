//! The flow that a packet belongs to.

use std::net::{IpAddr, Ipv4Addr};

/// The five-tuple of a flow, in the direction of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
    /// The sender's port; zero for a protocol without ports.
    pub source_port: u16,
    /// The receiver's port; zero for a protocol without ports.
    pub destination_port: u16,
    /// The protocol number of the IP header, as IANA assigns it.
    pub protocol: u8,
}

impl FlowKey {
    /// The protocol number of TCP.
    pub const TCP: u8 = 6;
    /// The protocol number of UDP.
    pub const UDP: u8 = 17;
    /// The key of a packet without a flow: all fields are zero.
    pub const UNSPECIFIED: Self = Self {
        source: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        source_port: 0,
        destination_port: 0,
        protocol: 0,
    };

    /// Returns the key of the packets in the other direction.
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reverse_of_the_reverse_is_the_flow() {
        let key = FlowKey {
            source: IpAddr::from([10, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 0, 2]),
            source_port: 4000,
            destination_port: 80,
            protocol: FlowKey::TCP,
        };
        let reversed = FlowKey {
            source: IpAddr::from([10, 0, 0, 2]),
            destination: IpAddr::from([10, 0, 0, 1]),
            source_port: 80,
            destination_port: 4000,
            protocol: 6,
        };
        assert_eq!(key.reversed(), reversed);
        assert_eq!(reversed.reversed(), key);
    }
}
