//! DCUDP: its options, and the tables `[groups.NAME.dcudp]` and `[groups.NAME.dcudp.quit]`.

use serde::{Deserialize, Serialize};
use weir_congestion::{AlgorithmSpec, Value as Setting};
use weir_units::{ByteSize, Duration, Rate};

use super::UDP_HEADERS;
use crate::document::{At, Fields, Node, Reported, Table, Value};
use crate::schema::{Accepts, Key, Literal, Section};

/// How both ends of a DCUDP connection are set up. `docs/dcudp.md` says what each option decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DcudpOptions {
    /// The rate of UDP Mode, in UDP payload, which Congestion Mode does not exceed either; `None` for
    /// the rate of the link that the sender leaves by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The largest UDP payload.
    pub packet_size: ByteSize,
    /// How many packets the receive buffer holds.
    pub receive_window: u32,
    /// Bytes that are kept for sending, unacknowledged ones included.
    pub send_buffer: ByteSize,
    /// When ACKs carry the ECN echo.
    pub echo: DcudpEcho,
    /// What the congestion control is told of marks.
    pub feedback: DcudpFeedback,
    /// How far apart ACKs are.
    pub ack_interval: DcudpAckInterval,
    /// Whether a gap in the data begins Congestion Mode as a CE mark does.
    pub congestion_on_loss: bool,
    /// The round-trip time before one is measured.
    pub initial_rtt: Duration,
    /// ACKs are at least this far apart.
    pub min_ack_interval: Duration,
    /// After how long a sender that waits for news asks for them.
    pub request_interval: Duration,
    /// When Congestion Mode ends.
    pub quit: DcudpQuit,
}

/// When ACKs carry the ECN echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpEcho {
    /// From a CE mark until CWR comes (RFC 3168, section 6.1.3).
    UntilReduced,
    /// If a CE mark came since the last ACK.
    SinceLastAck,
}

/// What a DCUDP sender tells its congestion control of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpFeedback {
    /// The ECE bit.
    Echo,
    /// How many bytes were marked.
    Counts,
}

/// How far apart the ACKs of Congestion Mode are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpAckInterval {
    /// A round trip, as the paper has it.
    Rtt,
    /// A round trip through empty queues.
    IdleRtt,
}

/// When Congestion Mode ends (Ye et al., section IV-C).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DcudpQuit {
    /// K, the length of the windows.
    pub window: u16,
    /// θ_ecn.
    pub ecn_threshold: f64,
    /// θ_RTT.
    pub rtt_threshold: f64,
    /// β.
    pub beta: f64,
    /// How Condition 1 compares the trends with the thresholds.
    pub condition: DcudpCondition,
    /// Which round-trip times the trend compares.
    pub rtt: DcudpRtt,
    /// So much more than the round-trip time before still counts as no larger.
    pub rtt_tolerance: Duration,
}

/// How Condition 1 compares the trends with the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpCondition {
    /// They must be above.
    Above,
    /// They must be below, as printed.
    Below,
}

/// Which round-trip times the trend compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpRtt {
    /// The smoothed ones.
    Smoothed,
    /// The samples.
    Current,
}

/// Header, packet number and tag, and some payload.
const SMALLEST_PACKET: u64 = 128;

