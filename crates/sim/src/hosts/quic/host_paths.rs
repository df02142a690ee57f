//! The paths of one end's datagrams: address pairs, and the ports of its host.

use std::net::SocketAddr;

use weir_wire::Ecn;

use crate::hosts::datagram_slab::DatagramRoute;
use crate::packet::Location;

/// A path from a host by one of its links to an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPath {
    /// The port of the topology by which the host sends.
    pub(crate) port: u32,
    /// The numbers of its own address and of the peer's.
    pub(crate) own: u32,
    pub(crate) peer: u32,
}

/// The paths of an end, the preferred one first. There are as many as the hosts have links: linear search
/// is the fastest.
#[derive(Clone, Debug)]
pub(super) struct HostPaths {
    entries: Vec<Entry>,
    own_port: u16,
    peer_port: u16,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    host_path: HostPath,
    /// The edition of the host's address, and the one that the engine knows.
    edition: u8,
    known: u8,
}

impl HostPaths {
    /// Creates the table with the UDP ports of this end and of the other one.
    pub(super) fn new(host_paths: &[HostPath], own_port: u16, peer_port: u16) -> Self {
        let entries = host_paths.iter().map(|host_path| Entry {
            host_path: *host_path,
            edition: 0,
            known: 0,
        });
        Self {
            entries: entries.collect(),
            own_port,
            peer_port,
        }
    }

    /// Returns the address pairs before any change.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        self.entries.iter().map(|entry| {
            let location = |number| Location {
                number,
                generation: 0,
            };
            self.sockets(
                location(entry.host_path.own),
                location(entry.host_path.peer),
            )
        })
    }

    fn sockets(&self, own: Location, peer: Location) -> (SocketAddr, SocketAddr) {
        (
            SocketAddr::new(own.ip(), self.own_port),
            SocketAddr::new(peer.ip(), self.peer_port),
        )
    }

    /// Returns the addresses of an incoming packet as the engine knows them; `None` if the host no longer
    /// has the packet's destination address.
    pub(super) fn arriving(
        &self,
        from: Location,
        to: Location,
    ) -> Option<(SocketAddr, SocketAddr)> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| {
            entry.host_path.peer == from.number
                && entry.host_path.own == to.number
                && entry.edition == to.generation
        })?;
        let known = Location {
            generation: entry.known,
            ..to
        };
        Some(self.sockets(known, from))
    }

    /// Returns the path between these addresses; the first one if the engine does not name its own.
    #[inline]
    pub(super) fn leaving(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        ecn: Ecn,
    ) -> Option<DatagramRoute> {
        let to = Location::of(remote.ip())?;
        let local = local.and_then(|local| Location::of(local.ip()));
        let is_local = |entry: &Entry| {
            local.is_none_or(|local| {
                local.number == entry.host_path.own && local.generation == entry.known
            })
        };
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.host_path.peer == to.number && is_local(entry))?;
        Some(DatagramRoute {
            from: Location {
                number: entry.host_path.own,
                generation: entry.edition,
            },
            to,
            port: entry.host_path.port,
            ecn,
        })
    }

    /// Changes the host's address on the link of this port. Returns the address that the engine knows, and
    /// the new one.
    pub(super) fn readdress(&mut self, port: u32) -> Option<(SocketAddr, SocketAddr)> {
        let here = self.entries.iter_mut();
        let here = here.filter(|entry| entry.host_path.port == port);
        let mut changed = None;
        for entry in here {
            entry.edition = entry.edition.wrapping_add(1);
            changed = Some(*entry);
        }
        let Entry {
            host_path,
            edition,
            known,
        } = changed?;
        let socket = |edition| {
            let number = host_path.own;
            SocketAddr::new(
                Location {
                    number,
                    generation: edition,
                }
                .ip(),
                self.own_port,
            )
        };
        Some((socket(known), socket(edition)))
    }

    /// Records that the engine knows the address of a port's link.
    pub(super) fn note_known(&mut self, port: u32) {
        let here = self.entries.iter_mut();
        for entry in here.filter(|entry| entry.host_path.port == port) {
            entry.known = entry.edition;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(number: u32, edition: u8) -> Location {
        Location {
            number,
            generation: edition,
        }
    }

    #[test]
    fn packets_to_an_old_address_match_no_path() {
        let host_path = |port, own| HostPath { port, own, peer: 1 };
        let mut host_paths = HostPaths::new(&[host_path(4, 7), host_path(5, 8)], 60_002, 50_000);
        let [first, second] = [0, 1].map(|slot| host_paths.pairs().nth(slot).unwrap());
        assert_eq!(first.0, "10.0.0.8:60002".parse().unwrap());
        assert_eq!(first.1, "10.0.0.2:50000".parse().unwrap());
        assert_eq!(
            host_paths.arriving(location(1, 0), location(8, 0)),
            Some(second)
        );
        assert_eq!(host_paths.arriving(location(2, 0), location(8, 0)), None);

        let leaving =
            |host_paths: &HostPaths, local| host_paths.leaving(Some(local), first.1, Ecn::Ect0);
        assert_eq!(leaving(&host_paths, second.0).unwrap().port, 5);
        let (old, new) = host_paths.readdress(5).unwrap();
        assert_eq!(old, second.0);
        assert_eq!(new, "11.0.0.9:60002".parse().unwrap());
        assert_eq!(host_paths.arriving(location(1, 0), location(8, 0)), None);
        // Until the engine knows, it uses the old address, as behind a NAT.
        let arrived = host_paths.arriving(location(1, 0), location(8, 1));
        assert_eq!(arrived, Some(second));
        assert_eq!(leaving(&host_paths, old).unwrap().from, location(8, 1));
        host_paths.note_known(5);
        assert!(leaving(&host_paths, old).is_none());
        assert_eq!(leaving(&host_paths, new).unwrap().from, location(8, 1));
        assert_eq!(leaving(&host_paths, first.0).unwrap().from, location(7, 0));
    }
}
