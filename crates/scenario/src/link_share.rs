//! A group's goodput as a share of a link, in IP packet bytes, which ns-2 and many papers count.

use weir_units::{ByteSize, Duration};

use crate::packetization::Packetization;
use crate::{Group, Routes, Scenario, Transport};

impl Scenario {
    /// Returns the bytes of full IP packets that `delivered` bytes of a group take, and the bytes of such packets
    /// that the slowest of the links that all its flows cross carries within `span`. `None` if there is no such
    /// link, as between the racks of a leaf-spine network, and for transports with variable headers (DCQUIC, TLS,
    /// UDP).
    pub fn link_share(
        &self,
        group: &Group,
        routes: &Routes,
        delivered: ByteSize,
        span: Duration,
    ) -> Option<(ByteSize, ByteSize)> {
        if !matches!(
            group.transport,
            Transport::Tcp { .. } | Transport::Dcudp { .. }
        ) {
            return None;
        }
        let packet = Packetization::of(&group.transport, self.topology.smallest_mtu(), delivered);
        let common = group.common_ports(&self.topology, routes).into_iter();
        let common = common.map(|port| self.topology.port(port));
        let slowest = common.min_by_key(|port| port.rate)?;
        let ip = packet.full().bytes() as f64;
        let framed = (packet.full() + slowest.framing).bytes() as f64;
        let taken = delivered.bytes() as f64 * ip / packet.payload.bytes() as f64;
        let carried = slowest.rate.size_in(span).bytes() as f64 * ip / framed;
        let bytes = |bytes: f64| ByteSize::from_bytes(bytes.round() as u64);
        Some((bytes(taken), bytes(carried)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    fn share(transport: &str, payload: u64) -> Option<f64> {
        let text = format!(
            "title = 'x'\nsource = 'x'\nseed = 1\nduration = '1s'\n[dumbbell]\nrate = '1Gbps'\n\
             queue = {{ kind = 'drop-tail', buffer = '1MB' }}\n\
             [dumbbell.senders.sender]\nrate = '10Gbps'\nrtt = '100us'\n\
             [groups.flows]\nfrom = 'sender'\nto = 'receiver'\nworkload = 'bulk'\n{transport}\n"
        );
        let scenario = Document::parse("x.toml", &text)
            .and_then(|document| document.scenario())
            .unwrap();
        let delivered = ByteSize::from_bytes(payload);
        let routes = scenario.topology.routes();
        let span = Duration::from_secs(1);
        let (taken, carried) =
            scenario.link_share(&scenario.groups[0], &routes, delivered, span)?;
        Some(taken.bytes() as f64 / carried.bytes() as f64)
    }

    #[test]
    fn the_share_of_full_size_packets_is_one() {
        // 1 Gbit/s carries 81,274 packets of 1500 bytes plus 38 of framing.
        let packets = 1e9 / 8.0 / 1538.0;
        for (transport, payload) in [
            ("", 1448.0),
            ("tcp.timestamps = false", 1460.0),
            ("transport = 'dcudp'", 1456.0),
        ] {
            let share = share(transport, (packets * payload) as u64).unwrap();
            assert!((share - 1.0).abs() < 1e-6, "{transport}: {share}");
        }
        assert_eq!(share("transport = 'quic'", 1_000_000), None);
    }

    #[test]
    fn flows_without_a_common_link_have_no_share() {
        let text = "title = 'x'\nsource = 'x'\nduration = '1s'\n[star]\nrate = '1Gbps'\ndelay = '1us'\n\
             queue = { kind = 'drop-tail', buffer = '1MB' }\n[star.hosts.a]\ncount = 4\n\
             [groups.flows]\nfrom = 'a'\nto = 'a'\nworkload = 'bulk'\n\
             [groups.incast]\nfrom = 'a'\nto = 'a1'\nworkload = 'bulk'\n";
        let scenario = Document::parse("x.toml", text)
            .and_then(|document| document.scenario())
            .unwrap();
        let share = |group: usize| {
            let delivered = ByteSize::from_bytes(1_000_000);
            let (group, routes) = (&scenario.groups[group], scenario.topology.routes());
            scenario.link_share(group, &routes, delivered, Duration::from_secs(1))
        };
        assert_eq!(share(0), None);
        assert!(share(1).is_some());
    }
}
