//! The rate of the network interface towards a peer.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use weir_units::Rate;

use crate::interfaces::interface_of;

/// Returns the rate of the interface by which packets to `peer` leave, as its driver reports it;
/// `None` where it reports none, as loopback does, or where there is no route.
pub fn interface_rate(peer: SocketAddr) -> Option<Rate> {
    let name = interface_of(local_address(peer)?)?;
    parse(&fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?)
}

/// Returns the local address of packets to `peer`. Connecting a UDP socket sends nothing; it makes the
/// kernel look up the route.
fn local_address(peer: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Parses the megabits per second of an interface; -1 and 0 mean that they are unknown.
fn parse(text: &str) -> Option<Rate> {
    let megabits: u64 = text.trim().parse().ok()?;
    (megabits > 0).then(|| Rate::from_mbps(megabits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_speed_is_no_limit() {
        assert_eq!(parse("1000\n"), Some(Rate::from_gbps(1)));
        assert_eq!(parse("-1\n"), None);
        assert_eq!(parse("0"), None);
        assert_eq!(interface_rate("127.0.0.1:9".parse().unwrap()), None);
    }
}
