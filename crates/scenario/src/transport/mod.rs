//! Transports of a group: TCP with its options, TLS over it, DCQUIC, DCUDP, or UDP.

mod dcudp;
mod quic;
mod read;
mod tls;

use serde::{Deserialize, Serialize};
use weir_congestion::AlgorithmSpec;
use weir_scenario_derive::{Keys, Word};
use weir_units::{ByteSize, Duration};

use crate::level::UNLIMITED;
use crate::schema::Accepts;

pub use dcudp::{
    DcudpAckInterval, DcudpCondition, DcudpEcho, DcudpFeedback, DcudpOptions, DcudpQuit, DcudpRtt,
};
pub use quic::{MigrationDetector, MigrationOptions, QuicOptions, QuicPacketSize};
pub(crate) use read::{Protocol, TransportKeys};
pub use tls::TlsOptions;

/// IP and TCP headers without options: the difference of MTU and MSS (RFC 6691).
pub const TCP_HEADERS: ByteSize = ByteSize::from_bytes(40);

/// IP and UDP headers.
pub const UDP_HEADERS: ByteSize = ByteSize::from_bytes(28);

/// The transport of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// Its congestion control.
        congestion: AlgorithmSpec,
        /// Its options.
        #[serde(rename = "tcp")]
        options: TcpOptions,
    },
    /// TLS 1.3 over TCP.
    Tls {
        /// TCP's congestion control.
        congestion: AlgorithmSpec,
        /// TCP's options.
        #[serde(rename = "tcp")]
        options: TcpOptions,
        /// TLS's options.
        tls: TlsOptions,
    },
    /// DCQUIC.
    Quic {
        /// Its congestion control.
        congestion: AlgorithmSpec,
        /// Its options.
        #[serde(rename = "quic")]
        options: QuicOptions,
    },
    /// DCUDP.
    Dcudp {
        /// Its congestion control, in Congestion Mode.
        congestion: AlgorithmSpec,
        /// Its options.
        #[serde(rename = "dcudp")]
        options: DcudpOptions,
    },
    /// UDP datagrams, without congestion control.
    Udp {
        /// Its options.
        #[serde(rename = "udp")]
        options: UdpOptions,
    },
}

impl Transport {
    /// Returns its congestion control, if it has one.
    pub fn congestion(&self) -> Option<&AlgorithmSpec> {
        match self {
            Self::Tcp { congestion, .. }
            | Self::Tls { congestion, .. }
            | Self::Quic { congestion, .. }
            | Self::Dcudp { congestion, .. } => Some(congestion),
            Self::Udp { .. } => None,
        }
    }

    /// Returns its congestion control, if it has one, to change it.
    pub(crate) fn congestion_mut(&mut self) -> Option<&mut AlgorithmSpec> {
        match self {
            Self::Tcp { congestion, .. }
            | Self::Tls { congestion, .. }
            | Self::Quic { congestion, .. }
            | Self::Dcudp { congestion, .. } => Some(congestion),
            Self::Udp { .. } => None,
        }
    }
}

