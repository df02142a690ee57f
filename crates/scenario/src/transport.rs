//! What carries a group's data: TCP with its options, or UDP.

use serde::Serialize;
use weir_congestion::AlgorithmSpec;
use weir_units::{ByteSize, Duration};

use crate::document::{At, Fields, Reported};
use crate::schema::{Accepts, Key, Literal, Section};

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
    /// UDP datagrams, without congestion control.
    Udp {
        /// The ECN codepoint of the datagrams.
        ecn: UdpEcn,
    },
}

/// How both ends of a TCP connection are set up. Defaults are Linux's, except where the key
/// reference says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// How losses are found.
    pub recovery: Recovery,
    /// Proportional rate reduction in recovery (RFC 6937).
    pub prr: bool,
    /// The largest number of segments without an acknowledgment, and how long one waits at most;
    /// `None` acknowledges every segment.
    #[serde(flatten)]
    pub delayed_ack: DelayedAck,
    /// The retransmission time-out before there is a round-trip time sample (RFC 6298).
    pub initial_rto: Duration,
    /// The smallest retransmission time-out.
    pub min_rto: Duration,
    /// The largest retransmission time-out.
    pub max_rto: Duration,
    /// Whether segments are paced.
    pub pacing: Pacing,
    /// The most segments that are handed to the link at once, as segmentation offload does.
    pub tso_segments: u32,
    /// What an application can hand over ahead of acknowledgments; `None` for any amount.
    #[serde(serialize_with = "limit")]
    pub send_buffer: Option<ByteSize>,
    /// What the receiver holds for its application, and so the largest window; `None` for any
    /// amount that window scaling can express.
    #[serde(serialize_with = "limit")]
    pub receive_buffer: Option<ByteSize>,
    /// Whether the window shrinks after an idle time of a retransmission time-out (RFC 2861).
    pub idle_restart: bool,
    /// Nagle's algorithm (RFC 9293, section 3.7.4).
    pub nagle: bool,
}

/// When receivers acknowledge (RFC 9293, section 3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DelayedAck {
    /// After this many segments; 1 acknowledges each at once.
    pub ack_every: u32,
    /// After this long in any case.
    pub delayed_ack_timeout: Duration,
    /// Whether a connection's first segments are acknowledged at once, as Linux does.
    pub quick_ack: bool,
}

/// How TCP uses ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By time, with tail loss probes: RACK-TLP (RFC 8985).
    Rack,
    /// By three duplicates or their like in the scoreboard (RFC 6675).
    Rfc6675,
}

/// Whether TCP spreads its segments over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// At the rate that the congestion control asks for, if it asks for one.
    Controller,
    /// As Linux does with the fq queue: at 2 windows per round trip in slow start, at 1.2 later,
    /// unless the congestion control asks for another rate.
    Linux,
}

/// The ECN codepoint of UDP datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

