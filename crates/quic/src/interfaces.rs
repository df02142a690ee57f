//! The packet sizes that the machine's own network interfaces carry.
//!
//! The caller reads them from the system and passes them in: [`Endpoint::set_interfaces`] for new
//! connections, [`Connection::set_interfaces`] for existing ones. They are used when a connection
//! starts, moves, or receives a change, never per packet.
//!
//! [`Endpoint::set_interfaces`]: crate::Endpoint::set_interfaces
//! [`Connection::set_interfaces`]: crate::Connection::set_interfaces

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use weir_units::ByteSize;

/// Every path carries UDP payloads of this size (RFC 9000, section 14).
pub(crate) const SMALLEST_MAX_UDP_PAYLOAD: usize = 1200;

/// The largest UDP payload without jumbograms, in IPv6; in IPv4 it is 20 bytes less.
pub(crate) const LARGEST_UDP_PAYLOAD: u64 = 65_527;
/// The largest UDP payload that fits an IPv4 packet.
const LARGEST_UDP_PAYLOAD_IPV4: u64 = 65_507;

/// A network interface of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The largest IP packet that it carries.
    pub mtu: ByteSize,
    /// Whether it is a loopback interface.
    pub is_loopback: bool,
    /// The machine's addresses on it.
    pub addresses: Vec<InterfaceAddress>,
}

/// An address of the machine, and the network that its interface reaches without a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// An address in the network: `ip`, or the peer's on a point-to-point link.
    pub network: IpAddr,
    /// How many first bits all addresses of the network have in common.
    pub prefix_length: u8,
}

impl From<IpAddr> for InterfaceAddress {
    /// A network without other hosts.
    fn from(ip: IpAddr) -> Self {
        Self {
            ip,
            network: ip,
            prefix_length: u8::MAX,
        }
    }
}

impl InterfaceAddress {
    fn reaches(&self, remote: IpAddr) -> bool {
        let common_bits = match (self.network, remote) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        self.ip == remote || common_bits >= u32::from(self.prefix_length)
    }
}

/// The machine's network interfaces, as limits of the packet size. Collected from [`Interface`]s;
/// without any there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Each address with the smallest MTU of its interfaces; `None` if it is only on loopback,
    /// which does not determine the egress interface of its packets.
    addresses: BTreeMap<IpAddr, Option<ByteSize>>,
    /// The addresses that are not on loopback, with the MTU of their interfaces.
    networks: Vec<(InterfaceAddress, ByteSize)>,
    loopback: Option<ByteSize>,
    /// The largest MTU except loopback.
    largest: Option<ByteSize>,
}

impl FromIterator<Interface> for Interfaces {
    fn from_iter<T: IntoIterator<Item = Interface>>(interfaces: T) -> Self {
        let mut all = Self::default();
        for interface in interfaces {
            let mtu = interface.mtu;
            let known = if interface.is_loopback {
                &mut all.loopback
            } else {
                &mut all.largest
            };
            *known = (*known).max(Some(mtu));
            for address in interface.addresses {
                let carried = all.addresses.entry(address.ip).or_default();
                if !interface.is_loopback {
                    *carried = Some(carried.map_or(mtu, |other| other.min(mtu)));
                    all.networks.push((address, mtu));
                }
            }
        }
        all
    }
}

