//! How a controller decides.

use weir_units::{ByteSize, Duration, Rate};

use crate::agent::AgentConfig;
use crate::allocation::{AllocationSettings, LatePolicy, Method, total_window};

/// Which round-trip time an equation of the paper means by RTT_avg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttReading {
    /// That of an empty network.
    Base,
    /// That of a network whose queue is at the threshold: base + K/C.
    Loaded,
}

/// How a controller decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerConfig {
    /// K: from this length on a queue is congested.
    pub threshold: ByteSize,
    /// Below this length it no longer is. The paper has K here too; but Twin is made so that the queue is
    /// K long, and windows that are released whenever it is a little shorter let it overflow.
    pub recovery: ByteSize,
    /// The length of a full packet, by which windows are counted.
    pub packet: ByteSize,
    /// The round-trip time of an empty network.
    pub rtt: Duration,
    /// What equation 3 means by it.
    pub total_reading: RttReading,
    /// What equation 4 means by it.
    pub flow_reading: RttReading,
    /// How windows are chosen.
    pub method: Method,
    /// What a flow without deadline has at least, in segments.
    pub base: u32,
    /// What becomes of flows that are late.
    pub late: LatePolicy,
    /// Whether senders of dropped packets are told to send them again (RSED).
    pub retransmit: bool,
    /// For how long an allocation holds without a sign of life from the controller.
    pub lease: Duration,
    /// How often windows in force are computed anew if nothing but time and what is left of flows has
    /// changed.
    pub refresh: Duration,
    /// After how long without a word of it a flow is forgotten.
    pub idle: Duration,
    /// How many flows there may be at a port; further ones have no window of their own.
    pub flows_per_port: usize,
    /// Whether switches are told what flows demand, so that a controller that takes this one's place
    /// learns it from them.
    pub remember: bool,
}

impl ControllerConfig {
    /// The paper's values (sections 4 and 5.1) for packets of 1500 bytes, with equation 3 read for the
    /// empty and equation 4 for the loaded network: otherwise flows get less than they need.
    pub fn paper() -> Self {
        let packet = ByteSize::from_bytes(1500);
        Self {
            threshold: packet * 30,
            recovery: packet * 15,
            packet,
            rtt: Duration::from_micros(200),
            total_reading: RttReading::Base,
            flow_reading: RttReading::Loaded,
            method: Method::Paper,
            base: 1,
            late: LatePolicy::Spare,
            retransmit: false,
            lease: Duration::from_secs(2),
            refresh: Duration::from_millis(5),
            idle: Duration::from_secs(60),
            flows_per_port: 100_000,
            remember: false,
        }
    }

    /// An agent that works as this controller expects it to, for a switch whose slowest link has this
    /// rate.
    pub fn agent(&self, slowest: Rate) -> AgentConfig {
        let gentle = self.settings(slowest).total / INITIAL_WINDOW;
        AgentConfig {
            threshold: self.threshold,
            recovery: self.recovery,
            packet: self.packet,
            lease: self.lease,
            retransmit: self.retransmit,
            gentle_above: (self.method == Method::Planned).then_some(gentle),
            ..AgentConfig::paper()
        }
    }

    fn rtt(&self, reading: RttReading, rate: Rate) -> Duration {
        match reading {
            RttReading::Base => self.rtt,
            RttReading::Loaded if rate.is_zero() => self.rtt,
            RttReading::Loaded => self.rtt + rate.time_for(self.threshold),
        }
    }

    /// What decides the windows of a port of this rate.
    pub(super) fn settings(&self, rate: Rate) -> AllocationSettings {
        let total_rtt = self.rtt(self.total_reading, rate);
        // What a packet has beside its data, with Ethernet's framing.
        const HEADERS: u64 = 40;
        const FRAMING: u64 = 38;
        let packet = self.packet.bytes() as f64;
        AllocationSettings {
            method: self.method,
            total: total_window(self.threshold, rate, total_rtt, self.packet),
            rtt: self.rtt(self.flow_reading, rate),
            rate: rate.mul_f64((packet - HEADERS as f64) / (packet + FRAMING as f64)),
            base: self.base,
            late: self.late,
        }
    }
}

/// With how many segments a sender begins that nobody holds back (RFC 6928).
pub(super) const INITIAL_WINDOW: u32 = 10;
