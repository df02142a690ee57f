//! What a connection can be told. The defaults are Linux's values.

use thiserror::Error;
use weir_units::{ByteSize, Duration};

/// The parameters of one end of a connection.
///
/// The congestion window's initial and minimum sizes belong to the controller
/// (`initial_window` and `min_window` of the algorithms in `weir-congestion`).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The largest amount of data in a segment without options, as the MSS option offers it
    /// (RFC 9293, section 3.7.1). Time stamps take 12 bytes of it from every segment.
    pub mss: ByteSize,
    /// By how many bits the window field is shifted (RFC 7323, section 2), at most 14; `None` keeps
    /// the option out of the SYN and the windows below 64 KiB.
    pub window_scale: Option<u8>,
    /// Whether to offer SACK (RFC 2018). Without it losses are found by duplicate ACKs and repaired
    /// as RFC 6582 (NewReno) says.
    pub sack: bool,
    /// The time stamps option (RFC 7323): the length of a tick of the time stamp clock; `None`
    /// keeps the option out of the SYN.
    pub timestamps: Option<Duration>,
    /// What to do about ECN.
    pub ecn: EcnMode,
    /// How much data may wait for an acknowledgment or for its first transmission; `None` for any
    /// amount. Limits what is in flight.
    pub send_buffer: Option<ByteSize>,
    /// How much received data may wait for the application or for a gap to be filled; `None` for
    /// as much as the window field can express.
    pub receive_buffer: Option<ByteSize>,
    /// Whether the application reads all data at once; otherwise it calls
    /// [`Connection::read`](crate::Connection::read).
    pub read_automatically: bool,
    /// When to acknowledge in-order data; `None` for every segment at once.
    pub delayed_acks: Option<DelayedAcks>,
    /// Whether small segments wait while data is in flight (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// How many full segments may leave as one burst that the network interface cuts up (TSO);
    /// 1 for single segments.
    pub burst_segments: u32,
    /// What to pace by.
    pub pacing: Pacing,
    /// How losses are found where SACK is in use.
    pub loss_detection: LossDetection,
    /// Whether the first two duplicate ACKs let new segments go (RFC 3042).
    pub limited_transmit: bool,
    /// Whether fast recovery follows Proportional Rate Reduction (RFC 9937) instead of stopping until
    /// the flight has shrunk to the new window. A controller that sets a pacing rate governs its
    /// recovery itself, as in Linux.
    pub proportional_rate_reduction: bool,
    /// Whether the controller is told when the connection starts again after it was idle for longer
    /// than the retransmission time-out (RFC 2861, RFC 5681 section 4.1).
    pub idle_restart: bool,
    /// The time-out before the first measurement (RFC 6298, section 2.1).
    pub initial_rto: Duration,
    /// The least that a time-out adds to the smoothed round-trip time, as Linux has it with 200 ms.
    /// RFC 6298, section 2.4, asks for 1 s in all.
    pub min_rto: Duration,
    /// The largest time-out, with back-off; also that of the persist timer.
    pub max_rto: Duration,
    /// How often the same data may time out before the connection is given up
    /// (Linux: `tcp_retries2`).
    pub max_retries: u32,
    /// How often a SYN may be sent again (Linux: `tcp_syn_retries`).
    pub max_syn_retries: u32,
    /// Probes of an idle connection (RFC 9293, section 3.8.4); `None` for none.
    pub keep_alive: Option<KeepAlive>,
    /// How long a closed connection stays in TIME-WAIT (RFC 9293, section 3.6.1: twice the maximum
    /// segment lifetime; Linux: 60 s).
    pub time_wait: Duration,
}

/// What to do about ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// Not to be used.
    #[default]
    Off,
    /// RFC 3168: new data is ECT(0); retransmissions, pure ACKs and SYNs are not. The receiver
    /// echoes ECE until it sees CWR.
    Classic,
    /// RFC 8257: the receiver's echo tells for every byte whether it was marked. All segments are
    /// ECT(0): SYNs, ACKs and retransmissions too, as in Linux.
    Dctcp,
}

/// When in-order data is acknowledged (RFC 9293, section 3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// After so many segments,
    pub segments: u32,
    /// or when the first of them has waited for so long.
    pub timeout: Duration,
    /// So many segments at the connection's start are acknowledged at once (Linux's quick ACKs).
    pub quick_segments: u32,
}

/// What to pace by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pacing {
    /// By the controller's rate, where it sets one.
    #[default]
    Controller,
    /// By the controller's rate where it sets one, and otherwise by a multiple of the congestion
    /// window per smoothed round-trip time (Linux: 2 and 1.2), but at least a segment per second.
    Window {
        /// The multiple in slow start.
        slow_start: f64,
        /// The multiple afterwards.
        avoidance: f64,
    },
}

/// How losses are found where SACK is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossDetection {
    /// By three segments that were SACKed above (RFC 6675, RFC 5681).
    DuplicateThreshold,
    /// By time (RFC 8985), with tail loss probes and lost retransmissions.
    #[default]
    RackTlp,
}

/// Probes of an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// How long nothing must have come before the first probe.
    pub idle: Duration,
    /// The time between probes.
    pub interval: Duration,
    /// So many unanswered probes end the connection.
    pub probes: u32,
}

/// A configuration that cannot work.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The MSS leaves no room for data or does not fit the option.
    #[error("mss is {0}; it must be from 13 B (1 B without time stamps) to 65535 B")]
    Mss(ByteSize),
    /// RFC 7323, section 2.3.
    #[error("window_scale is {0}; it must be at most 14")]
    WindowScale(u8),
    /// A clock without ticks.
    #[error("timestamps has a tick of no length")]
    TimestampTick,
    /// A buffer that holds nothing.
    #[error("{0} is empty")]
    EmptyBuffer(&'static str),
    /// A count that must be at least one.
    #[error("{0} is 0; it must be at least 1")]
    Zero(&'static str),
    /// The time-outs are out of order.
    #[error("the time-outs must be min_rto <= max_rto, and none of no length")]
    Timeouts,
    /// A pacing factor is not a positive number.
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
    /// Linux's values once a program asks for keep-alive.
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
            // What Linux's automatic tuning reaches.
            send_buffer: Some(ByteSize::from_mib(4)),
            receive_buffer: Some(ByteSize::from_mib(6)),
            read_automatically: true,
            delayed_acks: Some(DelayedAcks::default()),
            nagle: false,
            burst_segments: 1,
            pacing: Pacing::Controller,
            loss_detection: LossDetection::RackTlp,
            limited_transmit: true,
            proportional_rate_reduction: true,
            idle_restart: true,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            max_retries: 15,
            max_syn_retries: 6,
            keep_alive: None,
            time_wait: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Whether a connection can work like this.
    ///
    /// # Errors
    /// The first value that it cannot work with.
    pub fn check(&self) -> Result<(), ConfigError> {
        let overhead = if self.timestamps.is_some() {
            crate::TIMESTAMPS_LENGTH
        } else {
            0
        };
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
