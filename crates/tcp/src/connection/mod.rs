//! One end of a connection: states, sequence numbers and headers around the sending and receiving
//! halves.

mod clock;
mod handshake;
mod plain;
mod receive;
mod sending_half;
mod state;
mod timers;
mod transmit;

use std::sync::Arc;

use weir_congestion::{AlgorithmSpec, Deadline};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::{Segment, Sequence};

use crate::cold::{Cold, Initial};
use crate::counters::StoredCounters;
use crate::receiver::{self, Receiver};
use crate::sender::Sender;
use crate::{Config, ConfigError, ControllerSource, Counters, EcnMode};
use clock::TimestampClock;
use handshake::Handshake;
pub use plain::QuickNext;
use sending_half::SendingHalf;
pub use state::{Ending, State};

/// What a connection needs at its ends, for keep-alive probes, and for segments that it rejects.
#[derive(Clone, Debug)]
struct Rare {
    /// The handshake timer, and later the end of TIME-WAIT.
    state_at: Time,
    keep_alive_at: Time,
    keep_alive_probes: u32,
    keep_alive_due: bool,
    handshake: Handshake,
    /// A reset that is due.
    reset_due: Option<Box<Segment>>,
    /// When an ACK was last sent for an unacceptable segment.
    challenged_at: Option<Time>,
}

impl Rare {
    /// Returns whether nothing of it matters to an established connection without timers: of a handshake that
    /// is complete, nothing does.
    fn is_over(&self) -> bool {
        let has_timer = self.state_at != Time::MAX || self.keep_alive_at != Time::MAX;
        let is_due = self.handshake.due || self.handshake.pending || self.keep_alive_due;
        !has_timer && !is_due && self.reset_due.is_none() && self.challenged_at.is_none()
    }
}

static NOTHING_RARE: Rare = Rare {
    state_at: Time::MAX,
    keep_alive_at: Time::MAX,
    keep_alive_probes: 0,
    keep_alive_due: false,
    handshake: Handshake::NONE,
    reset_due: None,
    challenged_at: None,
};

impl Initial for Rare {
    fn initial() -> &'static Self {
        &NOTHING_RARE
    }
}

/// One end of a TCP connection. The crate documentation describes its use.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Connection {
    state: State,
    /// Whether the fast paths apply, see `plain`.
    is_plain: bool,
    /// Whether there are fast paths at all.
    has_fast_paths: bool,
    /// Shift count of the peer's windows.
    peer_scale: u8,
    sack: bool,
    ecn: EcnMode,
    ending: Option<Ending>,
    /// Data size of a full segment.
    mss: u32,
    /// The sequence number of the first byte that this end sends.
    local: Sequence,
    /// The sequence number of the first byte that the peer sends.
    remote: Sequence,
    /// The timestamp clock, if the option is in use.
    clock: Option<TimestampClock>,
    /// The sequence number of the peer's segment that last changed the window (SND.WL1), as an
    /// offset.
    window_from: u64,
    /// The last acknowledgment sent (Last.ACK.sent of RFC 7323), as an offset.
    last_acknowledged: u64,
    counters: StoredCounters,
    receiver: Receiver,
    /// Shared with the connections of the same settings.
    config: Arc<Config>,
    sender: SendingHalf,
    rare: Cold<Rare>,
}

/// The state of a connection for statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// The controller's congestion window.
    pub congestion_window: ByteSize,
    /// Data in flight: neither acknowledged nor declared lost.
    pub in_flight: ByteSize,
    /// The window that the peer announces.
    pub peer_window: ByteSize,
    /// The smoothed RTT; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// The mean deviation of the RTT.
    pub rtt_variation: Duration,
    /// The minimum RTT, after the first sample.
    pub min_rtt: Option<Duration>,
    /// The RTO with backoff.
    pub retransmission_timeout: Duration,
    /// The controller's pacing rate, if it sets one.
    pub pacing_rate: Option<Rate>,
    /// Whether the sender is in recovery.
    pub recovering: bool,
    /// The state of the controller.
    pub controller: weir_congestion::Snapshot,
}

