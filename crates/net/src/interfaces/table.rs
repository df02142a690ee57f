//! Table of links and addresses, from the kernel's messages (rtnetlink(7)).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netlink_packet_core::{DecodeError, NlasIterator};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressFlags, AddressHeader};
use netlink_packet_route::link::{LinkFlags, LinkHeader};
use weir_quic::{Interface, InterfaceAddress, Interfaces};
use weir_units::ByteSize;

pub(crate) const RTM_NEWLINK: u16 = 16;
pub(crate) const RTM_DELLINK: u16 = 17;
pub(crate) const RTM_NEWADDR: u16 = 20;
pub(crate) const RTM_DELADDR: u16 = 21;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
/// The sizes of `struct ifinfomsg` and `struct ifaddrmsg`, after which attributes begin.
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;

/// Addresses from which packets can leave, each with its interface.
pub(crate) type Usable = BTreeSet<(IpAddr, String)>;

/// The links and addresses so far. Of each message only the header and the few relevant attributes
/// are read, so that unknown attributes of newer kernels do no harm.
#[derive(Debug, Default)]
pub(crate) struct InterfaceTable {
    links: BTreeMap<u32, InterfaceState>,
    /// By interface index and address.
    addresses: BTreeMap<(u32, IpAddr), InterfaceAddress>,
}

#[derive(Debug, PartialEq, Eq)]
struct InterfaceState {
    name: String,
    /// Up, and with a carrier.
    running: bool,
    is_loopback: bool,
    /// The MTU in bytes, where the kernel reported it.
    mtu: Option<u32>,
}

impl InterfaceTable {
    /// Applies a kernel message: its type and its payload after the header. Other types change
    /// nothing.
    pub(crate) fn apply(&mut self, kind: u16, payload: &[u8]) -> Result<(), DecodeError> {
        match kind {
            RTM_NEWLINK | RTM_DELLINK => self.apply_link(kind == RTM_NEWLINK, payload),
            RTM_NEWADDR | RTM_DELADDR => self.apply_address(kind == RTM_NEWADDR, payload),
            _ => Ok(()),
        }
    }

    fn apply_link(&mut self, is_there: bool, payload: &[u8]) -> Result<(), DecodeError> {
        let header = LinkHeader::parse(payload)?;
        // Bridges report ports that join or leave with a family of their own.
        if header.interface_family != AddressFamily::Unspec {
            return Ok(());
        }
        if !is_there {
            self.links.remove(&header.index);
            self.addresses
                .retain(|(index, _), _| *index != header.index);
            return Ok(());
        }
        let name = attribute(payload, LINK_HEADER, IFLA_IFNAME)?.unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let mtu = attribute(payload, LINK_HEADER, IFLA_MTU)?.and_then(|bytes| number(&bytes));
        let link = InterfaceState {
            name: String::from_utf8_lossy(name).into_owned(),
            running: header.flags.contains(LinkFlags::Up | LinkFlags::Running),
            is_loopback: header.flags.contains(LinkFlags::Loopback),
            // Some messages carry one attribute only.
            mtu: mtu.or_else(|| self.links.get(&header.index)?.mtu),
        };
        self.links.insert(header.index, link);
        Ok(())
    }

    fn apply_address(&mut self, is_there: bool, payload: &[u8]) -> Result<(), DecodeError> {
        let header = AddressHeader::parse(payload)?;
        // On point-to-point links the first one is the peer's.
        let local = attribute(payload, ADDRESS_HEADER, IFA_LOCAL)?;
        let network = attribute(payload, ADDRESS_HEADER, IFA_ADDRESS)?;
        let [local, network] = [local, network].map(|bytes| ip_of(&bytes.unwrap_or_default()));
        let Some((ip, network)) = local.or(network).zip(network.or(local)) else {
            return Ok(());
        };
        let more = attribute(payload, ADDRESS_HEADER, IFA_FLAGS)?;
        let flags = more
            .and_then(|bytes| number(&bytes))
            .unwrap_or_else(|| u32::from(header.flags.bits()));
        let flags = AddressFlags::from_bits_retain(flags);
        // Nothing can be bound to it before duplicate address detection has finished.
        let unproven = flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed);
        if is_there && !unproven {
            let address = InterfaceAddress {
                ip,
                network,
                prefix_length: header.prefix_len,
            };
            self.addresses.insert((header.index, ip), address);
        } else {
            self.addresses.remove(&(header.index, ip));
        }
        Ok(())
    }

    /// Returns the addresses from which packets can leave.
    pub(crate) fn usable(&self) -> Usable {
        let on_running = self.addresses.keys().filter_map(|(index, ip)| {
            let link = self.links.get(index).filter(|link| link.running)?;
            Some((*ip, link.name.clone()))
        });
        on_running.collect()
    }

    /// Returns the packet size that each link carries, up or not.
    pub(crate) fn interfaces(&self) -> Interfaces {
        let known = self.links.iter().filter_map(|(index, link)| {
            let here = self.addresses.iter().filter(|((on, _), _)| on == index);
            Some(Interface {
                mtu: ByteSize::from_bytes(link.mtu?.into()),
                is_loopback: link.is_loopback,
                addresses: here.map(|(_, address)| *address).collect(),
            })
        });
        known.collect()
    }
}

/// Returns the bytes of an attribute after a header of `begin` bytes.
fn attribute(payload: &[u8], begin: usize, kind: u16) -> Result<Option<Vec<u8>>, DecodeError> {
    for attribute in NlasIterator::new(payload.get(begin..).unwrap_or_default()) {
        let attribute = attribute?;
        if attribute.kind() == kind {
            return Ok(Some(attribute.value().to_vec()));
        }
    }
    Ok(None)
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_ne_bytes)
}

fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable;
    use netlink_packet_route::address::{AddressAttribute, AddressMessage};
    use netlink_packet_route::link::{LinkAttribute, LinkMessage};
    use proptest::prelude::*;

    use super::*;

    fn bytes(message: &impl Emitable) -> Vec<u8> {
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        bytes
    }

    fn link(index: u32, name: &str, flags: LinkFlags) -> Vec<u8> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = flags;
        message.attributes = vec![LinkAttribute::Mtu(1500), LinkAttribute::IfName(name.into())];
        bytes(&message)
    }

    fn address(index: u32, ip: &str, flags: AddressFlags) -> Vec<u8> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = 24;
        let ip: IpAddr = ip.parse().unwrap();
        message.header.family = match ip {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.attributes = vec![
            AddressAttribute::Address(ip),
            AddressAttribute::Flags(flags),
        ];
        bytes(&message)
    }

    fn on_24_bits(ip: &str) -> InterfaceAddress {
        InterfaceAddress {
            prefix_length: 24,
            ..InterfaceAddress::from(ip.parse::<IpAddr>().unwrap())
        }
    }

    const RUNNING: LinkFlags = LinkFlags::Up.union(LinkFlags::Running);

    fn usable(table: &InterfaceTable) -> Vec<String> {
        let usable = table.usable().into_iter();
        usable.map(|(ip, name)| format!("{ip}%{name}")).collect()
    }

    #[test]
    fn addresses_are_usable_while_their_link_runs() {
        let mut table = InterfaceTable::default();
        let none = AddressFlags::empty();
        table.apply(RTM_NEWLINK, &link(2, "eth0", RUNNING)).unwrap();
        table
            .apply(RTM_NEWADDR, &address(2, "10.0.0.1", none))
            .unwrap();
        assert_eq!(usable(&table), ["10.0.0.1%eth0"]);
        table
            .apply(RTM_NEWLINK, &link(2, "eth0", LinkFlags::Up))
            .unwrap();
        assert!(usable(&table).is_empty());
        table.apply(RTM_NEWLINK, &link(2, "eth0", RUNNING)).unwrap();
        assert_eq!(usable(&table), ["10.0.0.1%eth0"]);
        table
            .apply(RTM_DELADDR, &address(2, "10.0.0.1", none))
            .unwrap();
        assert!(usable(&table).is_empty());
    }

    #[test]
    fn a_link_that_is_deleted_takes_its_addresses_with_it() {
        let mut table = InterfaceTable::default();
        table.apply(RTM_NEWLINK, &link(2, "eth0", RUNNING)).unwrap();
        let added = address(2, "10.0.0.1", AddressFlags::empty());
        table.apply(RTM_NEWADDR, &added).unwrap();
        let mut left_a_bridge = LinkMessage::default();
        left_a_bridge.header.index = 2;
        left_a_bridge.header.interface_family = AddressFamily::Bridge;
        table.apply(RTM_DELLINK, &bytes(&left_a_bridge)).unwrap();
        assert_eq!(usable(&table), ["10.0.0.1%eth0"]);
        table.apply(RTM_DELLINK, &link(2, "eth0", RUNNING)).unwrap();
        table.apply(RTM_NEWLINK, &link(2, "eth0", RUNNING)).unwrap();
        assert!(usable(&table).is_empty());
    }

    #[test]
    fn an_interface_has_the_last_reported_mtu() {
        let mut table = InterfaceTable::default();
        let flags = RUNNING | LinkFlags::Loopback;
        table.apply(RTM_NEWLINK, &link(1, "lo", flags)).unwrap();
        table.apply(RTM_NEWLINK, &link(2, "eth0", RUNNING)).unwrap();
        let added = address(2, "10.0.0.1", AddressFlags::empty());
        table.apply(RTM_NEWADDR, &added).unwrap();
        let one = |mtu, is_loopback, addresses: &[&str]| Interface {
            mtu: ByteSize::from_bytes(mtu),
            is_loopback,
            addresses: addresses.iter().map(|ip| on_24_bits(ip)).collect(),
        };
        let of = |all: [Interface; 2]| all.into_iter().collect::<Interfaces>();
        let lo = || one(1500, true, &[]);
        assert_eq!(
            table.interfaces(),
            of([lo(), one(1500, false, &["10.0.0.1"])])
        );
        let mut message = LinkMessage::default();
        message.header.index = 2;
        message.attributes = vec![LinkAttribute::Mtu(9000)];
        table.apply(RTM_NEWLINK, &bytes(&message)).unwrap();
        assert_eq!(
            table.interfaces(),
            of([lo(), one(9000, false, &["10.0.0.1"])])
        );
        message.attributes = Vec::new();
        table.apply(RTM_NEWLINK, &bytes(&message)).unwrap();
        assert_eq!(
            table.interfaces(),
            of([lo(), one(9000, false, &["10.0.0.1"])])
        );
    }

    #[test]
    fn tentative_addresses_are_unusable_until_validated() {
        let mut table = InterfaceTable::default();
        table.apply(RTM_NEWLINK, &link(2, "eth0", RUNNING)).unwrap();
        let tentative = address(2, "fd00::1", AddressFlags::Tentative);
        table.apply(RTM_NEWADDR, &tentative).unwrap();
        assert!(usable(&table).is_empty());
        let proven = address(2, "fd00::1", AddressFlags::Permanent);
        table.apply(RTM_NEWADDR, &proven).unwrap();
        assert_eq!(usable(&table), ["fd00::1%eth0"]);
    }

    proptest! {
        #[test]
        fn arbitrary_messages_do_not_panic(kind in 0_u16..32, payload in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut table = InterfaceTable::default();
            let _ = table.apply(kind, &payload);
            table.usable();
            table.interfaces();
        }
    }
}
