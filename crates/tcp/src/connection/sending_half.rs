//! The sending half of a connection, which is built when it is first needed: most ends of a simulation only
//! receive.

use std::sync::Arc;

use weir_congestion::Controller;
use weir_units::{Duration, Time};

use super::Connection;
use crate::rtt::RttEstimator;
use crate::sender::Sender;
use crate::{Config, ControllerFactory, ControllerSource, EcnMode};

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub(super) enum SendingHalf {
    /// Nothing has been written.
    Unused(UnusedHalf),
    Built(Box<Sender>),
}

/// What is known of a sending half before it is built.
#[derive(Clone, Debug)]
pub(super) struct UnusedHalf {
    /// The right edge of the peer's window. It begins at zero and has at most 30 bits.
    edge: u32,
    /// The largest window that the peer has announced.
    largest_window: u32,
    /// The RTT of the handshake, [`NO_SAMPLE`] if it yielded none, zero before its end.
    handshake_rtt: Duration,
    factory: Arc<dyn ControllerFactory>,
    seed: u64,
}

/// A handshake whose SYN was sent more than once.
const NO_SAMPLE: Duration = Duration::MAX;

impl UnusedHalf {
    /// Returns the result of the handshake once it has ended: its RTT, if it yielded a sample.
    fn handshake(&self) -> Option<Option<Duration>> {
        let rtt = self.handshake_rtt;
        (!rtt.is_zero()).then_some((rtt != NO_SAMPLE).then_some(rtt))
    }

    fn rto(&self, config: &Config) -> Duration {
        let mut rtt = RttEstimator::new(config);
        if let Some(handshake) = self.handshake() {
            rtt.on_handshake(handshake, config);
        }
        rtt.rto()
    }
}

fn window_bits(window: u64) -> u32 {
    u32::try_from(window).unwrap_or(u32::MAX)
}

impl SendingHalf {
    pub(super) fn new(config: &Arc<Config>, source: ControllerSource) -> Self {
        match source {
            ControllerSource::Built(controller) => {
                Self::Built(Box::new(new_sender(config, controller)))
            }
            ControllerSource::AtFirstWrite { factory, seed } => Self::Unused(UnusedHalf {
                edge: 0,
                largest_window: 0,
                handshake_rtt: Duration::ZERO,
                factory,
                seed,
            }),
        }
    }

    #[inline]
    pub(super) fn built(&self) -> Option<&Sender> {
        match self {
            Self::Unused(_) => None,
            Self::Built(sender) => Some(sender),
        }
    }

    #[inline]
    pub(super) fn built_mut(&mut self) -> Option<&mut Sender> {
        match self {
            Self::Unused(_) => None,
            Self::Built(sender) => Some(sender),
        }
    }

    /// Returns the first byte that has not been acknowledged.
    #[inline]
    pub(super) fn una(&self) -> u64 {
        self.built().map_or(0, |sender| sender.una)
    }

    /// Returns the first byte that has not been sent.
    #[inline]
    pub(super) fn nxt(&self) -> u64 {
        self.built().map_or(0, |sender| sender.nxt)
    }

    /// Returns the right edge of the peer's window.
    #[inline]
    pub(super) fn edge(&self) -> u64 {
        match self {
            Self::Unused(unused) => unused.edge.into(),
            Self::Built(sender) => sender.edge,
        }
    }

    /// Returns the largest window that the peer has announced.
    pub(super) fn largest_window(&self) -> u64 {
        match self {
            Self::Unused(unused) => unused.largest_window.into(),
            Self::Built(sender) => sender.largest_window,
        }
    }

    /// Sets the right edge of the peer's window; `window` is the announced size.
    #[inline]
    pub(super) fn on_window(&mut self, edge: u64, window: u64) {
        match self {
            Self::Unused(unused) => {
                unused.edge = window_bits(edge);
                unused.largest_window = unused.largest_window.max(window_bits(window));
            }
            Self::Built(sender) => sender.on_window(edge, window),
        }
    }

    /// Whether the fast paths apply.
    pub(super) fn has_fast_paths(&self) -> bool {
        self.built().is_none_or(Sender::has_fast_paths)
    }

    /// Whether nothing can be sent at any time, and no limit has to be recorded.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.built().is_none_or(Sender::is_quiet)
    }

    /// Whether FIN follows the written data.
    pub(super) fn is_finished(&self) -> bool {
        self.built().is_some_and(|sender| sender.fin)
    }

    /// Whether FIN has been acknowledged.
    pub(super) fn is_fin_acknowledged(&self) -> bool {
        self.built().is_some_and(Sender::is_fin_acknowledged)
    }

    /// Returns the next expiry of a timer.
    #[inline]
    pub(super) fn timeout(&self) -> Time {
        self.built().map_or(Time::MAX, Sender::timeout)
    }

    /// Returns the same as [`Self::timeout`], quickly if nothing has ever been paced.
    #[inline]
    pub(super) fn plain_timeout(&self) -> Time {
        self.built().map_or(Time::MAX, Sender::plain_timeout)
    }

    /// Returns the RTO with backoff.
    #[inline]
    pub(super) fn rto(&self, config: &Config) -> Duration {
        match self {
            Self::Unused(unused) => unused.rto(config),
            Self::Built(sender) => sender.rtt.rto(),
        }
    }

    /// Processes the RTT of the handshake; `None` if it yields no sample.
    pub(super) fn on_handshake(&mut self, rtt: Option<Duration>) {
        match self {
            Self::Unused(unused) => unused.handshake_rtt = rtt.unwrap_or(NO_SAMPLE),
            Self::Built(sender) => sender.on_handshake(rtt),
        }
    }

    /// Records that a segment from the peer has arrived.
    #[inline]
    pub(super) fn on_peer_segment(&mut self) {
        if let Some(sender) = self.built_mut() {
            sender.on_peer_segment();
        }
    }

    pub(super) fn stop(&mut self) {
        if let Some(sender) = self.built_mut() {
            sender.stop();
        }
    }
}

impl Connection {
    /// Returns the sending half, which is built unless it exists.
    pub(super) fn sending(&mut self) -> &mut Sender {
        if let SendingHalf::Unused(unused) = &self.sender {
            let sender = self.build(unused);
            self.sender = SendingHalf::Built(Box::new(sender));
            self.refresh();
        }
        match &mut self.sender {
            SendingHalf::Built(sender) => sender,
            SendingHalf::Unused(_) => unreachable!("it has just been built"),
        }
    }

    /// Calls `read` with the sending half, or with one as it would be.
    pub(super) fn read_sending<T>(&self, read: impl FnOnce(&Sender) -> T) -> T {
        match &self.sender {
            SendingHalf::Built(sender) => read(sender),
            SendingHalf::Unused(unused) => read(&self.build(unused)),
        }
    }

    fn build(&self, unused: &UnusedHalf) -> Sender {
        let mut sender = new_sender(&self.config, unused.factory.build(unused.seed));
        sender.set_mss(u64::from(self.mss));
        sender.set_sack(self.sack, self.config.loss_detection);
        if self.ecn == EcnMode::Off {
            sender.disable_ecn();
        }
        sender.set_edge(unused.edge.into(), unused.largest_window.into());
        if let Some(handshake) = unused.handshake() {
            sender.on_handshake(handshake);
        }
        sender
    }
}

fn new_sender(config: &Arc<Config>, controller: Box<dyn Controller>) -> Sender {
    Sender::new(config, controller, config.segment_size())
}
