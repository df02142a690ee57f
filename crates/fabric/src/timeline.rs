//! A timeline: scheduled changes of an egress port.

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::faults::Reordering;
use crate::random::Probability;

/// One change of an egress port. It replaces the earlier value, and leaves everything else as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// The link's rate. A transmission in progress ends as it began.
    Rate(Rate),
    /// The link's propagation delay, for transmissions that start from then on.
    Delay(Duration),
    /// The link's MTU.
    Mtu(ByteSize),
    /// Whether the link is down.
    Down(bool),
    /// The probability that a packet is lost.
    Loss(Probability),
    /// The probability that a packet is duplicated.
    Duplication(Probability),
    /// The probability that a packet is damaged.
    Corruption(Probability),
    /// The packets that fall behind later ones, and for how long.
    Reordering(Reordering),
    /// The delay of every packet beyond the link's propagation delay.
    AddedDelay(Duration),
    /// The largest random delay beyond that.
    Jitter(Duration),
}

/// Changes in the order of their times.
///
/// ```
/// use weir_fabric::{PortChange, Timeline};
/// use weir_units::{Duration, Rate, Time};
///
/// let seconds = |count| Time::ZERO + Duration::from_secs(count);
/// let mut timeline = Timeline::new([
///     (seconds(2), PortChange::Down(true)),
///     (seconds(1), PortChange::Rate(Rate::from_gbps(1))),
///     (seconds(3), PortChange::Down(false)),
/// ])?;
/// assert_eq!(timeline.timeout(), Some(seconds(1)));
/// let due: Vec<_> = std::iter::from_fn(|| timeline.due(seconds(2))).collect();
/// assert_eq!(due, [
///     (seconds(1), PortChange::Rate(Rate::from_gbps(1))),
///     (seconds(2), PortChange::Down(true)),
/// ]);
/// assert_eq!(timeline.timeout(), Some(seconds(3)));
/// # Ok::<(), weir_fabric::ConflictingChanges>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// In reverse order: the next one last.
    to_come: Vec<(Time, PortChange)>,
}

/// Two changes of the same setting at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{first:?} and {second:?} are both set for {time}: one of them has to go")]
pub struct ConflictingChanges {
    /// The time of both.
    pub time: Time,
    /// The earlier one in the list.
    pub first: PortChange,
    /// The later one.
    pub second: PortChange,
}

impl Timeline {
    /// Sorts the changes. Returns an error if the same setting changes twice at the same time.
    pub fn new(changes: impl Into<Vec<(Time, PortChange)>>) -> Result<Self, ConflictingChanges> {
        let mut to_come = changes.into();
        to_come.sort_by_key(|&(time, _)| time);
        for same_time in to_come.chunk_by(|first, second| first.0 == second.0) {
            for (index, &(time, second)) in same_time.iter().enumerate() {
                let before = same_time.iter().take(index).map(|&(_, change)| change);
                if let Some(first) = before.into_iter().find(|&first| first.concerns(second)) {
                    return Err(ConflictingChanges {
                        time,
                        first,
                        second,
                    });
                }
            }
        }
        to_come.reverse();
        Ok(Self { to_come })
    }

    /// Returns when the next change is due.
    pub fn timeout(&self) -> Option<Time> {
        self.to_come.last().map(|&(time, _)| time)
    }

    /// Returns the next change that is due by `now`, with its time. Apply it as of that time, by
    /// [`EgressPort::apply`](crate::EgressPort::apply) or [`Switch::apply`](crate::Switch::apply).
    pub fn due(&mut self, now: Time) -> Option<(Time, PortChange)> {
        self.to_come.pop_if(|&mut (time, _)| time <= now)
    }
}

impl PortChange {
    /// Whether both change the same setting.
    fn concerns(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn simultaneous_changes_keep_their_order() {
        let changes = [
            (at(5), PortChange::Down(true)),
            (at(1), PortChange::Jitter(Duration::ZERO)),
            (at(5), PortChange::Jitter(Duration::from_nanos(1))),
        ];
        let mut timeline = Timeline::new(changes).unwrap();
        assert_eq!(timeline.due(at(0)), None);
        let order: Vec<_> = std::iter::from_fn(|| timeline.due(at(5))).collect();
        assert_eq!(order, [changes[1], changes[0], changes[2]]);
        assert_eq!(timeline.timeout(), None);
    }

    #[test]
    fn conflicting_changes_are_an_error() {
        let error = Timeline::new([
            (at(1000), PortChange::Down(true)),
            (at(1000), PortChange::Mtu(ByteSize::MAX)),
            (at(1000), PortChange::Down(false)),
        ])
        .unwrap_err();
        assert_eq!(
            (error.first, error.second),
            (PortChange::Down(true), PortChange::Down(false))
        );
        assert!(error.to_string().contains("1us"), "{error}");
        // The same value twice is an error too; at different times it is not.
        assert!(Timeline::new([(at(1), PortChange::Down(true)); 2]).is_err());
        assert!(
            Timeline::new([
                (at(1), PortChange::Down(true)),
                (at(2), PortChange::Down(true))
            ])
            .is_ok()
        );
    }
}
