//! The lease of orders, at the end that obeys them.

use std::time::{Duration, Instant};

use crate::leader_epoch::LeaderEpoch;
use crate::translate::DecodeError;
use crate::v1;

/// Orders hold for a lease from when they were decided. Clocks are not synchronized, so the controller
/// returns the last beat of ours that it had received before: the decision cannot be older.
///
/// Orders may arrive up to a quarter of the lease after that; the rest is how long they are obeyed.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) leader_epoch: LeaderEpoch,
    length: Duration,
    /// When hello was sent: beats count from there.
    begin: Instant,
    received: Instant,
}

impl Lease {
    pub(crate) fn new(
        leader_epoch: LeaderEpoch,
        length: Duration,
        begin: Instant,
        now: Instant,
    ) -> Self {
        Self {
            leader_epoch,
            length,
            begin,
            received: now,
        }
    }

    /// Returns the lease of a controller's welcome, with the heartbeat interval of both ends.
    pub(crate) fn welcomed(
        welcome: &v1::Welcome,
        begin: Instant,
        now: Instant,
    ) -> Result<(Self, Duration), DecodeError> {
        let leader_epoch = welcome.leader_epoch.as_ref();
        let leader_epoch = leader_epoch.ok_or(DecodeError::Missing("leader_epoch"))?;
        let leader_epoch = LeaderEpoch {
            name: leader_epoch.name.clone(),
            term: leader_epoch.term,
        };
        // Whatever it requests, no interval is shorter than a millisecond.
        let length = Duration::from_nanos(welcome.lease_nanoseconds).max(Duration::from_millis(10));
        let heartbeat = Duration::from_nanos(welcome.heartbeat_nanoseconds);
        let heartbeat = heartbeat.clamp(Duration::from_millis(1), length / 4);
        Ok((Self::new(leader_epoch, length, begin, now), heartbeat))
    }

    /// Returns how long orders are obeyed from their arrival.
    pub(crate) fn order_lifetime(&self) -> Duration {
        self.length * 3 / 4
    }

    pub(crate) fn beat(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.begin).as_nanos();
        u64::try_from(since).unwrap_or(u64::MAX)
    }

    /// Notes a message of the controller.
    pub(crate) fn note_message(&mut self, now: Instant) {
        self.received = now;
    }

    /// Whether a decision after this beat still holds.
    pub(crate) fn holds(&self, now: Instant, beat: u64) -> bool {
        let age = self.beat(now).saturating_sub(beat);
        u128::from(age) <= (self.length / 4).as_nanos()
    }

    /// Returns when the controller is given up unless a message arrives.
    pub(crate) fn silent_at(&self) -> Instant {
        self.received + self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_starts_when_the_order_was_computed() {
        let begin = Instant::now();
        let leader_epoch = LeaderEpoch {
            name: "one".to_owned(),
            term: 1,
        };
        let mut lease = Lease::new(leader_epoch, Duration::from_secs(2), begin, begin);
        let at = |millis| begin + Duration::from_millis(millis);
        assert!(lease.holds(at(500), 0));
        assert!(!lease.holds(at(501), 0));
        assert!(lease.holds(at(3500), lease.beat(at(3000))));
        // The oldest accepted order, plus the time for which it is obeyed, makes a lease.
        assert_eq!(
            lease.order_lifetime() + Duration::from_millis(500),
            Duration::from_secs(2)
        );
        lease.note_message(at(700));
        assert_eq!(lease.silent_at(), at(2700));
    }
}