/// Options of both ends of a TCP connection. Defaults are Linux's, except where the key reference
/// says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[keys(
    title = "[groups.NAME.tcp]",
    doc = "How both ends of the group's TCP connections are set up. The initial and the minimum window \
           are parameters of the congestion control.",
    context = OptionContext<'_>,
    check = table.check(fields)
)]
pub struct TcpOptions {
    /// The maximum segment size, as in the MSS option; time stamps and other options reduce the
    /// data in a segment.
    #[key(
        accepts = Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_495)),
        absent = "the smallest MTU of all links less 40B of headers",
        by = read::mss(fields, context.mtu)
    )]
    pub mss: ByteSize,
    /// Whether connections begin with the three-way handshake and end with FINs; if not, both ends
    /// start established.
    #[key(default = true)]
    pub handshake: bool,
    /// The ECN mode of the connections: none, one reaction per window (RFC 3168), or an exact echo
    /// of marks (RFC 8257).
    #[key(
        absent = "`\"dctcp\"` with the congestion controls `dctcp` and `d2tcp`, else `\"off\"`",
        or = TcpEcn::of(context.congestion)
    )]
    pub ecn: TcpEcn,
    /// Selective acknowledgments (RFC 2018).
    #[key(default = true)]
    pub sack: bool,
    /// The time-stamps option (RFC 7323): 12 bytes in each segment.
    #[key(default = true)]
    pub timestamps: bool,
    /// The loss detection with SACK: by time and tail loss probes (RFC 8985), or by three SACKed
    /// segments above (RFC 6675); without SACK, by duplicate ACKs (RFC 6582).
    #[key(default = "rack", by = read::recovery(fields))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Whether the first two duplicate ACKs allow new segments to be sent (RFC 3042).
    #[key(default = true)]
    pub limited_transmit: bool,
    /// Proportional rate reduction (RFC 9937) during loss recovery and, as in Linux, after ECE: the
    /// window falls over a round trip instead of at once.
    #[key(default = true)]
    pub prr: bool,
    /// When receivers acknowledge.
    #[key(flatten)]
    #[serde(flatten)]
    pub delayed_ack: DelayedAck,
    /// Whether a sender whose window has held fewer than two segments asks for each one's ACK at once (PSH),
    /// while it holds fewer than four. Otherwise a receiver that waits for a second segment acknowledges after
    /// `delayed_ack_timeout`.
    #[key(default = true)]
    pub push_small_windows: bool,
    /// The retransmission time-out before the first round-trip time sample (RFC 6298).
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "1s")]
    pub initial_rto: Duration,
    /// The minimum of the part of the retransmission time-out that `rto_floor` names.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "200ms")]
    pub min_rto: Duration,
    /// The part of the retransmission time-out with a minimum: what is added to the smoothed
    /// round-trip time (Linux), or all of it (RFC 6298, section 2.4, whose `min_rto` is 1s).
    #[key(default = "linux")]
    pub rto_floor: RtoFloor,
    /// What is added to the times of tail loss probes and of RACK's losses, with `recovery = "rack"`:
    /// 2 ms as in Linux; RFC 8985 has none.
    #[key(accepts = Accepts::SPAN, default = "2ms")]
    pub early_timer_margin: Duration,
    /// The maximum retransmission time-out.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "120s")]
    pub max_rto: Duration,
    /// Whether the first acknowledgments after a time-out decide if it was spurious (F-RTO, RFC 5682).
    #[key(default = true)]
    pub frto: bool,
    /// Without SACK, the partial acknowledgments of a recovery that restart the retransmission timer:
    /// each, as in Linux, or the first (RFC 6582, section 4).
    #[key(default = "each")]
    pub partial_ack_timer: PartialAckTimer,
    /// The pacing rate: only the rate that the congestion control requests, if any; or otherwise 2
    /// windows per round trip in slow start and 1.2 later, as in Linux with its fq queue.
    #[key(default = "controller")]
    pub pacing: Pacing,
    /// The maximum number of segments that are passed to the link at once. Linux sends bursts of up
    /// to 64 KB; 1 keeps flows fair in marked queues.
    #[key(accepts = Accepts::Count(1, 44), default = 1)]
    pub tso_segments: u32,
    /// The size of the send buffer, unacknowledged data included: Linux's maximum, `net.ipv4.tcp_wmem`.
    #[key(accepts = Accepts::Limit(ByteSize::from_bytes(2048)), default = "4MiB")]
    #[serde(serialize_with = "limit", deserialize_with = "read_limit")]
    pub send_buffer: Option<ByteSize>,
    /// The size of the receive buffer, which limits the window: Linux's maximum, `net.ipv4.tcp_rmem`.
    #[key(accepts = Accepts::Limit(ByteSize::from_bytes(2048)), default = "6MiB")]
    #[serde(serialize_with = "limit", deserialize_with = "read_limit")]
    pub receive_buffer: Option<ByteSize>,
    /// Whether the window shrinks while the connection is idle (RFC 2861).
    #[key(default = true)]
    pub idle_restart: bool,
    /// Nagle's algorithm: a small segment waits while data is in flight. Off, as request-response
    /// programs set it (TCP_NODELAY).
    #[key(default = false)]
    pub nagle: bool,
    /// Flows wait while their host has about a millisecond of data to send, as in Linux (TCP small
    /// queues); if off, a flow whose own link is the bottleneck fills its host's queue.
    #[key(default = true)]
    pub small_queues: bool,
}

/// When receivers acknowledge (RFC 9293, section 3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Keys)]
pub struct DelayedAck {
    /// The receiver acknowledges after this many segments; 1 disables delayed ACKs.
    #[key(accepts = Accepts::Count(1, 1000), default = 2)]
    pub ack_every: u32,
    /// The maximum time that an ACK waits for the next segment.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "40ms")]
    pub delayed_ack_timeout: Duration,
    /// The number of segments that are acknowledged at once at a connection's start, after an idle time
    /// and after a duplicate; with ECN, so are the first marked segment and those with CWR, unless this
    /// is 0. A segment that ends a write is acknowledged at once until the receiver has answered data with
    /// data.
    #[key(accepts = Accepts::Count(0, 1000), default = 16)]
    pub quick_ack_segments: u32,
}

/// TCP's ECN mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum TcpEcn {
    /// No ECN: packets are Not-ECT.
    Off,
    /// RFC 3168: one reaction per window, echoed until it is confirmed.
    Rfc3168,
    /// RFC 8257: the receiver echoes each mark.
    Dctcp,
}

/// TCP's loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By time, with tail loss probes: RACK-TLP (RFC 8985).
    Rack,
    /// By three duplicate ACKs, or three SACKed segments in the scoreboard (RFC 6675).
    Rfc6675,
}

/// The part of the retransmission time-out that has a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum RtoFloor {
    /// The margin above the smoothed round-trip time.
    Linux,
    /// The whole (RFC 6298, section 2.4).
    Rfc6298,
}

