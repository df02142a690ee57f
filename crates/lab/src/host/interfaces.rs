//! The interfaces of a host: TAP devices whose other ends the director holds.
//!
//! Each interface has its own routing table for packets from its address. A socket bound to an address
//! therefore sends by its interface; an unbound socket uses the first.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use weir_enforce::port::Tap;
use weir_netlink::{Client, interface_index};

use super::HostError;
use crate::control::HostChange;
use crate::plan::{HostInterface, HostPlan, Neighbour};

/// Every namespace's first interface.
const LOOPBACK: u32 = 1;
/// The routing table of the first interface; those of the others follow.
const FIRST_TABLE: u32 = 100;
/// The table of routes to particular addresses, with the highest priority.
const PEERS_TABLE: u32 = 50;
/// The main table (`RT_TABLE_MAIN`).
const MAIN_TABLE: u32 = 254;

/// The interfaces of this host.
pub(super) struct Interfaces {
    netlink: Client,
    nics: Vec<ConfiguredInterface>,
    metrics: Vec<RouteMetric>,
}

struct ConfiguredInterface {
    name: String,
    index: u32,
}

impl Interfaces {
    /// Creates and configures all interfaces of a host. Returns their other ends in the same order.
    pub(super) fn new(plan: &HostPlan) -> Result<(Self, Vec<Tap>), HostError> {
        let opened = Client::open().map_err(HostError::system("opening a netlink socket"))?;
        let mut interfaces = Self {
            netlink: opened,
            nics: Vec::new(),
            metrics: metrics(plan),
        };
        let up = interfaces.netlink.change(link(LOOPBACK, |link| {
            link.header.flags |= LinkFlags::Up;
        }));
        up.map_err(HostError::system("bringing the loopback interface up"))?;
        if let Some(nic) = plan.nics.first() {
            let first = interfaces
                .netlink
                .set(Message::NewRule(to_peers(nic.address())));
            first.map_err(HostError::system("making a routing rule"))?;
        }
        let mut taps = Vec::new();
        for nic in &plan.nics {
            taps.push(Tap::create(&nic.name)?);
            let configured = interfaces.configure(nic, &plan.neighbours);
            let doing = format!("configuring {} of host {}", nic.name, plan.name);
            configured.map_err(HostError::system(doing))?;
        }
        Ok((interfaces, taps))
    }

    fn configure(&mut self, nic: &HostInterface, neighbours: &[Neighbour]) -> io::Result<()> {
        let index = interface_index(&nic.name)?;
        // A link's address cannot be changed while the link is up.
        self.netlink.change(link(index, |link| {
            link.attributes = vec![
                LinkAttribute::Address(nic.mac.to_vec()),
                LinkAttribute::Mtu(nic.mtu),
                LinkAttribute::GsoMaxSegs(nic.gso_segments),
            ];
        }))?;
        self.netlink.change(link(index, |link| {
            link.header.flags |= LinkFlags::Up;
        }))?;
        let position = self.nics.len();
        let address = nic.address();
        let name = nic.name.clone();
        self.nics.push(ConfiguredInterface { name, index });
        self.add_address(position, address)?;
        let unbound = self.route(index, address, MAIN_TABLE, position as u32);
        self.netlink.set(Message::NewRoute(unbound))?;
        let here = neighbours.iter();
        for neighbour in here.filter(|entry| entry.address.is_ipv4() == address.is_ipv4()) {
            let message = permanent(index, neighbour);
            self.netlink.set(Message::NewNeighbour(message))?;
            if neighbour.interface == Some(position) {
                let way = self.route_to(index, neighbour.address);
                self.netlink.set(Message::NewRoute(way))?;
            }
        }
        Ok(())
    }

    /// Returns a route to an address by the link with this index, whatever the source address.
    fn route_to(&self, index: u32, address: IpAddr) -> RouteMessage {
        let mut message = self.route(index, address, PEERS_TABLE, 0);
        message.header.destination_prefix_length = bits(address);
        let destination = RouteAttribute::Destination(address.into());
        message.attributes.push(destination);
        message
    }

