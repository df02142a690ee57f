//! Links and addresses as the kernel tells them (rtnetlink(7)).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netlink_packet_core::{DecodeError, NlasIterator};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressFlags, AddressHeader};
use netlink_packet_route::link::{LinkFlags, LinkHeader};

pub(crate) const RTM_NEWLINK: u16 = 16;
pub(crate) const RTM_DELLINK: u16 = 17;
pub(crate) const RTM_NEWADDR: u16 = 20;
pub(crate) const RTM_DELADDR: u16 = 21;
const IFLA_IFNAME: u16 = 3;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
/// The sizes of `struct ifinfomsg` and `struct ifaddrmsg`, after which attributes begin.
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;

/// Addresses from which packets can leave, each with its interface.
pub(crate) type Usable = BTreeSet<(IpAddr, String)>;

/// What the kernel told so far. Of each message only the header and the few attributes that matter
/// are read, so that newer kernels cannot tell more than is understood.
#[derive(Debug, Default)]
pub(crate) struct Table {
    links: BTreeMap<u32, Link>,
    addresses: BTreeSet<(u32, IpAddr)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Link {
    name: String,
    /// Up, and with a carrier.
    running: bool,
}

impl Table {
    /// A message of the kernel's: its type and what follows its header. Other types change nothing.
    pub(crate) fn apply(&mut self, kind: u16, payload: &[u8]) -> Result<(), DecodeError> {
        match kind {
            RTM_NEWLINK | RTM_DELLINK => self.apply_link(kind == RTM_NEWLINK, payload),
            RTM_NEWADDR | RTM_DELADDR => self.apply_address(kind == RTM_NEWADDR, payload),
            _ => Ok(()),
        }
    }

    fn apply_link(&mut self, is_there: bool, payload: &[u8]) -> Result<(), DecodeError> {
        let header = LinkHeader::parse(payload)?;
        // Bridges tell with a family of their own that a link joined or left them.
        if header.interface_family != AddressFamily::Unspec {
            return Ok(());
        }
        if !is_there {
            self.links.remove(&header.index);
            self.addresses.retain(|(index, _)| *index != header.index);
            return Ok(());
        }
        let name = attribute(payload, LINK_HEADER, IFLA_IFNAME)?.unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let link = Link {
            name: String::from_utf8_lossy(name).into_owned(),
            running: header.flags.contains(LinkFlags::Up | LinkFlags::Running),
        };
        self.links.insert(header.index, link);
        Ok(())
    }

    fn apply_address(&mut self, is_there: bool, payload: &[u8]) -> Result<(), DecodeError> {
        let header = AddressHeader::parse(payload)?;
        // On point-to-point links the first one is the peer's.
        let local = attribute(payload, ADDRESS_HEADER, IFA_LOCAL)?;
        let bytes = match local {
            Some(local) => local,
            None => attribute(payload, ADDRESS_HEADER, IFA_ADDRESS)?.unwrap_or_default(),
        };
        let Some(ip) = ip_of(&bytes) else {
            return Ok(());
        };
        let more = attribute(payload, ADDRESS_HEADER, IFA_FLAGS)?;
        let flags = more
            .and_then(|bytes| Some(u32::from_ne_bytes(bytes.first_chunk().copied()?)))
            .unwrap_or_else(|| u32::from(header.flags.bits()));
        let flags = AddressFlags::from_bits_retain(flags);
        // Nothing can be bound to it before the kernel knows that nobody else has it.
        let unproven = flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed);
        if is_there && !unproven {
            self.addresses.insert((header.index, ip));
        } else {
            self.addresses.remove(&(header.index, ip));
        }
        Ok(())
    }

    /// The addresses from which packets can leave.
    pub(crate) fn usable(&self) -> Usable {
        let on_running = self.addresses.iter().filter_map(|(index, ip)| {
            let link = self.links.get(index).filter(|link| link.running)?;
            Some((*ip, link.name.clone()))
        });
        on_running.collect()
    }
}

/// The bytes of an attribute after a header of `begin` bytes.
fn attribute(payload: &[u8], begin: usize, kind: u16) -> Result<Option<Vec<u8>>, DecodeError> {
    for attribute in NlasIterator::new(payload.get(begin..).unwrap_or_default()) {
        let attribute = attribute?;
        if attribute.kind() == kind {
            return Ok(Some(attribute.value().to_vec()));
        }
    }
    Ok(None)
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

    const RUNNING: LinkFlags = LinkFlags::Up.union(LinkFlags::Running);

    fn usable(table: &Table) -> Vec<String> {
        let usable = table.usable().into_iter();
        usable.map(|(ip, name)| format!("{ip}%{name}")).collect()
    }

    #[test]
    fn addresses_are_usable_while_their_link_runs() {
        let mut table = Table::default();
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
        let mut table = Table::default();
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
    fn tentative_addresses_wait_for_their_proof() {
        let mut table = Table::default();
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
        fn no_message_can_upset_it(kind in 0_u16..32, payload in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut table = Table::default();
            let _ = table.apply(kind, &payload);
            table.usable();
        }
    }
}
