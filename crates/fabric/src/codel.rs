//! CoDel: drops or marks at dequeue by how long packets have waited (RFC 8289).
//!
//! A queue is good while the wait of some packet in each interval is below the target. When it has been
//! above for a whole interval, one packet is dropped, and then one each `interval / sqrt(n)` until a packet
//! has waited for less than the target.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;

/// The settings of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelSettings {
    /// The wait that a standing queue may cause (RFC 8289, section 4.3).
    pub target: Duration,
    /// How long the wait has to stay above the target before the first drop: a round trip of the slowest
    /// flows (RFC 8289, section 4.2).
    pub interval: Duration,
    /// A queue of no more than this is never too long (RFC 8289, section 5.3): the link's MTU.
    pub mtu: ByteSize,
    /// Whether ECT packets are marked instead of dropped.
    pub mark: bool,
}

/// CoDel's decision about a packet that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodelVerdict {
    /// It is sent unchanged.
    Pass,
    /// It is sent with the mark CE.
    Mark,
    /// It is dropped, and the next packet leaves the queue at the same time.
    Drop,
}

/// CoDel's state: the pseudocode of RFC 8289, section 5, with one call per packet.
///
/// ```
/// use weir_fabric::{Codel, CodelSettings, CodelVerdict};
/// use weir_units::{ByteSize, Duration, Time};
/// use weir_wire::Ecn;
///
/// let mut codel = Codel::new(CodelSettings {
///     target: Duration::from_millis(5),
///     interval: Duration::from_millis(100),
///     mtu: ByteSize::from_bytes(1500),
///     mark: false,
/// });
/// // Each packet has waited for 20 ms, and many are behind it.
/// let mut verdict_at = |millis| {
///     let now = Time::ZERO + Duration::from_millis(millis);
///     let backlog = ByteSize::from_bytes(20_000);
///     codel.on_dequeue(now, Duration::from_millis(20), backlog, Ecn::NotEct)
/// };
/// assert_eq!(verdict_at(20), CodelVerdict::Pass);
/// assert_eq!(verdict_at(119), CodelVerdict::Pass);
/// assert_eq!(verdict_at(120), CodelVerdict::Drop);
/// assert_eq!(verdict_at(120), CodelVerdict::Pass);
/// ```
#[derive(Clone, Debug)]
pub struct Codel {
    settings: CodelSettings,
    /// When the wait will have been above the target for an interval; `None` while it is below.
    first_above: Option<Time>,
    /// Whether it drops packets now and then.
    is_dropping: bool,
    /// When the next drop is due.
    drop_next: Time,
    /// Drops since it began to drop: how steep the control law has become.
    count: u64,
    /// The count with which it began to drop.
    last_count: u64,
    /// The last packet was dropped in the dropping state: the time of the next drop depends on the packet
    /// behind it.
    has_dropped: bool,
}

impl Codel {
    /// Creates the state of an empty queue.
    pub fn new(settings: CodelSettings) -> Self {
        Self {
            settings,
            first_above: None,
            is_dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            has_dropped: false,
        }
    }

    /// Changes the settings. The state goes on; the time of the next drop stays.
    pub(crate) fn change(&mut self, settings: CodelSettings) {
        self.settings = settings;
    }

    /// The settings.
    pub fn settings(&self) -> CodelSettings {
        self.settings
    }

    /// Decides about a packet that leaves the queue at `now` after a wait of `sojourn`, and leaves `backlog`
    /// behind (`deque` in RFC 8289, section 5.5). After [`CodelVerdict::Drop`], call it for the next packet
    /// at the same time.
    pub fn on_dequeue(
        &mut self,
        now: Time,
        sojourn: Duration,
        backlog: ByteSize,
        ecn: Ecn,
    ) -> CodelVerdict {
        let has_dropped = std::mem::take(&mut self.has_dropped);
        if !self.may_drop(now, sojourn, backlog) {
            self.is_dropping = false;
            return CodelVerdict::Pass;
        }
        let marks = self.settings.mark && ecn.is_capable();
        if !self.is_dropping {
            self.begin(now);
        } else {
            if has_dropped {
                self.drop_next = self.after(self.drop_next);
            }
            if now < self.drop_next {
                return CodelVerdict::Pass;
            }
            self.count = self.count.saturating_add(1);
            if marks {
                self.drop_next = self.after(self.drop_next);
            } else {
                self.has_dropped = true;
            }
        }
        if marks {
            CodelVerdict::Mark
        } else {
            CodelVerdict::Drop
        }
    }

    /// Whether the wait has been above the target for an interval (`dodeque`, section 5.6).
    fn may_drop(&mut self, now: Time, sojourn: Duration, backlog: ByteSize) -> bool {
        if sojourn < self.settings.target || backlog <= self.settings.mtu {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(time) => now >= time,
            None => {
                self.first_above = Some(now + self.settings.interval);
                false
            }
        }
    }

    /// Begins to drop. If it has dropped not long ago, it resumes with the last rate of drops, which was
    /// about the right one.
    fn begin(&mut self, now: Time) {
        self.is_dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let is_recent = now.since(self.drop_next) < self.settings.interval * 16;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.drop_next = self.after(now);
        self.last_count = self.count;
    }

    /// The control law (section 5.4): the time of the next drop after one at `time`.
    fn after(&self, time: Time) -> Time {
        time + self
            .settings
            .interval
            .mul_f64(1.0 / (self.count as f64).sqrt())
    }
}
