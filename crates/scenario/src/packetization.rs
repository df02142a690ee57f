//! How the data of a transfer become packets.

use weir_units::{ByteSize, Duration};

use crate::transport::{TCP_HEADERS, UDP_HEADERS};
use crate::{Distribution, QuicPacketSize, TcpOptions, Transport};

/// The header of a DCUDP data packet.
const DCUDP_HEADER: ByteSize = ByteSize::from_bytes(16);
/// What a full DCQUIC packet has besides stream data and the UDP header: the short header with a connection ID
/// of 8 bytes and a packet number of 2, the tag of 16, and the header of a STREAM frame (RFC 9000, sections 17.3
/// and 19.8). The last one grows with the offset: this is its usual size.
const QUIC_OVERHEAD: ByteSize = ByteSize::from_bytes(1 + 8 + 2 + 16 + 8);
/// A TLS record's header, content type and tag (RFC 8446, section 5.2).
const TLS_OVERHEAD: ByteSize = ByteSize::from_bytes(22);
/// The UDP payload of DCQUIC with `probe`, before any probe.
const QUIC_PROBED: ByteSize = ByteSize::from_bytes(1252);
/// DCQUIC's UDP payloads with `task`, below and from this size on.
const QUIC_BY_TASK: [ByteSize; 2] = [ByteSize::from_bytes(8972), ByteSize::from_bytes(5000)];
const LARGE_TASK: ByteSize = ByteSize::from_bytes(1_000_000);

/// How a transport divides the data of a transfer into packets: full ones, and a last one with the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packetization {
    /// The data of a full packet.
    pub payload: ByteSize,
    /// The headers of each packet, IP's included.
    pub headers: ByteSize,
    /// The data of a full TLS record.
    record: Option<ByteSize>,
}

/// The packets of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferPackets {
    /// Their number, at least one.
    pub count: u64,
    /// The IP length of each but the last one.
    pub full: ByteSize,
    /// The IP length of the last one.
    pub last: ByteSize,
}

impl Packetization {
    /// Returns that of a transport for transfers of this size, in a network whose links all take IP packets of `mtu`.
    pub fn of(transport: &Transport, mtu: ByteSize, size: ByteSize) -> Self {
        let (packet, headers, record) = match transport {
            Transport::Tcp { options, .. } => (options.full_packet(), options.headers(), None),
            Transport::Tls { options, tls, .. } => {
                let record = Some(tls.record);
                (options.full_packet(), options.headers(), record)
            }
            Transport::Quic { options, .. } => {
                let payload = match options.packet_size {
                    QuicPacketSize::Interface => mtu - UDP_HEADERS,
                    QuicPacketSize::Fixed(payload) => payload,
                    QuicPacketSize::Probe => QUIC_PROBED,
                    QuicPacketSize::ByTask => QUIC_BY_TASK[usize::from(size >= LARGE_TASK)],
                };
                (payload + UDP_HEADERS, UDP_HEADERS + QUIC_OVERHEAD, None)
            }
            Transport::Dcudp { options, .. } => {
                let packet = options.packet_size + UDP_HEADERS;
                (packet, UDP_HEADERS + DCUDP_HEADER, None)
            }
            Transport::Udp { .. } => (mtu, UDP_HEADERS, None),
        };
        Self {
            payload: (packet - headers).max(ByteSize::from_bytes(1)),
            headers,
            record,
        }
    }

    /// Returns the IP length of a full packet.
    pub fn full(self) -> ByteSize {
        self.payload + self.headers
    }

    /// Returns the packets of a transfer of this size.
    pub fn packets(self, size: ByteSize) -> TransferPackets {
        let data = self.stream(size).max(ByteSize::from_bytes(1));
        let count = data.bytes().div_ceil(self.payload.bytes());
        TransferPackets {
            count,
            full: self.full(),
            last: data - self.payload * (count - 1) + self.headers,
        }
    }

    /// Returns the mean IP bytes of a transfer, and its mean number of packets.
    pub(crate) fn mean(self, sizes: &Distribution) -> (f64, f64) {
        let bytes = |size: ByteSize| size.bytes() as f64;
        let records = match self.record {
            Some(record) => sizes.mean_count(record) * bytes(TLS_OVERHEAD),
            None => 0.0,
        };
        // The overhead of records adds packets in proportion to their bytes.
        let packets = sizes.mean_count(self.payload) + records / bytes(self.payload);
        let data = sizes.mean_bytes() + records;
        (data + packets * bytes(self.headers), packets)
    }

    /// Returns the bytes of the transport's stream for this many bytes of the application.
    fn stream(self, size: ByteSize) -> ByteSize {
        match self.record {
            Some(record) => size + TLS_OVERHEAD * size.bytes().div_ceil(record.bytes().max(1)),
            None => size,
        }
    }
}

impl TransferPackets {
    /// Returns the sum of their IP lengths.
    pub fn ip_bytes(self) -> ByteSize {
        self.full * (self.count - 1) + self.last
    }