    /// Applies a change to an interface.
    pub(super) fn change(&mut self, change: &HostChange) -> io::Result<()> {
        match change {
            HostChange::InterfaceDown { interface } => self.set_carrier(interface, false),
            HostChange::InterfaceUp { interface } => self.set_carrier(interface, true),
            HostChange::Address { interface, was, is } => {
                let nic = self.position(interface)?;
                let index = self.nics[nic].index;
                self.add_address(nic, *is)?;
                self.netlink
                    .change(Message::DelAddress(message(index, *was)))
            }
        }
    }

    /// Sets or clears an interface's carrier, like plugging or pulling its cable. Addresses and routes
    /// stay.
    fn set_carrier(&mut self, interface: &str, on: bool) -> io::Result<()> {
        let index = self.nics[self.position(interface)?].index;
        self.netlink.change(link(index, |link| {
            link.attributes.push(LinkAttribute::Carrier(u8::from(on)));
        }))
    }

    fn position(&self, interface: &str) -> io::Result<usize> {
        let position = self.nics.iter().position(|nic| nic.name == interface);
        position.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Adds an address to an interface, and a rule that sends packets from it to the interface's table.
    fn add_address(&mut self, nic: usize, address: IpAddr) -> io::Result<()> {
        let (index, table) = (self.nics[nic].index, FIRST_TABLE + nic as u32);
        let added = message(index, address);
        self.netlink.set(Message::NewAddress(added))?;
        let own = self.route(index, address, table, 0);
        self.netlink.set(Message::NewRoute(own))?;
        self.netlink.set(Message::NewRule(rule(address, table)))
    }
    /// Returns a default route by the link with this index, in this table.
    fn route(&self, index: u32, address: IpAddr, table: u32, priority: u32) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = match address {
            IpAddr::V4(_) => RouteScope::Link,
            IpAddr::V6(_) => RouteScope::Universe,
        };
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Table(table),
            RouteAttribute::Oif(index),
            // IPv6 replaces zero by its own default.
            RouteAttribute::Priority(priority + 1),
        ];
        if !self.metrics.is_empty() {
            let metrics = self.metrics.clone();
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        message
    }
}

/// Returns the route metrics that apply to connections.
fn metrics(plan: &HostPlan) -> Vec<RouteMetric> {
    let window = plan.initial_window.map(RouteMetric::InitCwnd);
    let quick = plan.quick_acks.then_some(RouteMetric::QuickAck(1));
    window.into_iter().chain(quick).collect()
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Returns a change to the link with this index.
fn link(index: u32, change: impl FnOnce(&mut LinkMessage)) -> Message {
    let mut message = LinkMessage::default();
    message.header.index = index;
    change(&mut message);
    message.header.change_mask = message.header.flags;
    Message::SetLink(message)
}

/// Returns an address without a prefix: no other address is on the link.
fn message(index: u32, address: IpAddr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = bits(address);
    message.header.index = index;
    message.attributes = vec![
        AddressAttribute::Local(address),
        AddressAttribute::Address(address),
        AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute),
    ];
    message
}

/// Returns a rule that looks up packets from an address in this table.
fn rule(address: IpAddr, table: u32) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(address);
    message.header.src_len = bits(address);
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Source(address),
        RuleAttribute::Table(table),
        RuleAttribute::Priority(table),
    ];
    message
}

/// Returns a rule that looks up all packets of the address's family in the peers' table first.
fn to_peers(address: IpAddr) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(address);
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Table(PEERS_TABLE),
        RuleAttribute::Priority(PEERS_TABLE),
    ];
    message
}

/// Returns a permanent neighbour entry, which needs no resolution.
fn permanent(index: u32, neighbour: &Neighbour) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(neighbour.address);
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![
        NeighbourAttribute::Destination(match neighbour.address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        }),
        NeighbourAttribute::LinkLayerAddress(neighbour.mac.to_vec()),
    ];
    message
}
