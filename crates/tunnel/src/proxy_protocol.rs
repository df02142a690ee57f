//! The header of the PROXY protocol, version 2 (haproxy.org, proxy-protocol.txt, section 2.2): it tells a
//! destination the address of the application.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command PROXY.
const PROXY: u8 = 0x21;
/// Version 2, command LOCAL: no address is told.
const LOCAL: u8 = 0x20;
const TCP_4: u8 = 0x11;
const TCP_6: u8 = 0x21;

/// Returns the header for a connection of `source` to `destination`, the destination's own address.
pub(crate) fn header(source: Option<SocketAddr>, destination: SocketAddr) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    let Some(source) = source else {
        header.extend_from_slice(&[LOCAL, 0, 0, 0]);
        return header;
    };
    let (from, to) = (source.ip().to_canonical(), destination.ip().to_canonical());
    if let (IpAddr::V4(from), IpAddr::V4(to)) = (from, to) {
        header.extend_from_slice(&[PROXY, TCP_4, 0, 12]);
        header.extend_from_slice(&from.octets());
        header.extend_from_slice(&to.octets());
    } else {
        // Both have to be of one family.
        header.extend_from_slice(&[PROXY, TCP_6, 0, 36]);
        header.extend_from_slice(&as_version_6(from).octets());
        header.extend_from_slice(&as_version_6(to).octets());
    }
    header.extend_from_slice(&source.port().to_be_bytes());
    header.extend_from_slice(&destination.port().to_be_bytes());
    header
}

fn as_version_6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: Option<&str>, destination: &str) -> Vec<u8> {
        let source = source.map(|source| source.parse().unwrap());
        header(source, destination.parse().unwrap())
    }

    #[test]
    fn addresses_of_version_4_take_28_bytes() {
        let header = of(Some("192.0.2.1:4660"), "198.51.100.2:80");
        assert_eq!(header[..12], SIGNATURE);
        assert_eq!(header[12..16], [0x21, 0x11, 0, 12]);
        assert_eq!(
            header[16..],
            [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0, 80]
        );
    }

    #[test]
    fn mixed_families_become_version_6() {
        let header = of(Some("[2001:db8::1]:1"), "198.51.100.2:80");
        assert_eq!(header[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!(header.len(), 16 + 36);
        assert_eq!(
            header[32..48],
            "::ffff:198.51.100.2".parse::<Ipv6Addr>().unwrap().octets()
        );
    }

    #[test]
    fn an_unknown_source_is_local() {
        assert_eq!(of(None, "198.51.100.2:80")[12..], [0x20, 0, 0, 0]);
    }
}
