//! What an operator may set about a connection and an endpoint.

use std::sync::Arc;

use weir_congestion::AlgorithmSpec;
use weir_units::{ByteSize, Duration, Rate};

use crate::observer::QuitConfig;
use crate::protection::SharedKey;
use crate::sequence::SequenceNumber;

/// The largest receive window in packets, and the most that a sender keeps unacknowledged.
pub(crate) const LARGEST_WINDOW: u32 = 1 << 16;
/// The smallest packet size: header, packet number, tag and some payload.
pub(crate) const SMALLEST_PACKET: ByteSize = ByteSize::from_bytes(128);
/// What fits a UDP datagram over IPv4.
const LARGEST_PACKET: ByteSize = ByteSize::from_bytes(65_507);

/// What the application's data are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataKind {
    /// One stream of bytes in each direction.
    #[default]
    Stream,
    /// Messages with ends, in order or not.
    Messages,
}

/// When an ACK carries the ECN echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EchoRule {
    /// From a CE mark until a data packet brings CWR, as classic TCP does (RFC 3168, section 6.1.3)
    /// and as the paper has it.
    #[default]
    UntilReduced,
    /// If a CE mark came since the last ACK.
    SinceLastAck,
}

/// How far apart the ACKs of Congestion Mode are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AckInterval {
    /// A round trip, as the paper has it: the longer the queue, the later the sender hears of it.
    #[default]
    RoundTrip,
    /// A round trip through empty queues.
    IdleRoundTrip,
}

/// What the congestion controller is told of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Feedback {
    /// The ECE bit: what the paper's rate control counts.
    #[default]
    Echo,
    /// How many bytes were marked, from the counters of the ACK: for algorithms that estimate a
    /// fraction.
    Counts,
}

/// The transport of a connection. Start from [`TransportConfig::new`].
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Streams or messages; both ends must agree.
    pub data: DataKind,
    /// The rate of UDP Mode, in UDP payload: what the application wants or the line carries. Never
    /// exceeded in Congestion Mode either.
    pub rate: Rate,
    /// The rate control of Congestion Mode. It begins anew with each congestion.
    pub congestion: AlgorithmSpec,
    /// What it is told of marks.
    pub feedback: Feedback,
    /// The seed of whatever it randomizes.
    pub seed: u64,
    /// The largest UDP payload, 128 to 65507 bytes; the smaller one of both ends counts.
    pub packet_size: ByteSize,
    /// Packets that the receive buffer holds, 16 to 65536.
    pub receive_window: u32,
    /// Bytes that are kept for sending, unacknowledged ones included.
    pub send_buffer: ByteSize,
    /// When ACKs carry the echo.
    pub echo: EchoRule,
    /// When Congestion Mode ends.
    pub quit: QuitConfig,
    /// How far apart ACKs are.
    pub ack_interval: AckInterval,
    /// Whether a gap in the data begins Congestion Mode as a CE mark does. The paper's receiver looks
    /// at marks alone; on a network that does not mark, UDP Mode would then never end.
    pub congestion_on_loss: bool,
    /// The round-trip time before one is measured.
    pub initial_rtt: Duration,
    /// ACKs are at least this far apart.
    pub min_ack_interval: Duration,
    /// A sender that waits for news asks for them after this time or twice the round-trip time,
    /// whichever is longer; doubled each time in vain.
    pub request_interval: Duration,
    /// How late a wake-up may come without costing rate.
    pub pacing_slack: Duration,
    /// How long packets may wait for those after them, so that they leave together: for as long as the
    /// largest batch takes at most. At least as much slack makes up for it. Zero sends each packet at
    /// its time.
    pub pacing_quantum: Duration,
    /// How long a client waits before it repeats itself; doubled each time.
    pub handshake_interval: Duration,
    /// How long it tries.
    pub handshake_timeout: Duration,
    /// A connection that has sent nothing for this long sends a keep-alive packet.
    pub keep_alive: Duration,
    /// A peer that has said nothing for this long is gone.
    pub idle_timeout: Duration,
    /// A connection whose data on the way have made no progress for this long is broken.
    pub stall_timeout: Duration,
    /// How long an orderly close may take.
    pub close_timeout: Duration,
    /// How long a closed connection still answers its peer.
    pub linger: Duration,
    /// The number of the first data packet, for tests and repeatable captures; random otherwise.
    pub first_sequence: Option<SequenceNumber>,
    /// A key that both ends know: authenticates, and if it wants encrypts, every packet.
    pub shared_key: Option<Arc<dyn SharedKey>>,
}

