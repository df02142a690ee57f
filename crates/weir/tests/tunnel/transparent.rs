//! Destinations that see the application's own address.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use crate::namespace::Namespace;
use crate::pair::{Pair, answer, answer_datagrams, source, start};
use crate::running::Running;

/// A server at the gate, with routes for the destinations' replies, and destinations behind it.
struct Place {
    pair: Pair,
    server: Running,
    _destinations: Namespace,
}

impl Place {
    fn new(test: &str, networks: &str) -> Option<Self> {
        let pair = Pair::new(test)?;
        let destinations = pair.behind_the_gate();
        for family in ["-4", "-6"] {
            for protocol in ["tcp", "udp"] {
                let rule = format!("iif veth2 ipproto {protocol} sport 8080 lookup 100");
                pair.gate.ip(&format!("{family} rule add {rule}"));
            }
            (pair.gate).ip(&format!(
                "{family} route add local default dev lo table 100"
            ));
        }
        answer(&destinations, "[::]:8080");
        answer_datagrams(&destinations, "[::]:8080");
        let allowed = "--allow 10.78.0.2:8080 --allow [fd78::2]:8080";
        let words = format!("server --bind :: --udp {allowed} {networks}");
        Some(Self {
            server: start(&pair.gate, &words),
            pair,
            _destinations: destinations,
        })
    }

    fn client(&self, to: &str, via: &str) -> (Running, String) {
        let pin = self.server.said["fingerprint"].as_str().unwrap();
        let words = format!("client --listen 0 --udp --to {to} --via {via} --pin {pin}");
        let client = start(&self.pair.applications, &words);
        let address = client.said["listening"][0].as_str().unwrap().to_owned();
        (client, address)
    }

    /// Asks a destination where a datagram comes from. It is sent again, as UDP may lose it.
    fn source_of_datagrams(&self, address: &str) -> String {
        let socket = self
            .pair
            .applications
            .run(|| UdpSocket::bind("127.0.0.1:0").unwrap());
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let mut buffer = [0; 64];
        loop {
            socket.send_to(b"?", address).unwrap();
            if let Ok(length) = socket.recv(&mut buffer) {
                return String::from_utf8(buffer[..length].to_vec()).unwrap();
            }
        }
    }
}

#[test]
fn destinations_see_the_applications_address() {
    let networks = "--transparent 10.77.0.0/24 --transparent fd77::/64";
    let Some(place) = Place::new("destinations_see_the_applications_address", networks) else {
        return;
    };
    for (to, via, expected) in [
        ("10.78.0.2:8080", "10.77.0.2", "10.77.0.1"),
        ("[fd78::2]:8080", "fd77::2", "fd77::1"),
    ] {
        let (_client, address) = place.client(to, via);
        let found = source(&place.pair.applications, &address).unwrap();
        assert_eq!(found, expected);
        assert_eq!(place.source_of_datagrams(&address), expected);
    }
}

#[test]
fn an_address_of_another_network_is_refused() {
    let test = "an_address_of_another_network_is_refused";
    let Some(place) = Place::new(test, "--transparent 10.99.0.0/16") else {
        return;
    };
    let (_client, address) = place.client("10.78.0.2:8080", "10.77.0.2");
    let error = source(&place.pair.applications, &address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
