//! What carries a group's data: TCP with its options, TLS over it, DCQUIC, DCUDP, or UDP.

mod dcudp;
mod keys;
mod quic;
mod read;
mod tls;

use serde::{Deserialize, Serialize};
use weir_congestion::AlgorithmSpec;
use weir_units::{ByteSize, Duration};

pub(crate) use dcudp::{DCUDP, QUIT};
pub use dcudp::{
    DcudpAckInterval, DcudpCondition, DcudpEcho, DcudpFeedback, DcudpOptions, DcudpQuit, DcudpRtt,
};
pub(crate) use keys::{TCP, UDP};
pub(crate) use quic::{MIGRATION, QUIC};
pub use quic::{MigrationDetector, MigrationOptions, QuicOptions, QuicPacketSize};
pub(crate) use tls::TLS;
pub use tls::TlsOptions;

/// IP and TCP headers without options: what the MSS leaves of the MTU (RFC 6691).
pub const TCP_HEADERS: ByteSize = ByteSize::from_bytes(40);

/// IP and UDP headers.
pub const UDP_HEADERS: ByteSize = ByteSize::from_bytes(28);

/// What carries data.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// How it is set up.
        options: TcpOptions,
        /// Its congestion control.
        congestion: AlgorithmSpec,
    },
    /// TLS 1.3 over TCP.
    Tls {
        /// How TCP is set up.
        options: TcpOptions,
        /// TCP's congestion control.
        congestion: AlgorithmSpec,
        /// How TLS is set up.
        tls: TlsOptions,
    },
    /// DCQUIC.
    Quic {
        /// How it is set up.
        options: QuicOptions,
        /// Its congestion control.
        congestion: AlgorithmSpec,
    },
    /// DCUDP.
    Dcudp {
        /// How it is set up.
        options: DcudpOptions,
        /// Its congestion control, in Congestion Mode.
        congestion: AlgorithmSpec,
    },
    /// UDP datagrams, without congestion control.
    Udp {
        /// The ECN codepoint of the datagrams.
        ecn: UdpEcn,
    },
}

/// How both ends of a TCP connection are set up. Defaults are Linux's, except where the key
/// reference says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpOptions {
    /// The largest segment, as the MSS option counts it: TCP options, such as time stamps, take
    /// their bytes from it.
    pub mss: ByteSize,
    /// Whether connections begin with the three-way handshake; without, both ends start
    /// established.
    pub handshake: bool,
    /// How connections use ECN.
    pub ecn: TcpEcn,
    /// Selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// The time-stamps option (RFC 7323).
    pub timestamps: bool,
    /// How losses are found; `None` without SACK, where duplicate ACKs tell (NewReno, RFC 6582).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Whether the first two duplicate ACKs let new segments go (RFC 3042).
    pub limited_transmit: bool,
    /// Proportional rate reduction in recovery (RFC 9937).
    pub prr: bool,
    /// When receivers acknowledge.
    #[serde(flatten)]
    pub delayed_ack: DelayedAck,
    /// The retransmission time-out before there is a round-trip time sample (RFC 6298).
    pub initial_rto: Duration,
    /// The least that a retransmission time-out adds to the smoothed round-trip time.
    pub min_rto: Duration,
    /// The largest retransmission time-out.
    pub max_rto: Duration,
    /// Whether segments are paced.
    pub pacing: Pacing,
    /// The most segments that are handed to the link at once, as segmentation offload does.
    pub tso_segments: u32,
    /// What an application can hand over ahead of acknowledgments; `None` for any amount.
    #[serde(serialize_with = "limit", deserialize_with = "read_limit")]
    pub send_buffer: Option<ByteSize>,
    /// What the receiver holds for its application, and so the largest window; `None` for any
    /// amount that window scaling can express.
    #[serde(serialize_with = "limit", deserialize_with = "read_limit")]
    pub receive_buffer: Option<ByteSize>,
    /// Whether the window shrinks after an idle time of a retransmission time-out (RFC 2861).
    pub idle_restart: bool,
    /// Nagle's algorithm (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Whether flows wait while their host has about a millisecond to send.
    pub small_queues: bool,
}

/// When receivers acknowledge (RFC 9293, section 3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayedAck {
    /// After this many segments; 1 acknowledges each at once.
    pub ack_every: u32,
    /// After this long in any case.
    pub delayed_ack_timeout: Duration,
    /// So many segments at a connection's start are acknowledged at once.
    pub quick_ack_segments: u32,
}

/// How TCP uses ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By time, with tail loss probes: RACK-TLP (RFC 8985).
    Rack,
    /// By three duplicates or their like in the scoreboard (RFC 6675).
    Rfc6675,
}

/// Whether TCP spreads its segments over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// At the rate that the congestion control asks for, if it asks for one.
    Controller,
    /// At the rate that the congestion control asks for, and if it asks for none at 2 windows per
    /// round trip in slow start and at 1.2 later, as Linux does with its fq queue.
    Window,
}

/// The ECN codepoint of UDP datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        None => to.serialize_str(crate::queue::UNLIMITED),
    }
}

fn read_limit<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<ByteSize>, D::Error> {
    let text = String::deserialize(from)?;
    match text.as_str() {
        crate::queue::UNLIMITED => Ok(None),
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
