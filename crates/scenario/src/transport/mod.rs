//! What carries a group's data: TCP with its options, TLS over it, DCQUIC, DCUDP, or UDP.

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

/// IP and TCP headers without options: what the MSS leaves of the MTU (RFC 6691).
pub const TCP_HEADERS: ByteSize = ByteSize::from_bytes(40);

/// IP and UDP headers.
pub const UDP_HEADERS: ByteSize = ByteSize::from_bytes(28);

/// What carries data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// Its congestion control.
        congestion: AlgorithmSpec,
        /// How it is set up.
        #[serde(rename = "tcp")]
        options: TcpOptions,
    },
    /// TLS 1.3 over TCP.
    Tls {
        /// TCP's congestion control.
        congestion: AlgorithmSpec,
        /// How TCP is set up.
        #[serde(rename = "tcp")]
        options: TcpOptions,
        /// How TLS is set up.
        tls: TlsOptions,
    },
    /// DCQUIC.
    Quic {
        /// Its congestion control.
        congestion: AlgorithmSpec,
        /// How it is set up.
        #[serde(rename = "quic")]
        options: QuicOptions,
    },
    /// DCUDP.
    Dcudp {
        /// Its congestion control, in Congestion Mode.
        congestion: AlgorithmSpec,
        /// How it is set up.
        #[serde(rename = "dcudp")]
        options: DcudpOptions,
    },
    /// UDP datagrams, without congestion control.
    Udp {
        /// How they are sent.
        #[serde(rename = "udp")]
        options: UdpOptions,
    },
}

/// How both ends of a TCP connection are set up. Defaults are Linux's, except where the key
/// reference says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[keys(
    title = "[groups.NAME.tcp]",
    doc = "How both ends of the group's TCP connections are set up. The initial and the minimum window \
           are parameters of the congestion control.",
    context = OptionContext<'_>,
    check = table.check(fields)
)]
pub struct TcpOptions {
    /// The maximum segment size, as the MSS option counts it: time stamps and other options take
    /// their bytes from it.
    #[key(
        accepts = Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_495)),
        absent = "the smallest MTU of all links less 40B of headers",
        by = read::mss(fields, context.mtu)
    )]
    pub mss: ByteSize,
    /// Whether connections begin with the three-way handshake and end with FINs; without, both ends
    /// start established.
    #[key(default = true)]
    pub handshake: bool,
    /// How the connections use ECN: not, one reaction per window (RFC 3168), or an exact echo of
    /// marks (RFC 8257).
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
    /// How losses are found with SACK: by time and tail loss probes (RFC 8985), or by three
    /// segments that were SACKed above (RFC 6675); without SACK, duplicate ACKs tell (RFC 6582).
    #[key(default = "rack", by = read::recovery(fields))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Whether the first two duplicate ACKs let new segments go (RFC 3042).
    #[key(default = true)]
    pub limited_transmit: bool,
    /// Proportional rate reduction while losses are repaired (RFC 9937).
    #[key(default = true)]
    pub prr: bool,
    /// When receivers acknowledge.
    #[key(flatten)]
    #[serde(flatten)]
    pub delayed_ack: DelayedAck,
    /// The retransmission time-out before the first round-trip time sample (RFC 6298).
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "1s")]
    pub initial_rto: Duration,
    /// The least that a retransmission time-out adds to the smoothed round-trip time, as in Linux.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "200ms")]
    pub min_rto: Duration,
    /// The largest retransmission time-out.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "120s")]
    pub max_rto: Duration,
    /// What segments are paced by: the rate that the congestion control asks for, if it does; or
    /// else also 2 windows per round trip in slow start and 1.2 later, as Linux does with its fq
    /// queue.
    #[key(default = "controller")]
    pub pacing: Pacing,
    /// The most segments that are handed to the link at once. Linux sends bursts of up to 64 KB; 1
    /// keeps flows fair in marked queues.
    #[key(accepts = Accepts::Count(1, 44), default = 1)]
    pub tso_segments: u32,
    /// What the application can hand over ahead of acknowledgments: Linux's largest,
    /// `net.ipv4.tcp_wmem`.
    #[key(accepts = Accepts::Limit(ByteSize::from_bytes(2048)), default = "4MiB")]
    #[serde(serialize_with = "limit", deserialize_with = "read_limit")]
    pub send_buffer: Option<ByteSize>,
    /// What the receiver holds, and so the largest window: Linux's largest, `net.ipv4.tcp_rmem`.
    #[key(accepts = Accepts::Limit(ByteSize::from_bytes(2048)), default = "6MiB")]
    #[serde(serialize_with = "limit", deserialize_with = "read_limit")]
    pub receive_buffer: Option<ByteSize>,
    /// Whether the window shrinks while the connection is idle (RFC 2861).
    #[key(default = true)]
    pub idle_restart: bool,
    /// Nagle's algorithm: a small segment waits while data is under way. Off, as programs that make
    /// requests set it (TCP_NODELAY).
    #[key(default = false)]
    pub nagle: bool,
    /// Flows wait while their host has about a millisecond to send, as Linux's do (TCP small
    /// queues); without, a flow whose own link is the bottleneck fills its host's queue.
    #[key(default = true)]
    pub small_queues: bool,
}