/// A setting out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` must be {accepted}")]
pub struct ConfigError {
    /// Its name.
    pub setting: &'static str,
    /// What it accepts.
    pub accepted: &'static str,
}

impl TransportConfig {
    /// The smallest receive window in packets.
    pub const SMALLEST_WINDOW: u32 = 16;

    /// A transport for a data center whose line has this rate.
    pub fn new(rate: Rate) -> Self {
        Self {
            data: DataKind::Stream,
            rate,
            congestion: dcudp_from(rate),
            feedback: Feedback::Echo,
            seed: 0,
            packet_size: ByteSize::from_bytes(1472),
            receive_window: 8192,
            send_buffer: ByteSize::from_mib(8),
            echo: EchoRule::default(),
            quit: QuitConfig::default(),
            ack_interval: AckInterval::default(),
            congestion_on_loss: false,
            initial_rtt: Duration::from_micros(100),
            min_ack_interval: Duration::from_micros(10),
            request_interval: Duration::from_millis(1),
            pacing_slack: Duration::from_millis(1),
            pacing_quantum: Duration::ZERO,
            handshake_interval: Duration::from_millis(10),
            handshake_timeout: Duration::from_secs(3),
            keep_alive: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(10),
            linger: Duration::from_millis(500),
            first_sequence: None,
            shared_key: None,
        }
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// [`ConfigError`] for the first one that is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let quit = &self.quit;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let windows = Self::SMALLEST_WINDOW..=LARGEST_WINDOW;
        let sizes = SMALLEST_PACKET..=LARGEST_PACKET;
        let times = [
            self.initial_rtt,
            self.min_ack_interval,
            self.request_interval,
            self.handshake_interval,
            self.handshake_timeout,
            self.keep_alive,
            self.idle_timeout,
            self.stall_timeout,
            self.close_timeout,
        ];
        let enough = ByteSize::from_bytes(1);
        let checks = [
            (!self.rate.is_zero(), "rate", "above zero"),
            (
                sizes.contains(&self.packet_size),
                "packet_size",
                "128B to 65507B",
            ),
            (
                windows.contains(&self.receive_window),
                "receive_window",
                "16 to 65536 packets",
            ),
            (self.send_buffer >= enough, "send_buffer", "above zero"),
            (
                (2..=1024).contains(&quit.window),
                "quit.window",
                "2 to 1024",
            ),
            (share(quit.ecn_threshold), "quit.ecn_threshold", "0 to 1"),
            (share(quit.rtt_threshold), "quit.rtt_threshold", "0 to 1"),
            (
                (1.0..=1000.0).contains(&quit.beta),
                "quit.beta",
                "1 to 1000",
            ),
            (
                times.iter().all(|time| !time.is_zero()),
                "each time but `linger` and `pacing_slack`",
                "above zero",
            ),
        ];
        match checks.into_iter().find(|(holds, ..)| !holds) {
            None => Ok(()),
            Some((_, setting, accepted)) => Err(ConfigError { setting, accepted }),
        }
    }
}

/// The paper's rate control for a path of this capacity; at the bounds of what the registry accepts
/// where `rate` lies outside.
fn dcudp_from(rate: Rate) -> AlgorithmSpec {
    let named = AlgorithmSpec::new("dcudp").unwrap_or_default();
    let capacity = weir_congestion::Value::Rate(rate);
    named.clone().with("capacity", capacity).unwrap_or(named)
}

/// What a server takes.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The transport of its connections.
    pub transport: Arc<TransportConfig>,
    /// How many connections it has at the same time.
    pub max_connections: usize,
    /// How long a cookie is good at least; at most twice as long.
    pub cookie_lifetime: Duration,
}

impl ServerConfig {
    /// Up to 1000 connections, cookies of five seconds.
    pub fn new(transport: Arc<TransportConfig>) -> Self {
        Self {
            transport,
            max_connections: 1000,
            cookie_lifetime: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let good = TransportConfig::new(Rate::from_gbps(10));
        assert_eq!(good.validate(), Ok(()));
        assert_eq!(good.congestion.to_string(), "dcudp,capacity=10Gbps");
        let mut bad = good.clone();
        bad.quit.beta = f64::NAN;
        assert_eq!(bad.validate().unwrap_err().setting, "quit.beta");
        let bad = TransportConfig {
            receive_window: 1 << 17,
            ..good
        };
        let message = bad.validate().unwrap_err().to_string();
        assert_eq!(message, "`receive_window` must be 16 to 65536 packets");
    }
}
