//! How many connections each client has, by its address and its network, so that one host cannot hold
//! all connections of a server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most connections of one client. An address is an IPv4 address or an IPv6 /64 network, which one
/// host may have all addresses of; a network is an IPv4 /24 or an IPv6 /48.
///
/// A connection counts for the address that it began from, as long as the server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Of one address.
    pub per_address: usize,
    /// Of all addresses of one network.
    pub per_network: usize,
}

impl ClientLimits {
    /// No limits: for servers whose clients come through few addresses, such as those of a proxy.
    pub const NONE: Self = Self {
        per_address: usize::MAX,
        per_network: usize::MAX,
    };

    /// Returns the default limits of a server with this many connections at most: a quarter of them
    /// per address and half of them per network, and no fewer than 256 and 512.
    pub fn for_capacity(max_connections: usize) -> Self {
        Self {
            per_address: max_connections.div_ceil(4).max(256),
            per_network: max_connections.div_ceil(2).max(512),
        }
    }
}

/// The connections of each client, shared by the engines of a server. It has entries for addresses
/// with connections only.
#[derive(Debug)]
pub struct ClientTable {
    limits: ClientLimits,
    /// Ordered, as clients choose the keys.
    counts: Mutex<BTreeMap<Origin, usize>>,
}

/// An address or a network, by its first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Address(IpAddr),
    Network(IpAddr),
}

/// The room that a client has for a further connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRoom {
    /// Less than half of each limit is in use.
    Ample,
    /// Half of a limit is in use. The rest is for clients with a validated address, so that packets
    /// from a spoofed address cannot use up all connections of the host that has it.
    ForValidated,
    /// None.
    Exhausted,
}

/// A connection's place in the table, until it is dropped.
#[derive(Debug)]
pub(super) struct ClientPlace {
    table: Arc<ClientTable>,
    origins: [Origin; 2],
}

impl ClientTable {
    /// Creates an empty table.
    pub fn new(limits: ClientLimits) -> Self {
        Self {
            limits,
            counts: Mutex::default(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<Origin, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the room for a further connection from this address.
    pub(super) fn room(&self, address: IpAddr) -> ClientRoom {
        let counts = self.counts();
        let limits = [self.limits.per_address, self.limits.per_network];
        let rooms = origins(address)
            .into_iter()
            .zip(limits)
            .map(|(origin, limit)| {
                let count = counts.get(&origin).copied().unwrap_or(0);
                match count {
                    _ if count >= limit => ClientRoom::Exhausted,
                    _ if count >= limit.div_ceil(2) => ClientRoom::ForValidated,
                    _ => ClientRoom::Ample,
                }
            });
        rooms
            .max_by_key(|room| *room as u8)
            .unwrap_or(ClientRoom::Ample)
    }

    /// Counts a connection from this address.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> ClientPlace {
        let origins = origins(address);
        let mut counts = self.counts();
        for origin in origins {
            *counts.entry(origin).or_default() += 1;
        }
        drop(counts);
        ClientPlace {
            table: self.clone(),
            origins,
        }
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut counts = self.table.counts();
        for origin in self.origins {
            if let Some(count) = counts.get_mut(&origin) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&origin);
                }
            }
        }
    }
}

fn origins(address: IpAddr) -> [Origin; 2] {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let network = Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << 8));
            [
                Origin::Address(address.into()),
                Origin::Network(network.into()),
            ]
        }
        IpAddr::V6(address) => {
            let cut = |length: u32| {
                IpAddr::from(Ipv6Addr::from_bits(
                    address.to_bits() & (u128::MAX << (128 - length)),
                ))
            };
            [Origin::Address(cut(64)), Origin::Network(cut(48))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(per_address: usize, per_network: usize) -> Arc<ClientTable> {
        Arc::new(ClientTable::new(ClientLimits {
            per_address,
            per_network,
        }))
    }

    fn ip(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn addresses_and_networks_have_their_limits() {
        for (one, same_address, neighbour, other) in [
            ("10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2", "10.0.1.1"),
            (
                "2001:db8:0:1::1",
                "2001:db8:0:1:f::",
                "2001:db8:0:2::1",
                "2001:db8:1:1::1",
            ),
        ] {
            let table = table(2, 3);
            assert_eq!(table.room(ip(one)), ClientRoom::Ample);
            let first = table.enter(ip(one));
            assert_eq!(table.room(ip(same_address)), ClientRoom::ForValidated);
            assert_eq!(table.room(ip(neighbour)), ClientRoom::Ample);
            let _second = table.enter(ip(same_address));
            assert_eq!(table.room(ip(one)), ClientRoom::Exhausted);
            assert_eq!(table.room(ip(neighbour)), ClientRoom::ForValidated);
            let _third = table.enter(ip(neighbour));
            assert_eq!(table.room(ip(neighbour)), ClientRoom::Exhausted);
            assert_eq!(table.room(ip(other)), ClientRoom::Ample);
            drop(first);
            assert_eq!(table.room(ip(one)), ClientRoom::ForValidated);
        }
    }

    #[test]
    fn the_table_holds_no_more_than_its_places() {
        let table = table(10, 10);
        let places: Vec<_> = (0..1000_u32)
            .map(|number| table.enter(Ipv4Addr::from_bits(number << 8).into()))
            .collect();
        assert_eq!(table.counts().len(), 2000);
        drop(places);
        assert_eq!(table.counts().len(), 0);
    }

    #[test]
    fn default_limits_follow_the_capacity() {
        let limits = ClientLimits::for_capacity(10_000);
        assert_eq!((limits.per_address, limits.per_network), (2_500, 5_000));
        let limits = ClientLimits::for_capacity(10);
        assert_eq!((limits.per_address, limits.per_network), (256, 512));
        let none = Arc::new(ClientTable::new(ClientLimits::NONE));
        let _place = none.enter(ip("10.0.0.1"));
        assert_eq!(none.room(ip("10.0.0.1")), ClientRoom::Ample);
    }
}