pub(crate) static DCUDP: Section = Section {
    title: "[groups.NAME.dcudp]",
    doc: "How both ends of the group's DCUDP connections are set up: see docs/dcudp.md.",
    keys: &[
        Key::optional(
            "rate",
            Accepts::RATE,
            "the rate of the link that the sender leaves by",
            "the sending rate of UDP Mode, in UDP payload; Congestion Mode does not exceed it either",
        ),
        Key::optional(
            "packet_size",
            Accepts::Size(
                ByteSize::from_bytes(SMALLEST_PACKET),
                ByteSize::from_bytes(65_507),
            ),
            "the smallest MTU of all links less 28B of headers",
            "the largest UDP payload, DCUDP's header of 16 bytes included",
        ),
        Key::default(
            "receive_window",
            Accepts::Count(16, 65_536),
            Literal::Integer(8192),
            "how many packets the receive buffer holds",
        ),
        Key::default(
            "send_buffer",
            Accepts::Size(ByteSize::from_bytes(1), ByteSize::from_mib(1024)),
            Literal::Text("8MiB"),
            "what is kept for sending, unacknowledged data included",
        ),
        Key::default(
            "echo",
            Accepts::Word(&["until-reduced", "since-last-ack"]),
            Literal::Text("until-reduced"),
            "when ACKs carry the ECN echo: from a CE mark until CWR comes (RFC 3168), or if a CE mark \
             came since the last ACK",
        ),
        Key::optional(
            "feedback",
            Accepts::Word(&["echo", "counts"]),
            "`\"echo\"` with the congestion control `dcudp`, else `\"counts\"`",
            "what the congestion control is told of marks: the ECN echo, or how many bytes were marked",
        ),
        Key::optional(
            "ack_interval",
            Accepts::Word(&["rtt", "idle-rtt"]),
            "`\"rtt\"` with the congestion control `dcudp`, else `\"idle-rtt\"`",
            "how far apart the ACKs of Congestion Mode are: a round trip, which queues lengthen, or a \
             round trip through empty queues",
        ),
        Key::default(
            "congestion_on_loss",
            Accepts::Boolean,
            Literal::Boolean(false),
            "whether a gap in the data begins Congestion Mode as a CE mark does, for networks that do \
             not mark",
        ),
        Key::default(
            "initial_rtt",
            Accepts::POSITIVE_SPAN,
            Literal::Text("100us"),
            "the round-trip time before one is measured",
        ),
        Key::default(
            "min_ack_interval",
            Accepts::POSITIVE_SPAN,
            Literal::Text("10us"),
            "ACKs are at least this far apart",
        ),
        Key::default(
            "request_interval",
            Accepts::POSITIVE_SPAN,
            Literal::Text("1ms"),
            "a sender that waits for news asks for them after this time or twice the round-trip time, \
             whichever is longer; doubled each time in vain",
        ),
        Key::optional(
            "quit",
            Accepts::Other("a table"),
            "the paper's values",
            "when Congestion Mode ends",
        ),
    ],
};

pub(crate) static QUIT: Section = Section {
    title: "[groups.NAME.dcudp.quit]",
    doc: "When a DCUDP receiver takes a congestion to be over (Ye et al., section IV-C).",
    keys: &[
        Key::default(
            "window",
            Accepts::Count(2, 1024),
            Literal::Integer(8),
            "K: so many round-trip times and portions of marked packets are kept, each portion over as \
             many packets",
        ),
        Key::optional(
            "ecn_threshold",
            Accepts::Number(0.0, 1.0),
            "0.5",
            "θ_ecn: with what Condition 1 compares the part of the portions that did not rise",
        ),
        Key::optional(
            "rtt_threshold",
            Accepts::Number(0.0, 1.0),
            "0.2",
            "θ_RTT: the same for round-trip times",
        ),
        Key::optional(
            "beta",
            Accepts::Number(1.0, 1000.0),
            "2",
            "β: ACKs are so many idle round-trip times apart once Condition 1 holds",
        ),
        Key::default(
            "condition",
            Accepts::Word(&["above", "below"]),
            Literal::Text("above"),
            "whether Condition 1 wants the trends above their thresholds, or below, as printed",
        ),
        Key::default(
            "rtt",
            Accepts::Word(&["smoothed", "current"]),
            Literal::Text("smoothed"),
            "which round-trip times the trend compares",
        ),
        Key::default(
            "rtt_tolerance",
            Accepts::SPAN,
            Literal::Text("1us"),
            "a round-trip time so much above the one before still counts as no larger",
        ),
    ],
};

