//! `[sed]`: a controller that gives flows the windows that they need to meet their deadlines.

use serde::Serialize;
use weir_units::{Duration, Rate};

use crate::Level;
use crate::document::{Fields, Reported};
use crate::schema::{Accepts, Key, Literal, Section};

/// SED and RSED: agents in all switches, and one controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SedOptions {
    /// K: from this length on a queue is congested.
    pub threshold: Level,
    /// Below this length it no longer is; without, half of K.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Level>,
    /// The round-trip time of the empty network.
    pub rtt: Duration,
    /// What RTT_avg is in equation 3.
    pub total_rtt: SedReading,
    /// What RTT_avg is in equation 4.
    pub flow_rtt: SedReading,
    /// How windows are chosen.
    pub allocation: SedAllocation,
    /// What a flow without deadline has at least, in segments.
    pub base: u32,
    /// What becomes of flows that are late.
    pub late: SedLate,
    /// Whether senders of dropped packets are made to send them again at once: RSED.
    pub retransmit: bool,
    /// For how long windows hold that the controller is silent about.
    pub lease: Duration,
    /// How often the controller hears how far flows are while a queue is congested.
    pub counters_interval: Duration,
    /// How long a message takes between a switch and the controller, beside its length.
    pub latency: Duration,
    /// The rate of the channel between a switch and the controller, each way.
    pub rate: Rate,
}

/// Which round-trip time is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SedReading {
    /// That of the empty network.
    Base,
    /// That of a network whose queue is at the threshold.
    Loaded,
}

/// How windows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SedAllocation {
    /// The paper's Algorithm 2.
    Paper,
    /// Admission and turns.
    Planned,
}

/// What becomes of flows that are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SedLate {
    /// They share what is left.
    Spare,
    /// They are stopped.
    Stop,
}

pub(crate) static SED: Section = Section {
    title: "[sed]",
    doc: "SED and RSED (docs/sed.md): an agent in each switch, and a controller that gives the flows of \
          congested ports the windows with which they meet their `deadline`. It acts upon TCP with a \
          handshake.",
    keys: &[
        Key::required(
            "rtt",
            Accepts::POSITIVE_SPAN,
            "the round-trip time of the empty network",
        ),
        Key::default(
            "threshold",
            Accepts::Level,
            Literal::Text("30 packets"),
            "K: from this length on a port's queue is congested; packets are counted at 1500 B",
        ),
        Key::optional(
            "recovery",
            Accepts::Level,
            "half of `threshold`",
            "below this length a port's queue is no longer congested; the paper has K here too",
        ),
        Key::default(
            "total_rtt",
            Accepts::Word(&["base", "loaded"]),
            Literal::Text("base"),
            "what RTT_avg is in equation 3: `rtt`, or `rtt` + K/C",
        ),
        Key::default(
            "flow_rtt",
            Accepts::Word(&["base", "loaded"]),
            Literal::Text("loaded"),
            "what RTT_avg is in equation 4",
        ),
        Key::default(
            "allocation",
            Accepts::Word(&["paper", "planned"]),
            Literal::Text("paper"),
            "how windows are chosen: by the paper's Algorithm 2, or by admission and turns",
        ),
        Key::default(
            "base",
            Accepts::Count(0, 1000),
            Literal::Integer(1),
            "the least window of a flow without deadline, in segments",
        ),
        Key::default(
            "late",
            Accepts::Word(&["spare", "stop"]),
            Literal::Text("spare"),
            "whether flows that are late share what is left, or are stopped",
        ),
        Key::default(
            "retransmit",
            Accepts::Boolean,
            Literal::Boolean(false),
            "RSED: whether a dropped packet is reported, and its sender made to send it again",
        ),
        Key::default(
            "lease",
            Accepts::POSITIVE_SPAN,
            Literal::Text("2s"),
            "for how long windows hold that the controller is silent about",
        ),
        Key::default(
            "counters_interval",
            Accepts::POSITIVE_SPAN,
            Literal::Text("1ms"),
            "how often the controller hears how far flows are while a queue is congested",
        ),
        Key::default(
            "latency",
            Accepts::SPAN,
            Literal::Text("100us"),
            "how long a message takes between a switch and the controller, beside its length",
        ),
        Key::default(
            "rate",
            Accepts::RATE,
            Literal::Text("1Gbps"),
            "the rate of the channel between a switch and the controller, each way",
        ),
    ],
};

impl SedOptions {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let (threshold, rtt) = (fields.get("threshold"), fields.get("rtt"));
        let recovery = fields.optional("recovery");
        let (total, flow) = (reading(fields, "total_rtt"), reading(fields, "flow_rtt"));
        let (allocation, late) = (
            fields.get::<String>("allocation"),
            fields.get::<String>("late"),
        );
        let (base, retransmit) = (fields.get("base"), fields.get("retransmit"));
        let (lease, interval) = (fields.get("lease"), fields.get("counters_interval"));
        let (latency, rate) = (fields.get("latency"), fields.get("rate"));
        let threshold: Level = threshold?;
        if threshold.is_zero() {
            return Err(fields.blame("threshold").conflict(
                "an empty queue would be congested",
                "set a `threshold` of one packet or more",
            ));
        }
        let (lease, latency): (Duration, Duration) = (lease?, latency?);
        if lease / 3 <= latency {
            return Err(fields.blame("lease").conflict(
                format!("a lease of {lease} runs out while it is renewed, which takes {latency}"),
                "set a `lease` of more than three times the `latency`",
            ));
        }
        Ok(Self {
            threshold,
            recovery: recovery?,
            rtt: rtt?,
            total_rtt: total?,
            flow_rtt: flow?,
            allocation: match allocation?.as_str() {
                "planned" => SedAllocation::Planned,
                _ => SedAllocation::Paper,
            },
            base: base?,
            late: match late?.as_str() {
                "stop" => SedLate::Stop,
                _ => SedLate::Spare,
            },
            retransmit: retransmit?,
            lease,
            counters_interval: interval?,
            latency,
            rate: rate?,
        })
    }
}

fn reading(fields: &Fields<'_>, key: &str) -> Result<SedReading, Reported> {
    Ok(match fields.get::<String>(key)?.as_str() {
        "loaded" => SedReading::Loaded,
        _ => SedReading::Base,
    })
}
