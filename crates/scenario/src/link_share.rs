//! A group's goodput as a share of a link, in IP packet bytes, which ns-2 and many papers count.

use weir_units::{ByteSize, Duration};

use crate::transport::{TCP_HEADERS, UDP_HEADERS};
use crate::{Group, Scenario, Transport};

/// TCP's time-stamps option, padded (RFC 7323, section 3.2).
const TIMESTAMPS: ByteSize = ByteSize::from_bytes(12);
/// The header of a DCUDP data packet.
const DCUDP_HEADER: ByteSize = ByteSize::from_bytes(16);

/// The sizes of a full packet.
#[derive(Clone, Copy, Debug)]
struct FullPacket {
    payload: ByteSize,
    /// The size of the IP packet.
    ip: ByteSize,
}

impl Scenario {
    /// Returns the bytes of full IP packets that `delivered` bytes of a group take, and the bytes
    /// of such packets that the slowest of its links carries within `span`. `None` for transports
    /// with variable headers (DCQUIC, TLS, UDP), and if there is no link.
    pub fn link_share(
        &self,
        group: &Group,
        delivered: ByteSize,
        span: Duration,
    ) -> Option<(ByteSize, ByteSize)> {
        let packet = FullPacket::of(&group.transport)?;
        let ports = self.topology.ports.iter();
        let slowest = ports.min_by_key(|port| port.rate)?;
        let ip = packet.ip.bytes() as f64;
        let framed = (packet.ip + slowest.framing).bytes() as f64;
        let taken = delivered.bytes() as f64 * ip / packet.payload.bytes() as f64;
        let carried = slowest.rate.size_in(span).bytes() as f64 * ip / framed;
        let bytes = |bytes: f64| ByteSize::from_bytes(bytes.round() as u64);
        Some((bytes(taken), bytes(carried)))
    }
}

impl FullPacket {
    fn of(transport: &Transport) -> Option<Self> {
        let (payload, ip) = match transport {
            Transport::Tcp { options, .. } => {
                let taken = if options.timestamps {
                    TIMESTAMPS
                } else {
                    ByteSize::ZERO
                };
                (options.mss - taken, options.mss + TCP_HEADERS)
            }
            Transport::Dcudp { options, .. } => (
                options.packet_size - DCUDP_HEADER,
                options.packet_size + UDP_HEADERS,
            ),
            Transport::Tls { .. } | Transport::Quic { .. } | Transport::Udp { .. } => return None,
        };
        (!payload.is_zero()).then_some(Self { payload, ip })
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
        let (taken, carried) =
            scenario.link_share(&scenario.groups[0], delivered, Duration::from_secs(1))?;
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
}