impl DcudpOptions {
    /// Reads `[groups.NAME.dcudp]`, for connections under `congestion` over links with this MTU.
    pub(super) fn read(
        at: At<'_>,
        congestion: &AlgorithmSpec,
        mtu: ByteSize,
    ) -> Result<Self, Reported> {
        let fields = Fields::open(at, &DCUDP)?;
        // Evaluated before any `?`, so that all mistakes are reported together.
        let (rate, packet_size) = (fields.optional("rate"), read_packet_size(&fields, mtu));
        let (window, buffer) = (fields.get("receive_window"), fields.get("send_buffer"));
        let (echo, feedback) = (
            fields.get::<String>("echo"),
            fields.optional::<String>("feedback"),
        );
        let ack_interval = fields.optional::<String>("ack_interval");
        let (on_loss, initial) = (fields.get("congestion_on_loss"), fields.get("initial_rtt"));
        let acks = fields.get("min_ack_interval");
        let (requests, quit) = (fields.get("request_interval"), read_quit(&fields));
        Ok(Self {
            rate: rate?,
            packet_size: packet_size?,
            receive_window: window?,
            send_buffer: buffer?,
            echo: match echo?.as_str() {
                "since-last-ack" => DcudpEcho::SinceLastAck,
                _ => DcudpEcho::UntilReduced,
            },
            feedback: match feedback?.as_deref() {
                Some("echo") => DcudpFeedback::Echo,
                None if congestion.name() == "dcudp" => DcudpFeedback::Echo,
                _ => DcudpFeedback::Counts,
            },
            ack_interval: match ack_interval?.as_deref() {
                Some("rtt") => DcudpAckInterval::Rtt,
                None if congestion.name() == "dcudp" => DcudpAckInterval::Rtt,
                _ => DcudpAckInterval::IdleRtt,
            },
            congestion_on_loss: on_loss?,
            initial_rtt: initial?,
            min_ack_interval: acks?,
            request_interval: requests?,
            quit: quit?,
        })
    }
}

/// What DCUDP runs if nothing is said: the paper's rate control, for a path whose narrowest link has
/// this rate.
pub(super) fn default_congestion(narrowest: Rate) -> AlgorithmSpec {
    let paper = AlgorithmSpec::new("dcudp").unwrap_or_default();
    let capacity = Setting::Rate(narrowest);
    paper.clone().with("capacity", capacity).unwrap_or(paper)
}

fn read_packet_size(fields: &Fields<'_>, mtu: ByteSize) -> Result<ByteSize, Reported> {
    let largest = mtu - UDP_HEADERS;
    if largest.bytes() < SMALLEST_PACKET {
        return Err(fields.at.conflict(
            format!("DCUDP needs UDP payloads of 128 bytes, and the smallest MTU is {mtu}"),
            "set a larger `mtu`, or another transport",
        ));
    }
    match fields.optional::<ByteSize>("packet_size")? {
        None => Ok(largest),
        Some(size) if size > largest => Err(fields.blame("packet_size").conflict(
            format!("UDP payloads of {size} exceed the smallest MTU less 28B of headers"),
            format!("set `packet_size` up to {largest}, or a larger `mtu`"),
        )),
        Some(size) => Ok(size),
    }
}

fn read_quit(fields: &Fields<'_>) -> Result<DcudpQuit, Reported> {
    let empty = Node::new(Value::Table(Table::default()), fields.at.node.place.clone());
    let at = fields.at("quit").unwrap_or_else(|| At {
        node: &empty,
        key: fields.at.child("quit", fields.at.node).key,
        problems: fields.at.problems,
    });
    let fields = Fields::open(at, &QUIT)?;
    let (window, ecn) = (
        fields.get::<u32>("window"),
        fields.optional("ecn_threshold"),
    );
    let (delay, beta) = (fields.optional("rtt_threshold"), fields.optional("beta"));
    let (condition, rtt) = (
        fields.get::<String>("condition"),
        fields.get::<String>("rtt"),
    );
    let tolerance = fields.get("rtt_tolerance");
    Ok(DcudpQuit {
        window: window? as u16,
        ecn_threshold: ecn?.unwrap_or(0.5),
        rtt_threshold: delay?.unwrap_or(0.2),
        beta: beta?.unwrap_or(2.0),
        condition: match condition?.as_str() {
            "below" => DcudpCondition::Below,
            _ => DcudpCondition::Above,
        },
        rtt: match rtt?.as_str() {
            "current" => DcudpRtt::Current,
            _ => DcudpRtt::Smoothed,
        },
        rtt_tolerance: tolerance?,
    })
}
