//! Settings of a controller.

use weir_units::{ByteSize, Duration, Rate};

use crate::agent::AgentConfig;
use crate::allocation::{AllocationSettings, LatePolicy, Method, total_window};

/// Which RTT an equation of the paper means by RTT_avg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttReading {
    /// The RTT of an empty network.
    Base,
    /// The RTT with a queue at the threshold: base + K/C.
    Loaded,
}

/// Settings of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerConfig {
    /// K: from this length on a queue is congested.
    pub threshold: ByteSize,
    /// Below this length it is no longer congested. The paper has K here too. But Twin is chosen so
    /// that the queue is K long, and releasing windows whenever it is a little shorter lets it
    /// overflow.
    pub recovery: ByteSize,
    /// The length of a full packet, the unit of windows.
    pub packet: ByteSize,
    /// The RTT of an empty network.
    pub rtt: Duration,
    /// The RTT in equation 3.
    pub total_reading: RttReading,
    /// The RTT in equation 4.
    pub flow_reading: RttReading,
    /// How windows are chosen.
    pub method: Method,
    /// The least window of a flow without deadline, in segments ([`Method::Paper`] and
    /// [`Method::Planned`]).
    pub base: u32,
    /// The least share of all flows without deadline together, of what was acknowledged in the last seconds
    /// ([`Method::EarliestDeadline`]), from 0 to 1.
    pub best_effort: f64,
    /// How late flows are treated.
    pub late: LatePolicy,
    /// Whether senders are made to retransmit dropped packets (RSED).
    pub retransmit: bool,
    /// How long windows hold when the controller is silent.
    pub lease: Duration,
    /// How often windows in force are recomputed when only time and the remaining bytes have changed.
    pub refresh: Duration,
    /// A flow without reports for this long is removed.
    pub idle: Duration,
    /// The most flows per port; further ones are not limited.
    pub flows_per_port: usize,
    /// Whether demands are stored at the switches, from which a succeeding controller gets them.
    pub remember: bool,
}

impl ControllerConfig {
    /// Returns the paper's values (sections 4 and 5.1) for packets of 1500 bytes. Equation 3 takes the
    /// RTT of the empty and equation 4 that of the loaded network: otherwise flows get less than they
    /// need.
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
            best_effort: 0.05,
            late: LatePolicy::Spare,
            retransmit: false,
            lease: Duration::from_secs(2),
            refresh: Duration::from_millis(5),
            idle: Duration::from_secs(60),
            flows_per_port: 100_000,
            remember: false,
        }
    }

    /// Returns the default values: as [`Self::paper`], with [`Method::EarliestDeadline`].
    pub fn earliest_deadline() -> Self {
        Self {
            method: Method::EarliestDeadline,
            refresh: Duration::from_millis(2),
            ..Self::paper()
        }
    }

    /// Returns the settings of an agent for this controller, in a switch whose slowest link has this
    /// rate.
    pub fn agent(&self, slowest: Rate) -> AgentConfig {
        let gentle = self.settings(slowest).total / INITIAL_WINDOW;
        AgentConfig {
            threshold: self.threshold,
            recovery: self.recovery,
            packet: self.packet,
            lease: self.lease,
            retransmit: self.retransmit,
            single_segment_above: (self.method == Method::Planned).then_some(gentle),
            never_stops: self.method == Method::EarliestDeadline,
            ..AgentConfig::paper()
        }
    }

    /// Returns how often flows are searched of which nothing is reported.
    pub(super) fn inspection_interval(&self) -> Duration {
        match self.method {
            Method::EarliestDeadline => self.idle.min(INSPECTION),
            Method::Paper | Method::Planned => self.idle,
        }
    }

    fn rtt(&self, reading: RttReading, rate: Rate) -> Duration {
        match reading {
            RttReading::Base => self.rtt,
            RttReading::Loaded if rate.is_zero() => self.rtt,
            RttReading::Loaded => self.rtt + rate.time_for(self.threshold),
        }
    }

    /// Returns the inputs for the windows of a port of this rate.
    pub(super) fn settings(&self, rate: Rate) -> AllocationSettings {
        let total_rtt = self.rtt(self.total_reading, rate);
        // A packet's headers, and Ethernet's framing.
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
            best_effort: self.best_effort,
            most: u32::MAX,
            round: 0,
        }
    }
}

/// How often [`Method::EarliestDeadline`] searches flows that have ended unnoticed.
const INSPECTION: Duration = Duration::from_millis(250);

/// The initial window of an unlimited sender, in segments (RFC 6928).
pub(crate) const INITIAL_WINDOW: u32 = 10;