/// When receivers acknowledge (RFC 9293, section 3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Keys)]
pub struct DelayedAck {
    /// The receiver acknowledges after this many segments; 1 turns delayed ACKs off.
    #[key(accepts = Accepts::Count(1, 1000), default = 2)]
    pub ack_every: u32,
    /// How long an ACK waits at most for the next segment.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "40ms")]
    pub delayed_ack_timeout: Duration,
    /// So many segments at a connection's start are acknowledged at once.
    #[key(accepts = Accepts::Count(0, 1000), default = 16)]
    pub quick_ack_segments: u32,
}

/// How TCP uses ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum TcpEcn {
    /// Not at all: packets are Not-ECT.
    Off,
    /// RFC 3168: one reaction per window, echoed until it is confirmed.
    Rfc3168,
    /// RFC 8257: the receiver echoes each mark.
    Dctcp,
}

/// How TCP finds losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By time, with tail loss probes: RACK-TLP (RFC 8985).
    Rack,
    /// By three duplicates or their like in the scoreboard (RFC 6675).
    Rfc6675,
}

/// Whether TCP spreads its segments over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// At the rate that the congestion control asks for, if it asks for one.
    Controller,
    /// At the rate that the congestion control asks for, and if it asks for none at 2 windows per
    /// round trip in slow start and at 1.2 later, as Linux does with its fq queue.
    Window,
}

/// How UDP datagrams are sent.
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

/// What the options of a connection depend on.
#[derive(Clone, Copy)]
pub(crate) struct OptionContext<'g> {
    /// The group's congestion control.
    congestion: &'g AlgorithmSpec,
    /// The smallest of all links.
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

impl TcpOptions {
    /// By how many bits the window field must be shifted to tell the whole receive buffer, at most
    /// 14 (RFC 7323, section 2.3).
    pub fn window_scale(&self) -> u8 {
        const MOST: u8 = 14;
        let buffer = self.receive_buffer.map_or(u64::MAX, ByteSize::bytes);
        let fits = |scale: &u8| buffer >> scale <= u64::from(u16::MAX);
        (0..MOST).find(fits).unwrap_or(MOST)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, Setting, Transport};

    fn window_scale(buffer: &str) -> u8 {
        let text = "title = \"t\"\nsource = \"s\"\nduration = \"1s\"\n\
                    [hosts.a]\n[hosts.b]\n[[links]]\nfrom = \"a\"\nto = \"b\"\n\
                    rate = \"1Gbps\"\ndelay = \"1us\"\n\
                    [groups.g]\nfrom = \"a\"\nto = \"b\"\nworkload = \"bulk\"\n";
        let setting = Setting {
            path: "groups.g.tcp.receive_buffer".to_owned(),
            value: buffer.to_owned(),
        };
        let loaded = Scenario::parse("test.toml", text, &[setting]).unwrap();
        match &loaded.scenario.groups[0].transport {
            Transport::Tcp { options, .. } => options.window_scale(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_window_scale_is_the_smallest_that_tells_the_buffer() {
        assert_eq!(window_scale("65535B"), 0);
        assert_eq!(window_scale("65536B"), 1);
        assert_eq!(window_scale("6MiB"), 7);
        assert_eq!(window_scale("1TB"), 14);
        assert_eq!(window_scale("unlimited"), 14);
    }
}
