//! How TCP connections end when the server shuts down.

use tokio::sync::watch;
use tokio::time::timeout;
use weir_net::{DeadlinePassed, Duration};

/// What connections are to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Serve,
    /// End once their requests are answered.
    Drain,
    /// End at once.
    End,
}

/// Tells all connections, and knows when the last one has ended.
#[derive(Debug, Default)]
pub(super) struct Draining(watch::Sender<Phase>);

/// A connection's, or a listener's, part: the server waits until it is dropped.
#[derive(Clone, Debug)]
pub(super) struct Follower(watch::Receiver<Phase>);

impl Draining {
    pub(super) fn follow(&self) -> Follower {
        Follower(self.0.subscribe())
    }

    /// Waits until all connections have ended; those left after `limit` are given up.
    pub(super) async fn drain(&self, limit: Duration) -> Result<(), DeadlinePassed> {
        self.0.send_replace(Phase::Drain);
        if timeout(limit.into(), self.0.closed()).await.is_ok() {
            return Ok(());
        }
        self.0.send_replace(Phase::End);
        self.0.closed().await;
        Err(DeadlinePassed)
    }
}

impl Follower {
    /// Whether the server shuts down.
    pub(super) fn is_draining(&self) -> bool {
        *self.0.borrow() != Phase::Serve
    }

    /// Waits until the server shuts down.
    pub(super) async fn draining(&mut self) {
        // A server that is gone shuts down.
        let _ = self.0.wait_for(|phase| *phase != Phase::Serve).await;
    }

    /// Waits until everything is to end at once.
    pub(super) async fn ending(&mut self) {
        let _ = self.0.wait_for(|phase| *phase == Phase::End).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn followers_are_waited_for_until_the_limit() {
        let draining = Draining::default();
        assert_eq!(draining.drain(Duration::from_secs(1)).await, Ok(()));
        let mut follower = draining.follow();
        let task = tokio::spawn(async move {
            follower.draining().await;
            assert!(follower.is_draining());
            follower.ending().await;
        });
        let drained = draining.drain(Duration::from_secs(1)).await;
        assert_eq!(drained, Err(DeadlinePassed));
        task.await.unwrap();
    }
}