impl Interfaces {
    /// Returns the largest UDP payload, in bytes, on the interface of packets between these
    /// addresses; at least 1200. `None` if it is unknown.
    pub(crate) fn largest_payload(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Option<u64> {
        let mtu = self.mtu(local.map(|local| local.ip()), remote.ip())?;
        Some(payload(mtu, local.unwrap_or(remote).ip()))
    }

    /// Returns the largest UDP payload, in bytes, between these addresses if no router is between
    /// them: the remote one is on this machine or on the network of an interface.
    pub(crate) fn on_link_payload(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Option<u64> {
        let ip = remote.ip().to_canonical();
        let local = local.map(|local| local.ip().to_canonical());
        let local = local.filter(|local| !local.is_unspecified());
        let mtu = if self.is_own(ip) {
            self.loopback?
        } else {
            let reaching = self.networks.iter().filter(|(address, _)| {
                address.reaches(ip) && local.is_none_or(|local| local == address.ip)
            });
            reaching.map(|(_, mtu)| *mtu).min()?
        };
        Some(payload(mtu, ip))
    }

    /// Whether packets to this address stay on the machine.
    fn is_own(&self, remote: IpAddr) -> bool {
        remote.is_loopback() || self.addresses.contains_key(&remote)
    }

    fn mtu(&self, local: Option<IpAddr>, remote: IpAddr) -> Option<ByteSize> {
        let remote = remote.to_canonical();
        // Packets from the machine to itself use loopback, whatever the address.
        if self.is_own(remote) {
            return self.loopback;
        }
        let local = local.map(|local| local.to_canonical());
        match local.filter(|local| !local.is_unspecified()) {
            // An address that is newer than these interfaces has no limit.
            Some(local) => self.addresses.get(&local)?.or(self.largest),
            None => self.largest,
        }
    }
}

/// Returns the UDP payload that fits an IP packet of this size, within QUIC's limits.
fn payload(mtu: ByteSize, ip: IpAddr) -> u64 {
    let payload = mtu.bytes().saturating_sub(headers(ip));
    payload.clamp(SMALLEST_MAX_UDP_PAYLOAD as u64, largest_udp_payload(ip))
}

/// Returns the size of the IP and UDP headers for this address, in bytes.
pub(crate) fn headers(ip: IpAddr) -> u64 {
    match ip.to_canonical() {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    }
}

/// Returns the largest UDP payload that IP can carry for this address, in bytes.
pub(crate) fn largest_udp_payload(ip: IpAddr) -> u64 {
    match ip.to_canonical() {
        IpAddr::V4(_) => LARGEST_UDP_PAYLOAD_IPV4,
        IpAddr::V6(_) => LARGEST_UDP_PAYLOAD,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interface(mtu: u64, is_loopback: bool, addresses: &[&str]) -> Interface {
        Interface {
            mtu: ByteSize::from_bytes(mtu),
            is_loopback,
            addresses: addresses.iter().map(|text| address(text)).collect(),
        }
    }

    /// Reads `10.0.0.1`, or `10.0.0.1/24`.
    fn address(text: &str) -> InterfaceAddress {
        let (ip, prefix) = text.split_once('/').unwrap_or((text, "255"));
        InterfaceAddress {
            prefix_length: prefix.parse().unwrap(),
            ..InterfaceAddress::from(ip.parse::<IpAddr>().unwrap())
        }
    }

    fn machine() -> Interfaces {
        let all = [
            interface(65_536, true, &["127.0.0.1/8", "::1", "10.9.9.9"]),
            interface(1500, false, &["10.0.1.1/24", "fd00:1::1/64", "fe80::1/64"]),
            interface(9000, false, &["10.0.2.1/24", "fd00:2::1/64", "fe80::1/64"]),
            interface(600, false, &["10.0.3.1"]),
        ];
        all.into_iter().collect()
    }

    /// The payload between these addresses; `*` is an unknown local address.
    fn payload(local: &str, remote: &str) -> Option<u64> {
        let address = |ip: &str| ip.parse().map(|ip| SocketAddr::new(ip, 4433));
        machine().largest_payload(address(local).ok(), address(remote).unwrap())
    }

    #[test]
    fn the_local_address_selects_the_interface() {
        assert_eq!(payload("10.0.1.1", "10.0.1.2"), Some(1472));
        assert_eq!(payload("10.0.2.1", "192.0.2.1"), Some(8972));
        assert_eq!(payload("::ffff:10.0.2.1", "::ffff:10.0.2.2"), Some(8972));
        assert_eq!(payload("fd00:1::1", "fd00:1::2"), Some(1452));
        assert_eq!(payload("fd00:2::1", "fd00:2::2"), Some(8952));
        // Two interfaces have this address: the smaller one applies.
        assert_eq!(payload("fe80::1", "fe80::2"), Some(1452));
        assert_eq!(payload("10.0.3.1", "10.0.3.2"), Some(1200));
    }

    #[test]
    fn an_unknown_local_address_may_belong_to_any_interface() {
        assert_eq!(payload("*", "192.0.2.1"), Some(8972));
        assert_eq!(payload("0.0.0.0", "192.0.2.1"), Some(8972));
        assert_eq!(payload("*", "fd00:2::2"), Some(8952));
        assert_eq!(payload("10.9.9.9", "192.0.2.1"), Some(8972));
    }

    #[test]
    fn hosts_on_the_network_of_an_interface_are_on_its_link() {
        let on_link = |local: &str, remote: &str| {
            let address = |ip: &str| ip.parse().map(|ip| SocketAddr::new(ip, 4433));
            machine().on_link_payload(address(local).ok(), address(remote).unwrap())
        };
        assert_eq!(on_link("10.0.1.1", "10.0.1.200"), Some(1472));
        assert_eq!(on_link("*", "10.0.2.2"), Some(8972));
        assert_eq!(on_link("0.0.0.0", "::ffff:10.0.2.2"), Some(8972));
        assert_eq!(on_link("10.0.1.1", "10.0.2.2"), None, "by a router");
        assert_eq!(on_link("*", "10.0.9.1"), None);
        assert_eq!(on_link("*", "10.0.3.2"), None, "no network");
        assert_eq!(on_link("*", "fd00:2::77"), Some(8952));
        assert_eq!(on_link("fd00:1::1", "fd00:1::2"), Some(1452));
        assert_eq!(on_link("fe80::1", "fe80::2"), Some(1452), "the smaller one");
        assert_eq!(on_link("*", "127.0.0.5"), Some(65_507));
        assert_eq!(on_link("10.0.1.1", "10.0.2.1"), Some(65_507), "our own");
    }

    #[test]
    fn local_traffic_uses_the_loopback_mtu() {
        assert_eq!(payload("127.0.0.1", "127.0.0.2"), Some(65_507));
        assert_eq!(payload("*", "127.0.0.1"), Some(65_507));
        assert_eq!(payload("*", "::1"), Some(65_488));
        assert_eq!(payload("10.0.1.1", "10.0.1.1"), Some(65_507));
    }

    #[test]
    fn an_unknown_mtu_sets_no_bound() {
        assert_eq!(payload("10.0.4.1", "10.0.4.2"), None);
        let (local, remote) = ("10.0.1.1:1".parse().ok(), "10.0.1.2:1".parse().unwrap());
        assert_eq!(Interfaces::default().largest_payload(local, remote), None);
    }

    proptest! {
        #[test]
        fn every_bound_is_a_valid_quic_payload_size(
            mtus in prop::collection::vec((any::<u64>(), any::<bool>(), any::<[u8; 4]>()), 0..4),
            local in prop::option::of(any::<[u8; 4]>()),
            remote in any::<[u8; 4]>(),
        ) {
            let each = mtus.into_iter().map(|(mtu, is_loopback, ip)| Interface {
                mtu: ByteSize::from_bytes(mtu),
                is_loopback,
                addresses: vec![IpAddr::from(ip).into()],
            });
            let interfaces: Interfaces = each.collect();
            let local = local.map(|ip| SocketAddr::from((ip, 1)));
            if let Some(payload) = interfaces.largest_payload(local, (remote, 2).into()) {
                prop_assert!((1200..=65_507).contains(&payload));
            }
        }
    }
}
