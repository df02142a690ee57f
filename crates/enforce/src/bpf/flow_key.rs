//! The key of a connection in the maps of the programs: `struct key` of `bpf/key.h`.

use std::net::{IpAddr, Ipv6Addr};

use weir_wire::FlowKey;

/// Its length.
pub(crate) const KEY: usize = 36;

/// Returns the key of a connection, from the view of the flow's sender.
pub(crate) fn key_of(flow: &FlowKey) -> [u8; KEY] {
    let mapped = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut key = [0; KEY];
    let fields = (mapped(flow.source).into_iter())
        .chain(mapped(flow.destination))
        .chain(flow.source_port.to_be_bytes())
        .chain(flow.destination_port.to_be_bytes());
    for (place, byte) in key.iter_mut().zip(fields) {
        *place = byte;
    }
    key
}

/// Returns the flow of the local end's data.
pub(crate) fn flow_of(key: &[u8; KEY]) -> Option<FlowKey> {
    let (local, rest) = key.split_first_chunk()?;
    let (remote, rest) = rest.split_first_chunk()?;
    let (local_port, rest) = rest.split_first_chunk()?;
    let remote_port = rest.first_chunk()?;
    let address = |bytes: &[u8; 16]| IpAddr::V6(Ipv6Addr::from(*bytes)).to_canonical();
    Some(FlowKey {
        source: address(local),
        destination: address(remote),
        source_port: u16::from_be_bytes(*local_port),
        destination_port: u16::from_be_bytes(*remote_port),
        protocol: FlowKey::TCP,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_direction_of_the_sender() {
        let mut key = [0; KEY];
        key[10..16].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        key[16..32].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        key[32..].copy_from_slice(&[0, 80, 0x1f, 0x90]);
        let flow = flow_of(&key).unwrap();
        assert_eq!(flow.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(flow.destination, IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!((flow.source_port, flow.destination_port), (80, 8080));
        assert_eq!(key_of(&flow), key);
    }
}