pub(crate) static TCP: Section = Section {
    title: "[groups.NAME.tcp]",
    doc: "How both ends of the group's TCP connections are set up. The initial and the minimum window \
          are parameters of the congestion control.",
    keys: &[
        Key::optional(
            "mss",
            Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_495)),
            "the smallest MTU of all links less 40B of headers",
            "the maximum segment size, as the MSS option counts it: time stamps and other options \
             take their bytes from it",
        ),
        Key::default(
            "handshake",
            Accepts::Boolean,
            Literal::Boolean(true),
            "whether connections begin with the three-way handshake and end with FINs; without, \
             both ends start established",
        ),
        Key::optional(
            "ecn",
            Accepts::Word(&["off", "rfc3168", "dctcp"]),
            "`\"dctcp\"` with the congestion controls `dctcp` and `d2tcp`, else `\"off\"`",
            "how the connections use ECN: not, one reaction per window (RFC 3168), or an exact echo \
             of marks (RFC 8257)",
        ),
        Key::default(
            "sack",
            Accepts::Boolean,
            Literal::Boolean(true),
            "selective acknowledgments (RFC 2018)",
        ),
        Key::default(
            "timestamps",
            Accepts::Boolean,
            Literal::Boolean(true),
            "the time-stamps option (RFC 7323): 12 bytes in each segment",
        ),
        Key::default(
            "recovery",
            Accepts::Word(&["rack", "rfc6675"]),
            Literal::Text("rack"),
            "how losses are found: by time and tail loss probes (RFC 8985), or by duplicates \
             (RFC 6675)",
        ),
        Key::default(
            "prr",
            Accepts::Boolean,
            Literal::Boolean(true),
            "proportional rate reduction while losses are repaired (RFC 6937)",
        ),
        Key::default(
            "ack_every",
            Accepts::Count(1, 1000),
            Literal::Integer(2),
            "the receiver acknowledges after this many segments; 1 turns delayed ACKs off",
        ),
        Key::default(
            "delayed_ack_timeout",
            Accepts::POSITIVE_SPAN,
            Literal::Text("40ms"),
            "how long an ACK waits at most for the next segment",
        ),
        Key::default(
            "quick_ack",
            Accepts::Boolean,
            Literal::Boolean(true),
            "whether a connection's first segments are acknowledged at once",
        ),
        Key::default(
            "initial_rto",
            Accepts::POSITIVE_SPAN,
            Literal::Text("1s"),
            "the retransmission time-out before the first round-trip time sample (RFC 6298)",
        ),
        Key::default(
            "min_rto",
            Accepts::POSITIVE_SPAN,
            Literal::Text("200ms"),
            "the smallest retransmission time-out",
        ),
        Key::default(
            "max_rto",
            Accepts::POSITIVE_SPAN,
            Literal::Text("120s"),
            "the largest retransmission time-out",
        ),
        Key::default(
            "pacing",
            Accepts::Word(&["controller", "linux"]),
            Literal::Text("controller"),
            "whether segments are paced: as the congestion control asks, or also for those that do \
             not ask, as Linux does with the fq queue",
        ),
        Key::default(
            "tso_segments",
            Accepts::Count(1, 44),
            Literal::Integer(1),
            "the most segments that are handed to the link at once. Linux sends bursts of up to \
             64 KB; 1 keeps flows fair in marked queues",
        ),
        Key::default(
            "send_buffer",
            Accepts::Limit(ByteSize::from_bytes(2048)),
            Literal::Text("4MiB"),
            "what the application can hand over ahead of acknowledgments: Linux's largest, \
             `net.ipv4.tcp_wmem`",
        ),
        Key::default(
            "receive_buffer",
            Accepts::Limit(ByteSize::from_bytes(2048)),
            Literal::Text("6MiB"),
            "what the receiver holds, and so the largest window: Linux's largest, \
             `net.ipv4.tcp_rmem`",
        ),
        Key::default(
            "idle_restart",
            Accepts::Boolean,
            Literal::Boolean(true),
            "whether the window shrinks while the connection is idle (RFC 2861)",
        ),
        Key::default(
            "nagle",
            Accepts::Boolean,
            Literal::Boolean(true),
            "Nagle's algorithm: no second small segment while one is under way",
        ),
    ],
};

pub(crate) static UDP: Section = Section {
    title: "[groups.NAME.udp]",
    doc: "How the group's datagrams are sent.",
    keys: &[Key::default(
        "ecn",
        Accepts::Word(&["not-ect", "ect0", "ect1"]),
        Literal::Text("not-ect"),
        "the ECN codepoint of the datagrams",
    )],
};

