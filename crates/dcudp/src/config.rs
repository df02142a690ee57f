//! The configuration of connections and endpoints.

use std::sync::Arc;

use weir_congestion::AlgorithmSpec;
use weir_units::{ByteSize, Duration, Rate};

use crate::observer::QuitConfig;
use crate::protection::SharedKey;
use crate::sequence::SequenceNumber;

/// The largest receive window in packets; also the limit of a sender's unacknowledged packets.
pub(crate) const LARGEST_WINDOW: u32 = 1 << 16;
/// The smallest packet size: header, packet number, tag and some payload.
pub(crate) const SMALLEST_PACKET: ByteSize = ByteSize::from_bytes(128);
/// The largest UDP payload over IPv4.
const LARGEST_PACKET: ByteSize = ByteSize::from_bytes(65_507);

/// The kind of the application's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataKind {
    /// One stream of bytes in each direction.
    #[default]
    Stream,
    /// Messages with boundaries, ordered or unordered.
    Messages,
}

/// When an ACK carries the ECN echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EchoRule {
    /// From a CE mark until a data packet carries CWR, as in classic TCP (RFC 3168, section 6.1.3)
    /// and in the paper.
    #[default]
    UntilReduced,
    /// If a CE mark has arrived since the last ACK.
    SinceLastAck,
}

/// The ACK interval in Congestion Mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AckInterval {
    /// One RTT, as in the paper: a longer queue delays the sender's feedback.
    #[default]
    RoundTrip,
    /// One RTT through empty queues.
    IdleRoundTrip,
    /// An ACK for every second packet, and for one packet after a sixteenth of an RTT through empty queues.
    /// For congestion controls with a window: each ACK releases the next packets.
    Frequent,
}

/// The feedback about marks that the congestion controller receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Feedback {
    /// The ECE bit, which the paper's rate control counts.
    #[default]
    Echo,
    /// The number of marked bytes, from the counters of the ACK, for algorithms that estimate a
    /// fraction.
    Counts,
}

/// The transport configuration of a connection. Start from [`TransportConfig::new`].
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Stream or messages; both ends must agree.
    pub data: DataKind,
    /// Whether the sender has the paper's UDP Mode. Without it, the sender is in Congestion Mode from
    /// the first packet to the last: its congestion control finds the rate, and losses reduce it. The
    /// handshake tells the peer, whose receiver then sends ACKs all the time.
    pub udp_mode: bool,
    /// The rate of UDP Mode, in UDP payload: the application's rate or the link rate. It is also
    /// the upper limit in Congestion Mode.
    pub rate: Rate,
    /// The rate control of Congestion Mode. It restarts with each congestion.
    pub congestion: AlgorithmSpec,
    /// The feedback about marks that it receives.
    pub feedback: Feedback,
    /// The seed of its random decisions.
    pub seed: u64,
    /// The largest UDP payload, 128 to 65507 bytes; the smaller one of both ends applies.
    pub packet_size: ByteSize,
    /// Packets that the receive buffer holds, 16 to 65536.
    pub receive_window: u32,
    /// Size of the send buffer in bytes, unacknowledged data included.
    pub send_buffer: ByteSize,
    /// When ACKs carry the echo.
    pub echo: EchoRule,
    /// When Congestion Mode ends.
    pub quit: QuitConfig,
    /// The ACK interval.
    pub ack_interval: AckInterval,
    /// Whether losses that go on for two round trips start Congestion Mode as a CE mark does. The
    /// paper's receiver only considers marks; without marking in the network, UDP Mode would then
    /// never end.
    pub congestion_on_loss: bool,
    /// The RTT before the first sample.
    pub initial_rtt: Duration,
    /// The minimum ACK interval.
    pub min_ack_interval: Duration,
    /// A sender that waits for feedback requests it after this time or two RTTs, whichever is
    /// longer. The interval doubles with each unanswered request.
    pub request_interval: Duration,
    /// How late a wake-up may be without reducing the rate.
    pub pacing_slack: Duration,
    /// How long packets may wait for later ones to form a batch, limited to the duration of the
    /// largest batch. `pacing_slack` should be at least as long. Zero sends each packet at its own
    /// time.
    pub pacing_quantum: Duration,
    /// The interval before a client repeats a handshake packet; doubled each time.
    pub handshake_interval: Duration,
    /// The handshake timeout.
    pub handshake_timeout: Duration,
    /// The send idle time after which a connection sends a keep-alive packet.
    pub keep_alive: Duration,
    /// The receive idle time after which the peer counts as gone.
    pub idle_timeout: Duration,
    /// The time without progress of data in flight after which a connection counts as broken.
    pub stall_timeout: Duration,
    /// The time limit of an orderly close.
    pub close_timeout: Duration,
    /// How long a closed connection still answers its peer.
    pub linger: Duration,
    /// The sequence number of the first data packet, for tests and reproducible captures; random by
    /// default.
    pub first_sequence: Option<SequenceNumber>,
    /// A key shared by both ends: it authenticates, and optionally encrypts, every packet.
    pub shared_key: Option<Arc<dyn SharedKey>>,
}

/// A setting outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` must be {accepted}")]
pub struct ConfigError {
    /// The setting's name.
    pub setting: &'static str,
    /// The accepted values.
    pub accepted: &'static str,
}

impl TransportConfig {
    /// The smallest receive window in packets.
    pub const SMALLEST_WINDOW: u32 = 16;

    /// Returns a transport configuration for any network, whose switches need not mark: the sender
    /// starts with ten packets per round trip and finds its rate by CUBIC (RFC 9438), as TCP does.
    /// `limit` is the highest rate, such as that of the interface.
    pub fn shared(limit: Rate) -> Self {
        Self {
            udp_mode: false,
            congestion: AlgorithmSpec::default(),
            feedback: Feedback::Counts,
            ack_interval: AckInterval::Frequent,
            congestion_on_loss: true,
            ..Self::new(limit)
        }
    }

    /// Returns the paper's transport configuration, for a data center with this link rate whose
    /// switches mark: the sender starts at this rate, and only marks slow it down.
    pub fn new(rate: Rate) -> Self {
        Self {
            data: DataKind::Stream,
            udp_mode: true,
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

    /// Validates all settings.
    ///
    /// # Errors
    /// [`ConfigError`] for the first invalid setting.
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

/// Returns the paper's rate control for a path of this capacity; the default capacity if the
/// registry does not accept `rate`.
fn dcudp_from(rate: Rate) -> AlgorithmSpec {
    let named = AlgorithmSpec::new("dcudp").unwrap_or_default();
    let capacity = weir_congestion::Value::Rate(rate);
    named.clone().with("capacity", capacity).unwrap_or(named)
}

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The transport of its connections.
    pub transport: Arc<TransportConfig>,
    /// Maximum number of concurrent connections.
    pub max_connections: usize,
    /// Minimum lifetime of a cookie; the maximum is twice as long.
    pub cookie_lifetime: Duration,
}

impl ServerConfig {
    /// Returns a configuration for up to 1000 connections and cookies of five seconds.
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
    fn an_out_of_range_setting_is_named() {
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
