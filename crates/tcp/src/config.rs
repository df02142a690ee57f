//! The configuration of a connection. The defaults are Linux's values.

use thiserror::Error;
use weir_units::{ByteSize, Duration};

/// The parameters of one end of a connection.
///
/// The congestion window's initial and minimum sizes belong to the controller
/// (`initial_window` and `min_window` of the algorithms in `weir-congestion`).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Maximum segment size without options, as announced in the MSS option (RFC 9293, section
    /// 3.7.1). Timestamps take 12 bytes of it from every segment.
    pub mss: ByteSize,
    /// Shift count of the window field (RFC 7323, section 2), at most 14. `None` omits the option
    /// from the SYN and keeps windows below 64 KiB.
    pub window_scale: Option<u8>,
    /// Whether to offer SACK (RFC 2018). Without it, losses are detected by duplicate ACKs and
    /// repaired as in RFC 6582 (NewReno).
    pub sack: bool,
    /// The timestamps option (RFC 7323): the tick length of the timestamp clock. `None` omits the
    /// option from the SYN.
    pub timestamps: Option<Duration>,
    /// The ECN mode.
    pub ecn: EcnMode,
    /// Size of the send buffer: data sent but not acknowledged, and data not sent yet. `None` for
    /// no limit. It limits the bytes in flight.
    pub send_buffer: Option<ByteSize>,
    /// Size of the receive buffer: data not read by the application, and data received out of
    /// order. `None` for as much as the window field can express.
    pub receive_buffer: Option<ByteSize>,
    /// Whether the application reads all data at once; otherwise it calls
    /// [`Connection::read`](crate::Connection::read).
    pub read_automatically: bool,
    /// Delayed ACKs for in-order data; `None` acknowledges every segment at once.
    pub delayed_acks: Option<DelayedAcks>,
    /// Whether a sender whose window holds fewer than two segments sets PSH, so that a receiver which waits
    /// for the second one acknowledges the first at once. Linux's windows are larger, but after a timeout.
    pub push_small_windows: bool,
    /// Nagle's algorithm: whether small segments wait while data is in flight (RFC 9293, section
    /// 3.7.4).
    pub nagle: bool,
    /// Maximum number of full segments per burst, which the network interface splits (TSO); 1 for
    /// single segments.
    pub burst_segments: u32,
    /// The source of the pacing rate.
    pub pacing: Pacing,
    /// Loss detection with SACK.
    pub loss_detection: LossDetection,
    /// Whether the first two duplicate ACKs permit new segments (RFC 3042).
    pub limited_transmit: bool,
    /// Whether fast recovery, and a reaction to ECE as in Linux, follow Proportional Rate Reduction
    /// (RFC 9937). Otherwise sending stops until the bytes in flight have fallen to the new window. A
    /// controller with a pacing rate controls its recovery itself, as in Linux.
    pub proportional_rate_reduction: bool,
    /// Whether to notify the controller when the connection restarts after being idle for longer
    /// than the RTO (RFC 2861, RFC 5681 section 4.1).
    pub idle_restart: bool,
    /// The RTO before the first RTT sample (RFC 6298, section 2.1).
    pub initial_rto: Duration,
    /// The minimum of the part of the RTO that [`Config::rto_floor`] names; 200 ms as in Linux. RFC 6298,
    /// section 2.4, requires 1 s of the whole.
    pub min_rto: Duration,
    /// The part of the RTO that has a minimum.
    pub rto_floor: RtoFloor,
    /// What is added to the time of a tail loss probe and to that at which a segment is overdue (RACK); Linux
    /// adds 2 ms (`TCP_TIMEOUT_MIN_US`), RFC 8985 nothing.
    pub early_timer_margin: Duration,
    /// Maximum RTO with backoff; also the maximum interval of the persist timer.
    pub max_rto: Duration,
    /// Whether a timeout is examined for being spurious (F-RTO, RFC 5682; Linux: `tcp_frto`).
    pub frto: bool,
    /// Without SACK, the partial ACKs of a recovery that restart the retransmission timer.
    pub partial_ack_timer: PartialAckTimer,
    /// Number of timeouts of the same data before the connection is aborted (Linux:
    /// `tcp_retries2`).
    pub max_retries: u32,
    /// Number of SYN retransmissions (Linux: `tcp_syn_retries`).
    pub max_syn_retries: u32,
    /// Keep-alive probes of an idle connection (RFC 9293, section 3.8.4); `None` for none.
    pub keep_alive: Option<KeepAlive>,
    /// Duration of TIME-WAIT (RFC 9293, section 3.6.1: twice the maximum segment lifetime; Linux:
    /// 60 s).
    pub time_wait: Duration,
}

/// The ECN mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// ECN is not used.
    #[default]
    Off,
    /// RFC 3168: new data is ECT(0); retransmissions, pure ACKs and SYNs are not. The receiver
    /// echoes ECE until it receives CWR.
    Classic,
    /// RFC 8257: the receiver's echo reports for every byte whether it was marked. All segments are
    /// ECT(0), including SYNs, ACKs and retransmissions, as in Linux.
    Dctcp,
}

/// When to acknowledge in-order data (RFC 9293, section 3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// Acknowledge after this many segments,
    pub segments: u32,
    /// or when the first of them has waited this long.
    pub timeout: Duration,
    /// Number of segments at the connection's start that are acknowledged at once (Linux's quick
    /// ACKs).
    pub quick_segments: u32,
}

/// The source of the pacing rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pacing {
    /// The controller's rate, if it sets one.
    #[default]
    Controller,
    /// The controller's rate, or else a multiple of cwnd per smoothed RTT (Linux: 2 and 1.2), but
    /// at least one segment per second.
    Window {
        /// The multiple in slow start.
        slow_start: f64,
        /// The multiple in congestion avoidance.
        avoidance: f64,
    },
}

