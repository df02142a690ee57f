//! What the peer has said on its control stream, as far as `h3` keeps it to itself.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// No GOAWAY yet.
const NONE: u64 = u64::MAX;

/// The peer's GOAWAY.
#[derive(Debug)]
pub(crate) struct PeerState {
    go_away: AtomicU64,
    changed: Notify,
}

impl Default for PeerState {
    fn default() -> Self {
        Self {
            go_away: AtomicU64::new(NONE),
            changed: Notify::new(),
        }
    }
}

impl PeerState {
    pub(crate) fn on_go_away(&self, identifier: u64) {
        self.go_away.fetch_min(identifier, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Whether the peer serves no more requests than it has named.
    pub(crate) fn is_going_away(&self) -> bool {
        self.go_away.load(Ordering::Relaxed) != NONE
    }

    /// Whether the peer has said that it does not serve the request on this stream (RFC 9114, section
    /// 5.2).
    pub(crate) fn refuses(&self, stream: u64) -> bool {
        stream >= self.go_away.load(Ordering::Relaxed)
    }

    /// Waits until the peer says that it does not serve the request on this stream.
    pub(crate) async fn refusing(&self, stream: u64) {
        self.until(|peer| peer.refuses(stream)).await;
    }

    /// Waits for the first GOAWAY.
    pub(crate) async fn going_away(&self) {
        self.until(Self::is_going_away).await;
    }

    /// Waits until something is true.
    async fn until(&self, is_true: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if is_true(self) {
                return;
            }
            changed.await;
        }
    }
}