impl TcpOptions {
    /// Reads `[groups.NAME.tcp]`, for connections under `congestion` over links with this MTU.
    pub(crate) fn read(
        at: At<'_>,
        congestion: &AlgorithmSpec,
        mtu: ByteSize,
    ) -> Result<Self, Reported> {
        let fields = Fields::open(at, &TCP)?;
        // Evaluated before any `?`, so that all mistakes are reported together.
        let (mss, ecn) = (read_mss(&fields, mtu), read_ecn(&fields, congestion));
        let (handshake, sack) = (fields.get("handshake"), fields.get("sack"));
        let (timestamps, prr) = (fields.get("timestamps"), fields.get("prr"));
        let (recovery, pacing) = (
            fields.get::<String>("recovery"),
            fields.get::<String>("pacing"),
        );
        let delayed_ack = DelayedAck::read(&fields);
        let (initial, min, max) = (
            fields.get("initial_rto"),
            fields.get("min_rto"),
            fields.get("max_rto"),
        );
        let tso_segments = fields.get("tso_segments");
        let (send, receive) = (fields.get("send_buffer"), fields.get("receive_buffer"));
        let (idle_restart, nagle) = (fields.get("idle_restart"), fields.get("nagle"));
        let options = Self {
            mss: mss?,
            handshake: handshake?,
            ecn: ecn?,
            sack: sack?,
            timestamps: timestamps?,
            recovery: match recovery?.as_str() {
                "rfc6675" => Recovery::Rfc6675,
                _ => Recovery::Rack,
            },
            prr: prr?,
            delayed_ack: delayed_ack?,
            initial_rto: initial?,
            min_rto: min?,
            max_rto: max?,
            pacing: match pacing?.as_str() {
                "linux" => Pacing::Linux,
                _ => Pacing::Controller,
            },
            tso_segments: tso_segments?,
            send_buffer: send?,
            receive_buffer: receive?,
            idle_restart: idle_restart?,
            nagle: nagle?,
        };
        options.check(&fields)?;
        Ok(options)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if self.min_rto > self.max_rto {
            return Err(fields.blame("min_rto").conflict(
                format!("{} is above `max_rto`, {}", self.min_rto, self.max_rto),
                "`min_rto` must be at most `max_rto`",
            ));
        }
        if self.recovery == Recovery::Rack && !self.sack {
            return Err(fields.blame("sack").conflict(
                "RACK finds losses by selective acknowledgments",
                "set `sack = true`, or `recovery = \"rfc6675\"`",
            ));
        }
        for (name, buffer) in [
            ("send_buffer", self.send_buffer),
            ("receive_buffer", self.receive_buffer),
        ] {
            if buffer.is_some_and(|buffer| buffer < self.mss) {
                return Err(fields.blame(name).conflict(
                    format!("the buffer is smaller than a segment of {}", self.mss),
                    format!("set a larger `{name}`, or a smaller `mss`"),
                ));
            }
        }
        Ok(())
    }
}

fn read_mss(fields: &Fields<'_>, mtu: ByteSize) -> Result<ByteSize, Reported> {
    let largest = mtu - TCP_HEADERS;
    match fields.optional::<ByteSize>("mss")? {
        None => Ok(largest),
        Some(mss) if mss > largest => Err(fields.blame("mss").conflict(
            format!("segments of {mss} and 40B of headers exceed the smallest MTU, {mtu}"),
            format!("set `mss` up to {largest}, or a larger `mtu`"),
        )),
        Some(mss) => Ok(mss),
    }
}

fn read_ecn(fields: &Fields<'_>, congestion: &AlgorithmSpec) -> Result<TcpEcn, Reported> {
    let written: Option<String> = fields.optional("ecn")?;
    let wants_exact_echo = ["dctcp", "d2tcp"].contains(&congestion.name());
    Ok(match written.as_deref() {
        Some("off") => TcpEcn::Off,
        Some("rfc3168") => TcpEcn::Rfc3168,
        None if !wants_exact_echo => TcpEcn::Off,
        _ => TcpEcn::Dctcp,
    })
}

impl DelayedAck {
    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let (every, timeout) = (fields.get("ack_every"), fields.get("delayed_ack_timeout"));
        let quick_ack = fields.get("quick_ack");
        Ok(Self {
            ack_every: every?,
            delayed_ack_timeout: timeout?,
            quick_ack: quick_ack?,
        })
    }
}

impl UdpEcn {
    /// Reads `[groups.NAME.udp]`.
    pub(crate) fn read(at: At<'_>) -> Result<Self, Reported> {
        let ecn: String = Fields::open(at, &UDP)?.get("ecn")?;
        Ok(match ecn.as_str() {
            "ect0" => Self::Ect0,
            "ect1" => Self::Ect1,
            _ => Self::NotEct,
        })
    }
}
