//! DCUDP: its options, and the tables `[groups.NAME.dcudp]` and `[groups.NAME.dcudp.quit]`.

use serde::{Deserialize, Serialize};
use weir_congestion::{AlgorithmSpec, Value as Setting};
use weir_scenario_derive::{Keys, Word};
use weir_units::{ByteSize, Duration, Rate};

use super::{OptionContext, UDP_HEADERS};
use crate::document::{Reported, Value};
use crate::schema::{Accepts, Fields};

/// Options of both ends of a DCUDP connection. `docs/dcudp.md` describes each option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[keys(
    title = "[groups.NAME.dcudp]",
    doc = "How both ends of the group's DCUDP connections are set up: see docs/dcudp.md.",
    context = OptionContext<'_>
)]
pub struct DcudpOptions {
    /// Whether senders have the paper's UDP Mode, for networks that mark. Without it they are always in
    /// Congestion Mode: the congestion control, by default CUBIC, finds the rate, and losses reduce it.
    #[key(default = true)]
    pub udp_mode: bool,
    /// The sending rate of UDP Mode, in UDP payload; it is also the maximum in Congestion Mode.
    #[key(absent = "the rate of the link that the sender leaves by")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The largest UDP payload, including DCUDP's header of 16 bytes.
    #[key(
        accepts = Accepts::Size(
            ByteSize::from_bytes(SMALLEST_PACKET),
            ByteSize::from_bytes(65_507),
        ),
        absent = "the smallest MTU of all links less 28B of headers",
        by = read_packet_size(fields, context.mtu)
    )]
    pub packet_size: ByteSize,
    /// The capacity of the receive buffer, in packets.
    #[key(accepts = Accepts::Count(16, 65_536), default = 8192)]
    pub receive_window: u32,
    /// The size of the send buffer, unacknowledged data included.
    #[key(
        accepts = Accepts::Size(ByteSize::from_bytes(1), ByteSize::from_mib(1024)),
        default = "8MiB"
    )]
    pub send_buffer: ByteSize,
    /// When ACKs carry the ECN echo: from a CE mark until CWR arrives (RFC 3168), or if a CE mark
    /// arrived since the last ACK.
    #[key(default = "until-reduced")]
    pub echo: DcudpEcho,
    /// What the congestion control receives about marks: the ECN echo, or the number of marked bytes.
    #[key(
        absent = "`\"echo\"` with the congestion control `dcudp`, else `\"counts\"`",
        or = DcudpFeedback::of(context.congestion)
    )]
    pub feedback: DcudpFeedback,
    /// The interval of ACKs in Congestion Mode: a round-trip time, which queues lengthen, or the
    /// round-trip time of empty queues. A sender without UDP Mode receives an ACK for every second packet.
    #[key(
        absent = "`\"rtt\"` with the congestion control `dcudp`, else `\"idle-rtt\"`",
        or = DcudpAckInterval::of(context.congestion)
    )]
    pub ack_interval: DcudpAckInterval,
    /// Whether losses that go on for two round trips start Congestion Mode like a CE mark, for networks
    /// that do not mark.
    #[key(default = false)]
    pub congestion_on_loss: bool,
    /// The round-trip time until one is measured.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "100us")]
    pub initial_rtt: Duration,
    /// The minimum interval between ACKs.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "10us")]
    pub min_ack_interval: Duration,
    /// A sender that waits for an ACK requests one after this time or twice the round-trip time,
    /// whichever is longer; the time doubles with each unanswered request.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "1ms")]
    pub request_interval: Duration,
    /// How long packets may wait so that several leave at once. Marking thresholds below such a batch need a
    /// shorter time.
    #[key(accepts = Accepts::SPAN, absent = "100us live, and 0s where hosts are simulated")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_quantum: Option<Duration>,
    /// When Congestion Mode ends.
    #[key(
        accepts = Accepts::TABLE,
        absent = "the paper's values",
        by = fields.table("quit", |at| DcudpQuit::read(at, ()))
    )]
    pub quit: DcudpQuit,
}

/// When ACKs carry the ECN echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpEcho {
    /// From a CE mark until CWR arrives (RFC 3168, section 6.1.3).
    UntilReduced,
    /// If a CE mark arrived since the last ACK.
    SinceLastAck,
}