/// Loss detection with SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossDetection {
    /// Three SACKed segments above (RFC 6675, RFC 5681).
    DuplicateThreshold,
    /// Time-based (RFC 8985), with tail loss probes and detection of lost retransmissions.
    #[default]
    RackTlp,
}

/// The part of the RTO that has a minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtoFloor {
    /// The margin above the smoothed RTT, four times the variation (Linux, `tcp_rtt_estimator`). If the
    /// whole RTO had it, a constant RTT of that length would leave no margin.
    #[default]
    Variation,
    /// The whole RTO (RFC 6298, section 2.4).
    Whole,
}

/// The partial ACKs of a recovery without SACK that restart the retransmission timer (RFC 6582, section
/// 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialAckTimer {
    /// Each one, as in Linux ("slow but steady").
    #[default]
    Each,
    /// The first one ("impatient"): with many losses in a window, a timeout ends the recovery.
    First,
}

/// Keep-alive probes of an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// The time between probes.
    pub interval: Duration,
    /// Number of unanswered probes that end the connection.
    pub probes: u32,
}

/// An invalid configuration.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The MSS leaves no room for data or does not fit the option.
    #[error("mss is {0}; it must be from 13 B (1 B without time stamps) to 65535 B")]
    Mss(ByteSize),
    /// The window scale exceeds 14 (RFC 7323, section 2.3).
    #[error("window_scale is {0}; it must be at most 14")]
    WindowScale(u8),
    /// The timestamp tick is zero.
    #[error("timestamps has a tick of no length")]
    TimestampTick,
    /// A buffer has size zero.
    #[error("{0} is empty")]
    EmptyBuffer(&'static str),
    /// A count is zero.
    #[error("{0} is 0; it must be at least 1")]
    Zero(&'static str),
    /// The timeouts are zero or out of order.
    #[error("the time-outs must be min_rto <= max_rto, and none of no length")]
    Timeouts,
    /// A pacing factor is not positive.
    #[error("pacing factors must be positive numbers")]
    PacingFactor,
}

impl Default for DelayedAcks {
    fn default() -> Self {
        Self {
            segments: 2,
            timeout: Duration::from_millis(40),
            quick_segments: 16,
        }
    }
}

impl Default for KeepAlive {
    /// Linux's defaults for an application that enables keep-alive.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            probes: 9,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: ByteSize::from_bytes(1460),
            window_scale: Some(7),
            sack: true,
            timestamps: Some(Duration::from_millis(1)),
            ecn: EcnMode::Off,
            // The sizes that Linux's auto-tuning reaches.
            send_buffer: Some(ByteSize::from_mib(4)),
            receive_buffer: Some(ByteSize::from_mib(6)),
            read_automatically: true,
            delayed_acks: Some(DelayedAcks::default()),
            push_small_windows: true,
            nagle: false,
            burst_segments: 1,
            pacing: Pacing::Controller,
            loss_detection: LossDetection::RackTlp,
            limited_transmit: true,
            proportional_rate_reduction: true,
            idle_restart: true,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            rto_floor: RtoFloor::Variation,
            early_timer_margin: Duration::from_millis(2),
            max_rto: Duration::from_secs(120),
            frto: true,
            partial_ack_timer: PartialAckTimer::Each,
            max_retries: 15,
            max_syn_retries: 6,
            keep_alive: None,
            time_wait: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Returns the bytes that options take from each segment.
    fn overhead(&self) -> u64 {
        if self.timestamps.is_some() {
            crate::TIMESTAMPS_LENGTH
        } else {
            0
        }
    }

    /// Returns a duration that no RTO is shorter than.
    #[inline]
    pub(crate) fn least_rto(&self) -> Duration {
        self.min_rto.min(self.initial_rto)
    }

    /// Returns the data size of a full segment before the peer's options are known.
    pub(crate) fn segment_size(&self) -> u64 {
        self.mss.bytes().saturating_sub(self.overhead())
    }

    /// Validates the configuration.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let overhead = self.overhead();
        if self.mss.bytes() <= overhead || self.mss.bytes() > u64::from(u16::MAX) {
            return Err(ConfigError::Mss(self.mss));
        }
        if let Some(scale) = self.window_scale.filter(|&scale| scale > 14) {
            return Err(ConfigError::WindowScale(scale));
        }
        if self.timestamps.is_some_and(Duration::is_zero) {
            return Err(ConfigError::TimestampTick);
        }
        for (name, buffer) in [
            ("send_buffer", self.send_buffer),
            ("receive_buffer", self.receive_buffer),
        ] {
            if buffer.is_some_and(ByteSize::is_zero) {
                return Err(ConfigError::EmptyBuffer(name));
            }
        }
        if self.burst_segments == 0 {
            return Err(ConfigError::Zero("burst_segments"));
        }
        if self
            .delayed_acks
            .is_some_and(|delayed| delayed.segments == 0)
        {
            return Err(ConfigError::Zero("delayed_acks.segments"));
        }
        if self.min_rto.is_zero() || self.initial_rto.is_zero() || self.min_rto > self.max_rto {
            return Err(ConfigError::Timeouts);
        }
        if let Pacing::Window {
            slow_start,
            avoidance,
        } = self.pacing
        {
            let positive = |factor: f64| factor.is_finite() && factor > 0.0;
            if !positive(slow_start) || !positive(avoidance) {
                return Err(ConfigError::PacingFactor);
            }
        }
        Ok(())
    }
}