    /// Returns the least time from the first bit's leaving until the last bit's arrival over links of these
    /// properties, one after the other, that carry nothing else: every packet is sent as soon as it has
    /// arrived as a whole, and as the link is free.
    ///
    /// With `t[i]` the time that a full packet takes on link `i`, its framing included, the full packets but
    /// for the last of them leave link `i` after `t[1] + … + t[i]` and their number less one times the largest
    /// of these; the last packet follows, and each link adds its propagation delay.
    pub fn ideal_time(self, links: &[PathLink]) -> Duration {
        let full_packets = self.count - 1;
        let (mut sum, mut slowest) = (Duration::ZERO, Duration::ZERO);
        // Without propagation delays: when the last packet has been sent by a link.
        let mut last = Duration::ZERO;
        for link in links {
            let full = link.rate.time_for(self.full + link.framing);
            sum += full;
            slowest = slowest.max(full);
            let before = match full_packets {
                0 => Duration::ZERO,
                count => sum + slowest * (count - 1),
            };
            last = last.max(before) + link.rate.time_for(self.last + link.framing);
        }
        links.iter().fold(last, |time, link| time + link.delay)
    }
}

/// A link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathLink {
    /// Its rate.
    pub rate: weir_units::Rate,
    /// Its propagation delay.
    pub delay: Duration,
    /// What each packet occupies beyond its IP bytes.
    pub framing: ByteSize,
}

impl TcpOptions {
    /// Returns the IP length of a full data segment.
    fn full_packet(&self) -> ByteSize {
        self.mss + TCP_HEADERS
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::*;
    use crate::one_group;

    fn of(settings: &[&str], size: u64) -> (Packetization, TransferPackets) {
        let scenario = one_group::scenario("\"bulk\"", settings);
        let size = ByteSize::from_bytes(size);
        let mtu = scenario.topology.smallest_mtu();
        let packets = Packetization::of(&scenario.groups[0].transport, mtu, size);
        (packets, packets.packets(size))
    }

    #[test]
    fn a_transfer_is_full_packets_and_a_rest() {
        let bytes = |size: ByteSize| size.bytes();
        let (packets, transfer) = of(&[], 1);
        assert_eq!((bytes(packets.payload), bytes(packets.headers)), (1448, 52));
        assert_eq!((transfer.count, bytes(transfer.last)), (1, 53));
        let (_, transfer) = of(&[], 2 * 1448);
        assert_eq!((transfer.count, bytes(transfer.last)), (2, 1500));
        let (_, transfer) = of(&["tcp.timestamps=false"], 1461);
        assert_eq!((transfer.count, bytes(transfer.last)), (2, 41));
        assert_eq!(bytes(transfer.ip_bytes()), 1461 + 2 * 40);
        // Two records.
        let (_, transfer) = of(&["transport=tls"], 16_385);
        assert_eq!(bytes(transfer.ip_bytes()), 16_385 + 44 + 12 * 52);
        let (packets, _) = of(&["transport=dcudp"], 1);
        assert_eq!(bytes(packets.payload), 1456);
    }

    #[test]
    fn the_ideal_time_is_that_of_store_and_forward() {
        let link = |mbps, micros| PathLink {
            rate: Rate::from_mbps(mbps),
            delay: Duration::from_micros(micros),
            framing: ByteSize::from_bytes(38),
        };
        let (_, one) = of(&[], 948);
        // 1038 bytes on the wire: 8304 ns at 1 Gbit/s, 83040 ns at 100 Mbit/s.
        assert_eq!(one.ideal_time(&[link(1000, 3)]).as_nanos(), 8_304 + 3_000);
        let path = [link(1000, 3), link(100, 4)];
        assert_eq!(one.ideal_time(&path).as_nanos(), 8_304 + 83_040 + 7_000);
        // Three full packets of 1538 bytes, 12304 ns or 123040 ns, and a last one of 1038.
        let (_, four) = of(&[], 3 * 1448 + 948);
        assert_eq!(
            four.ideal_time(&path).as_nanos(),
            12_304 + 3 * 123_040 + 83_040 + 7_000
        );
        // The fast link comes last: only the last packet's time on it is left.
        let back = [link(100, 4), link(1000, 3)];
        assert_eq!(
            four.ideal_time(&back).as_nanos(),
            3 * 123_040 + 83_040 + 8_304 + 7_000
        );
    }

    #[test]
    fn the_mean_matches_the_sizes_of_many_transfers() {
        for settings in [&[][..], &["transport=tls"]] {
            let (packets, _) = of(settings, 1);
            let sizes = Distribution::web_search();
            let draws = 200_000;
            let (mut bytes, mut count) = (0, 0);
            for draw in 0..draws {
                let transfer = packets.packets(sizes.quantile((draw as f64 + 0.5) / draws as f64));
                bytes += transfer.ip_bytes().bytes();
                count += transfer.count;
            }
            let (mean_bytes, mean_count) = packets.mean(&sizes);
            let near =
                |found: u64, mean: f64| (found as f64 / draws as f64 / mean - 1.0).abs() < 1e-3;
            assert!(
                near(bytes, mean_bytes) && near(count, mean_count),
                "{settings:?}"
            );
        }
    }
}
