//! How often flows are reported, and how often one looks.

use weir_units::Duration;

/// Below this a flow's reports come as often as it is acknowledged on most links.
const SHORTEST: Duration = Duration::from_micros(100);
/// A flow that is reported less often than this is hardly controlled.
const LONGEST: Duration = Duration::from_millis(100);

/// While something is going on the process looks by itself: being woken costs the kernel's side of a
/// connection ten times as much as telling does.
const LOOK: Duration = Duration::from_micros(500);

/// What the programs are told, and what the process does between reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Between two reports of one flow.
    pub(super) interval: Duration,
    /// How long to sleep before looking; `None` where the programs wake whoever waits.
    pub(super) sleep: Option<Duration>,
}

impl Pace {
    /// With so many flows that are active, and so many reports that all of them may make in a second.
    pub(super) fn new(active: u64, reports_per_second: u32) -> Self {
        let share = Duration::from_secs(1) * active / u64::from(reports_per_second.max(1));
        let interval = share.clamp(SHORTEST, LONGEST);
        Self {
            interval,
            sleep: (active > 0).then(|| (interval / 8).max(LOOK)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_flows_the_rarer_are_reports_of_each() {
        let pace = |active| Pace::new(active, 20_000);
        assert_eq!(pace(0).interval, SHORTEST);
        assert_eq!(pace(1_000).interval, Duration::from_millis(50));
        assert_eq!(pace(20_000).interval, LONGEST);
        assert_eq!((pace(0).sleep, pace(1).sleep), (None, Some(LOOK)));
        assert_eq!(pace(1_000).sleep, Some(Duration::from_micros(6_250)));
    }
}
