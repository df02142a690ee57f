//! The records that bpf/redirect.bpf.c shares with this process.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::{Listeners, MOST_TARGETS, TargetRule};

/// The size of `struct endpoint`.
pub(super) const ENDPOINT: usize = 20;
/// The size of `struct target`.
const TARGET: usize = 40;

/// What the programs know of the process that loads them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// The cookie of its network namespace.
    pub(super) network: u64,
    /// The inode of its PID namespace.
    pub(super) pid_namespace: u32,
    /// Its number there.
    pub(super) id: u32,
}

/// Returns `struct constants`.
pub(super) fn constants(process: Process, listeners: Listeners, rules: &[TargetRule]) -> Vec<u8> {
    let mut bytes = process.network.to_ne_bytes().to_vec();
    let mut word = |value: u32| bytes.extend(value.to_ne_bytes());
    word(process.pid_namespace);
    word(process.id);
    for port in [listeners.ipv4, listeners.ipv6] {
        word(port.unwrap_or(0).to_be().into());
    }
    word(rules.len() as u32);
    for rule in rules {
        bytes.extend(target(rule));
    }
    bytes.resize(bytes.len() + (MOST_TARGETS - rules.len()) * TARGET, 0);
    bytes
}

fn target(rule: &TargetRule) -> [u8; TARGET] {
    let network = rule.target.network;
    let is_ipv4 = network.address().is_ipv4();
    let length = network.length() + if is_ipv4 { 96 } else { 0 };
    let mask = u128::MAX
        .checked_shl(128 - u32::from(length))
        .unwrap_or_default();
    let ports = rule
        .target
        .ports
        .as_ref()
        .map_or(0..=u16::MAX, |ports| ports.ports());
    let mut bytes = [0; TARGET];
    bytes[..16].copy_from_slice(&octets(network.address()));
    bytes[16..32].copy_from_slice(&mask.to_be_bytes());
    bytes[32..34].copy_from_slice(&ports.start().to_ne_bytes());
    bytes[34..36].copy_from_slice(&ports.end().to_ne_bytes());
    bytes[36] = is_ipv4.into();
    bytes[37] = rule.redirects.into();
    bytes
}

/// Returns `struct endpoint` of an address.
pub(super) fn endpoint(address: SocketAddr) -> [u8; ENDPOINT] {
    let mut bytes = [0; ENDPOINT];
    bytes[..16].copy_from_slice(&octets(address.ip()));
    bytes[16..].copy_from_slice(&u32::from(address.port()).to_ne_bytes());
    bytes
}

/// Reads `struct endpoint`.
pub(super) fn read_endpoint(bytes: &[u8]) -> Option<SocketAddr> {
    let (address, port) = bytes.split_first_chunk::<16>()?;
    let port = u32::from_ne_bytes(port.try_into().ok()?);
    let address = IpAddr::from(*address).to_canonical();
    Some(SocketAddr::new(address, port.try_into().ok()?))
}

fn octets(address: IpAddr) -> [u8; 16] {
    let mapped: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    mapped.octets()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_the_programs_read_them() {
        let process = Process {
            network: 1,
            pid_namespace: 2,
            id: 3,
        };
        let listeners = Listeners {
            ipv4: Some(0x1234),
            ipv6: None,
        };
        let rules = ["10.0.0.0/8:80", "::/0"];
        let rules = rules.map(|text| text.parse::<super::super::Target>().unwrap().redirected());
        let bytes = constants(process, listeners, &rules);
        assert_eq!(bytes.len(), 28 + MOST_TARGETS * TARGET);
        assert_eq!(bytes[16..20], [0x12, 0x34, 0, 0]);
        let first = &bytes[28..28 + TARGET];
        assert_eq!(first[10..16], [0xff, 0xff, 10, 0, 0, 0]);
        assert_eq!(
            first[16..32],
            [[0xff_u8; 13].as_slice(), &[0; 3]].concat()[..]
        );
        assert_eq!(
            first[32..36],
            [80_u16.to_ne_bytes(), 80_u16.to_ne_bytes()].concat()[..]
        );
        assert_eq!(first[36..38], [1, 1]);
        let second = &bytes[28 + TARGET..28 + 2 * TARGET];
        assert_eq!(second[16..32], [0; 16]);
        assert_eq!(second[36], 0);
    }

    #[test]
    fn an_endpoint_is_read_as_it_was_written() {
        for text in ["192.0.2.1:6379", "[2001:db8::1]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(read_endpoint(&endpoint(address)), Some(address));
        }
        assert_eq!(read_endpoint(&[0; 19]), None);
    }
}
