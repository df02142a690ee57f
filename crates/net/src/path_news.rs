//! What happens to a connection's paths, on its way to those who want to hear of it.

use std::fmt;

use tokio::sync::broadcast;
use weir_quic::PathEvent;
use weir_quic::migration::Decision;

/// So many pieces of news wait for a subscriber before the oldest are lost.
pub(crate) const KEPT: usize = 64;

/// What a subscriber hears.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathNews {
    /// Something happened to a path.
    Event(PathEvent),
    /// The migration monitor has the connection move, for these reasons and with these figures; the
    /// event follows.
    Decision(Decision),
}

impl fmt::Display for PathNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Decision(decision) => decision.fmt(f),
        }
    }
}

/// The connection's end of the subscriptions. Without any it costs nothing.
#[derive(Debug, Default)]
pub(crate) struct PathEventSender {
    sender: Option<broadcast::Sender<PathNews>>,
}

impl PathEventSender {
    pub(crate) fn subscribe(&mut self, is_over: bool) -> broadcast::Receiver<PathNews> {
        if is_over {
            // Its sender is gone at once.
            return broadcast::channel(1).1;
        }
        let sender = self
            .sender
            .get_or_insert_with(|| broadcast::channel(KEPT).0);
        sender.subscribe()
    }

    pub(crate) fn tell(&self, news: PathNews) {
        if let Some(sender) = &self.sender {
            // Fails where nobody listens any more.
            let _ = sender.send(news);
        }
    }

    /// There will be no more.
    pub(crate) fn end(&mut self) {
        self.sender = None;
    }
}