/// The feedback about marks that a DCUDP sender passes to its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpFeedback {
    /// The ECE bit.
    Echo,
    /// The number of marked bytes.
    Counts,
}

/// The interval of ACKs in Congestion Mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpAckInterval {
    /// A round-trip time, as in the paper.
    Rtt,
    /// The round-trip time of empty queues.
    IdleRtt,
}

/// When Congestion Mode ends (Ye et al., section IV-C).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[keys(
    title = "[groups.NAME.dcudp.quit]",
    doc = "When a DCUDP receiver ends Congestion Mode (Ye et al., section IV-C)."
)]
pub struct DcudpQuit {
    /// K: the number of round-trip times and of marked fractions that are kept; each fraction
    /// covers K packets.
    #[key(accepts = Accepts::Count(2, 1024), default = 8)]
    pub window: u16,
    /// Θ_ecn: the threshold of Condition 1 for the share of marked fractions that did not rise.
    #[key(accepts = Accepts::Number(0.0, 1.0), absent = "0.5", or = 0.5)]
    pub ecn_threshold: f64,
    /// Θ_RTT: the same threshold for round-trip times.
    #[key(accepts = Accepts::Number(0.0, 1.0), absent = "0.2", or = 0.2)]
    pub rtt_threshold: f64,
    /// Β: the interval of ACKs in idle round-trip times once Condition 1 holds.
    #[key(accepts = Accepts::Number(1.0, 1000.0), absent = "2", or = 2.0)]
    pub beta: f64,
    /// Whether Condition 1 requires the trends to be above their thresholds, or below as printed.
    #[key(default = "above")]
    pub condition: DcudpCondition,
    /// Which round-trip times the trend compares.
    #[key(default = "smoothed")]
    pub rtt: DcudpRtt,
    /// A round-trip time that exceeds the previous one by up to this counts as no larger.
    #[key(accepts = Accepts::SPAN, default = "1us")]
    pub rtt_tolerance: Duration,
}

/// How Condition 1 compares the trends with the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpCondition {
    /// They must be above.
    Above,
    /// They must be below, as printed.
    Below,
}

/// Which round-trip times the trend compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum DcudpRtt {
    /// The smoothed ones.
    Smoothed,
    /// The samples.
    Current,
}

/// Header, packet number and tag, and a minimal payload.
const SMALLEST_PACKET: u64 = 128;

impl DcudpFeedback {
    fn of(congestion: &AlgorithmSpec) -> Self {
        match congestion.name() {
            "dcudp" => Self::Echo,
            _ => Self::Counts,
        }
    }
}

impl DcudpAckInterval {
    fn of(congestion: &AlgorithmSpec) -> Self {
        match congestion.name() {
            "dcudp" => Self::Rtt,
            _ => Self::IdleRtt,
        }
    }
}

/// Returns DCUDP's default congestion control: the paper's rate control, with the rate of the
/// path's slowest link as capacity; CUBIC for a sender without UDP Mode.
pub(super) fn default_congestion(group: &Fields<'_>, narrowest: Rate) -> AlgorithmSpec {
    if lacks_udp_mode(group) {
        return AlgorithmSpec::default();
    }
    let paper = AlgorithmSpec::new("dcudp").unwrap_or_default();
    let capacity = Setting::Rate(narrowest);
    paper.clone().with("capacity", capacity).unwrap_or(paper)
}

/// Returns whether a group's table of DCUDP options says `udp_mode = false`.
fn lacks_udp_mode(group: &Fields<'_>) -> bool {
    let options = group.at("dcudp");
    let options = options.as_ref().and_then(|at| at.node.as_table());
    let written = options.and_then(|table| table.get("udp_mode"));
    written.is_some_and(|node| matches!(node.value, Value::Boolean(false)))
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
        Some(size) if size > largest => Err(fields.error_position("packet_size").conflict(
            format!("UDP payloads of {size} exceed the smallest MTU less 28B of headers"),
            format!("set `packet_size` up to {largest}, or a larger `mtu`"),
        )),
        Some(size) => Ok(size),
    }
}