/// The partial acknowledgments that restart the retransmission timer (RFC 6582, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAckTimer {
    /// Each one.
    Each,
    /// The first one of a recovery.
    First,
}

/// TCP's pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// At the rate that the congestion control requests, if any.
    Controller,
    /// At the rate that the congestion control requests; if none, at 2 windows per round trip in
    /// slow start and at 1.2 later, as in Linux with its fq queue.
    Window,
}

/// Options of UDP datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Keys)]
#[keys(
    title = "[groups.NAME.udp]",
    doc = "How the group's datagrams are sent."
)]
pub struct UdpOptions {
    /// The ECN codepoint of the datagrams.
    #[key(default = "not-ect")]
    pub ecn: UdpEcn,
}

/// The context on which the options of a connection depend.
#[derive(Clone, Copy)]
pub(crate) struct OptionContext<'g> {
    /// The group's congestion control.
    congestion: &'g AlgorithmSpec,
    /// The smallest MTU of all links.
    mtu: ByteSize,
}

/// The ECN codepoint of UDP datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum UdpEcn {
    /// Not ECN-capable.
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
}

fn limit<S: serde::Serializer>(value: &Option<ByteSize>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(size) => to.collect_str(size),
        None => to.serialize_str(UNLIMITED),
    }
}

fn read_limit<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<ByteSize>, D::Error> {
    let text = String::deserialize(from)?;
    match text.as_str() {
        UNLIMITED => Ok(None),
        size => size.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

impl Transport {
    /// Whether connections between hosts that know each other have no handshake.
    pub fn has_known_peers(&self) -> bool {
        matches!(self, Self::Quic { options, .. } if options.known_peers)
    }

    /// Returns the data of a `packet` of the workload `cbr`: a datagram's payload, or the data of a write
    /// whose segments have `packet` bytes in all, headers included.
    pub fn data_of(&self, packet: ByteSize) -> ByteSize {
        let headers = match self {
            Self::Tcp { options, .. } | Self::Tls { options, .. } => {
                let headers = options.headers();
                let segments = packet.bytes().div_ceil((options.mss + TCP_HEADERS).bytes());
                headers * segments
            }
            Self::Quic { .. } | Self::Dcudp { .. } => TCP_HEADERS,
            Self::Udp { .. } => UDP_HEADERS,
        };
        (packet - headers).max(ByteSize::from_bytes(1))
    }
}

impl TcpOptions {
    /// Returns the size of a data segment's headers, IP's included.
    pub(crate) fn headers(&self) -> ByteSize {
        const TIMESTAMPS: ByteSize = ByteSize::from_bytes(12);
        if self.timestamps {
            TCP_HEADERS + TIMESTAMPS
        } else {
            TCP_HEADERS
        }
    }

    /// Returns the window scale: the shift that lets the window field cover the whole receive
    /// buffer, at most 14 (RFC 7323, section 2.3).
    pub fn window_scale(&self) -> u8 {
        const MOST: u8 = 14;
        let buffer = self.receive_buffer.map_or(u64::MAX, ByteSize::bytes);
        let fits = |scale: &u8| buffer >> scale <= u64::from(u16::MAX);
        (0..MOST).find(fits).unwrap_or(MOST)
    }
}

#[cfg(test)]
mod tests {
    use weir_units::ByteSize;

    use crate::{Transport, one_group};

    fn window_scale(buffer: &str) -> u8 {
        let setting = format!("tcp.receive_buffer={buffer}");
        match &one_group::scenario("\"bulk\"", &[&setting]).groups[0].transport {
            Transport::Tcp { options, .. } => options.window_scale(),
            other => panic!("{other:?}"),
        }
    }

    fn data_of(packet: u64, settings: &[&str]) -> u64 {
        let workload = "{ kind = \"cbr\", rate = \"1Mbps\" }";
        let scenario = one_group::scenario(workload, settings);
        let packet = ByteSize::from_bytes(packet);
        scenario.groups[0].transport.data_of(packet).bytes()
    }

    #[test]
    fn a_packet_at_a_constant_rate_includes_its_headers() {
        assert_eq!(data_of(1500, &[]), 1448);
        assert_eq!(data_of(1500, &["tcp.timestamps=false"]), 1460);
        // Two segments, then three.
        assert_eq!(data_of(3000, &[]), 2 * 1448);
        assert_eq!(data_of(3100, &[]), 3100 - 3 * 52);
        assert_eq!(data_of(64, &[]), 12);
        assert_eq!(data_of(1500, &["transport=udp"]), 1472);
    }

    #[test]
    fn the_window_scale_is_the_smallest_that_covers_the_buffer() {
        assert_eq!(window_scale("65535B"), 0);
        assert_eq!(window_scale("65536B"), 1);
        assert_eq!(window_scale("6MiB"), 7);
        assert_eq!(window_scale("1TB"), 14);
        assert_eq!(window_scale("unlimited"), 14);
    }
}
