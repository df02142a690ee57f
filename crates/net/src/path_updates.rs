//! Events of a connection's paths, for subscribers.

use std::fmt;

use tokio::sync::broadcast;
use weir_quic::PathEvent;
use weir_quic::migration::Decision;

/// The length of a subscriber's queue; beyond it the oldest events are lost.
pub(crate) const KEPT: usize = 64;

/// An event for a subscriber.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathUpdate {
    /// Something happened to a path.
    Event(PathEvent),
    /// The migration monitor moves the connection, for this cause and with these metrics; the event
    /// follows.
    Decision(Decision),
}

impl fmt::Display for PathUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Decision(decision) => decision.fmt(f),
        }
    }
}

/// The sending half of the subscriptions. Costs nothing without subscribers.
#[derive(Debug, Default)]
pub(crate) struct PathEventSender {
    sender: Option<broadcast::Sender<PathUpdate>>,
}

impl PathEventSender {
    pub(crate) fn subscribe(&mut self, is_over: bool) -> broadcast::Receiver<PathUpdate> {
        if is_over {
            // The sender is dropped at once.
            return broadcast::channel(1).1;
        }
        let sender = self
            .sender
            .get_or_insert_with(|| broadcast::channel(KEPT).0);
        sender.subscribe()
    }

    pub(crate) fn send(&self, update: PathUpdate) {
        if let Some(sender) = &self.sender {
            // Fails where no subscriber is left.
            let _ = sender.send(update);
        }
    }

    /// Ends all subscriptions.
    pub(crate) fn end(&mut self) {
        self.sender = None;
    }
}
