//! A veth pair between two namespaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use weir_netlink::{Client, interface_index};
use weir_units::ByteSize;

use super::NetworkError;
use super::namespace::Namespace;

/// The name of both interfaces, each in its namespace.
const NAME: &str = "calls0";
/// The index of every namespace's loopback interface.
const LOOPBACK: u32 = 1;
/// The addresses, on the link with each other.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PREFIX: u8 = 30;

/// Connects two namespaces; returns the addresses of server and client.
///
/// # Errors
/// The kernel's error: it may have no veth pairs.
pub(super) fn connect(
    client: &Namespace,
    server: &Namespace,
    mtu: ByteSize,
) -> Result<(IpAddr, IpAddr), NetworkError> {
    let mtu = u32::try_from(mtu.bytes()).unwrap_or(u32::MAX);
    client
        .run(|| create(server, mtu))?
        .map_err(NetworkError::system("making a veth pair"))?;
    for (namespace, address) in [(client, CLIENT), (server, SERVER)] {
        namespace
            .run(|| configure(address))?
            .map_err(NetworkError::system("configuring a veth pair"))?;
    }
    Ok((SERVER.into(), CLIENT.into()))
}

/// Makes the pair: one end in the calling thread's namespace, the other in `peer`.
fn create(peer: &Namespace, mtu: u32) -> io::Result<()> {
    let name_and_mtu = || {
        vec![
            LinkAttribute::IfName(NAME.to_owned()),
            LinkAttribute::Mtu(mtu),
        ]
    };
    let mut other = LinkMessage::default();
    other.attributes = name_and_mtu();
    other
        .attributes
        .push(LinkAttribute::NetNsFd(peer.descriptor()));
    let mut own = LinkMessage::default();
    own.attributes = name_and_mtu();
    own.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
    ]));
    Client::open()?.set(RouteNetlinkMessage::NewLink(own))
}

/// Brings this namespace's interfaces up and gives its end of the pair an address.
fn configure(address: Ipv4Addr) -> io::Result<()> {
    let index = interface_index(NAME)?;
    let mut netlink = Client::open()?;
    netlink.set(RouteNetlinkMessage::NewAddress(on_link(index, address)))?;
    netlink.change(up(LOOPBACK))?;
    netlink.change(up(index))
}

fn up(index: u32) -> RouteNetlinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    RouteNetlinkMessage::SetLink(link)
}

fn on_link(index: u32, address: Ipv4Addr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = PREFIX;
    message.header.index = index;
    message.attributes = vec![
        AddressAttribute::Local(address.into()),
        AddressAttribute::Address(address.into()),
    ];
    message
}