impl Snapshot {
    fn of(sender: &Sender) -> Self {
        let (rtt, controller) = (&sender.rtt, sender.controller());
        Self {
            congestion_window: controller.window(),
            in_flight: ByteSize::from_bytes(sender.scoreboard.in_flight()),
            peer_window: ByteSize::from_bytes(sender.offered()),
            smoothed_rtt: rtt.smoothed,
            rtt_variation: rtt.variation,
            min_rtt: rtt.sampled.then_some(rtt.min),
            retransmission_timeout: rtt.rto(),
            pacing_rate: controller.pacing_rate(),
            recovering: sender.is_recovering(),
            controller: controller.snapshot(),
        }
    }
}

impl Connection {
    /// Opens a connection: a SYN with sequence number `isn` is due first.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn client(
        now: Time,
        config: &Arc<Config>,
        controller: impl Into<ControllerSource>,
        isn: Sequence,
    ) -> Result<Self, ConfigError> {
        let mut client = Self::new(config, controller.into(), isn, State::SynSent)?;
        client.restart_keep_alive(now);
        client.rare.handshake.pending = true;
        client.rare.handshake.due = true;
        Ok(client)
    }

    /// Creates a listening end that waits for a SYN.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn server(
        config: &Arc<Config>,
        controller: impl Into<ControllerSource>,
        isn: Sequence,
    ) -> Result<Self, ConfigError> {
        Self::new(config, controller.into(), isn, State::Listen)
    }

    /// Creates one end of an established connection, without a handshake: both ends know each
    /// other's configuration. `isn` and `peer_isn` are the sequence numbers of the omitted SYNs.
    /// The RTT is unknown until data has been acknowledged.
    ///
    /// # Errors
    /// One of the configurations is invalid.
    pub fn established(
        now: Time,
        config: &Arc<Config>,
        peer: &Config,
        controller: impl Into<ControllerSource>,
        isn: Sequence,
        peer_isn: Sequence,
    ) -> Result<Self, ConfigError> {
        peer.check()?;
        let mut end = Self::new(config, controller.into(), isn, State::Established)?;
        end.remote = peer_isn + 1;
        end.settle_options(&handshake::offer(peer), peer.timestamps.is_some());
        end.settle_ecn(config.ecn != crate::EcnMode::Off && peer.ecn != crate::EcnMode::Off);
        end.receiver.offer_all();
        let offered = receiver::whole_window(peer, end.peer_scale);
        end.sender.on_window(offered, offered);
        end.restart_keep_alive(now);
        end.refresh();
        Ok(end)
    }

    fn new(
        config: &Arc<Config>,
        controller: ControllerSource,
        isn: Sequence,
        state: State,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let mss = config.segment_size();
        Ok(Self {
            state,
            sender: SendingHalf::new(config, controller),
            receiver: Receiver::new(config, mss, 0),
            config: Arc::clone(config),
            // A segment is never longer than 64 KiB.
            mss: u32::try_from(mss).unwrap_or(u32::MAX),
            ecn: config.ecn,
            local: isn + 1,
            remote: Sequence::default(),
            peer_scale: 0,
            sack: config.sack,
            clock: config.timestamps.map(TimestampClock::new),
            window_from: 0,
            last_acknowledged: 0,
            rare: Cold::new(),
            ending: None,
            is_plain: false,
            has_fast_paths: true,
            counters: StoredCounters::default(),
        })
    }

    /// Adds that many bytes to the send buffer. Has no effect after [`Connection::close`].
    pub fn write(&mut self, bytes: ByteSize) {
        self.sending().write(bytes.bytes());
    }

    /// Keeps the send buffer filled from now on.
    pub fn write_endlessly(&mut self) {
        self.sending().write_endlessly();
    }

    /// Removes that many bytes from the receive buffer. Only needed if
    /// [`Config::read_automatically`] is off.
    pub fn read(&mut self, bytes: ByteSize) {
        self.receiver.on_read(bytes);
    }

    /// Closes the sending direction: FIN follows the buffered data. The peer may continue to send.
    pub fn close(&mut self) {
        self.sending().finish();
        match self.state {
            State::Established | State::SynReceived => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            // FIN follows the handshake.
            State::SynSent => {}
            State::Listen => self.end(Ending::Closed),
            _ => {}
        }
        self.refresh();
    }

    /// Aborts the connection: only a reset is sent.
    pub fn abort(&mut self) {
        if self.state.is_synchronized() && self.state != State::TimeWait
            || self.state == State::SynReceived
        {
            self.rare.reset_due = Some(Box::new(self.reset_at_next()));
        }
        if self.state != State::Closed {
            self.end(Ending::Aborted);
        }
        self.refresh();
    }

    /// Sets what remains until the deadline of the current transfer, for deadline-aware
    /// controllers.
    pub fn set_deadline(&mut self, deadline: Option<Deadline>) {
        let sender = self.sending();
        sender.controller_mut().on_deadline(deadline);
        sender.on_controller_changed();
    }

    /// Takes over the parameters of the congestion control that
    /// [change](weir_congestion::Controller::set_parameters) while it runs. A controller that is not built yet has those of its factory.
    pub fn set_congestion_parameters(&mut self, spec: &AlgorithmSpec) {
        if let Some(sender) = self.sender.built_mut() {
            sender.controller_mut().set_parameters(spec);
            sender.on_controller_changed();
        }
    }

    /// Returns the data size of a full segment, into which bursts are [cut](Segment::segments).
    #[inline]
    pub fn segment_size(&self) -> ByteSize {
        ByteSize::from_bytes(u64::from(self.mss))
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns how the connection ended, once it is [`State::Closed`] or [`State::TimeWait`].
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Returns the bytes received in order.
    #[inline]
    pub fn received(&self) -> ByteSize {
        ByteSize::from_bytes(self.receiver.received())
    }

    /// Returns the bytes received in order that the application has not read.
    pub fn unread(&self) -> ByteSize {
        ByteSize::from_bytes(self.receiver.unread())
    }

    /// Returns the bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> ByteSize {
        let sender = self.sender.built();
        ByteSize::from_bytes(sender.map_or(0, Sender::acknowledged))
    }

    /// Returns the bytes written and not acknowledged yet.
    pub fn remaining(&self) -> ByteSize {
        let sender = self.sender.built();
        ByteSize::from_bytes(sender.map_or(0, Sender::remaining))
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let sent = self.sender.built().map(|sender| sender.sent);
        self.counters.total(&sent.unwrap_or_default())
    }

    /// Returns the counters that all transports have.
    pub fn flow_counters(&self) -> FlowCounters {
        FlowCounters {
            delivered: self.received(),
            ..self.counters.flow_counters()
        }
    }

    /// Returns the controller's congestion window.
    pub fn congestion_window(&self) -> ByteSize {
        ByteSize::from_bytes(self.read_sending(Sender::controller_window))
    }

    /// Returns the state of the sending half.
    pub fn snapshot(&self) -> Snapshot {
        self.read_sending(Snapshot::of)
    }

    /// Ends the connection and stops all timers.
    fn end(&mut self, ending: Ending) {
        self.state = State::Closed;
        self.ending.get_or_insert(ending);
        self.stop();
    }

    /// Stops all timers and all sending except for a reset.
    fn stop(&mut self) {
        self.sender.stop();
        self.receiver.acks.stop();
        if let Some(rare) = self.rare.changed() {
            rare.handshake.due = false;
            rare.state_at = Time::MAX;
            rare.keep_alive_at = Time::MAX;
            rare.keep_alive_due = false;
        }
    }

    /// Returns the sequence number of an offset in this end's stream.
    #[inline]
    fn sequence(&self, offset: u64) -> Sequence {
        // Sequence numbers are offsets modulo 2^32.
        self.local + offset as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulation has two of them for each flow, and reads most of each for each packet.
    #[test]
    fn a_connection_is_small() {
        assert_eq!(size_of::<Connection>(), 304);
        assert_eq!(size_of::<Sender>(), 472);
        assert_eq!(size_of::<Receiver>(), 128);
    }
}
