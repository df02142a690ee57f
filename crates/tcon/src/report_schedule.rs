//! How often flows are reported, and how often the reports are looked at.

use weir_units::Duration;

/// Below this a flow's reports come as often as it is acknowledged on most links.
const SHORTEST: Duration = Duration::from_micros(100);
/// A flow that is reported less often than this is hardly controlled.
const LONGEST: Duration = Duration::from_millis(100);

/// While something is going on the process looks by itself: being woken costs the kernel's side of a
/// connection ten times as much as telling does.
const LOOK: Duration = Duration::from_micros(500);

/// What those who see the segments are told, and what whoever hears of them does between reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSchedule {
    /// Between two reports of one flow.
    pub interval: Duration,
    /// How long to sleep before looking; `None` where a report wakes whoever waits.
    pub sleep: Option<Duration>,
}

impl ReportSchedule {
    /// With so many flows that are active, and so many reports that all of them may make in a second.
    pub fn new(active: u64, reports_per_second: u32) -> Self {
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
        let schedule = |active| ReportSchedule::new(active, 20_000);
        assert_eq!(schedule(0).interval, SHORTEST);
        assert_eq!(schedule(1_000).interval, Duration::from_millis(50));
        assert_eq!(schedule(20_000).interval, LONGEST);
        assert_eq!((schedule(0).sleep, schedule(1).sleep), (None, Some(LOOK)));
        assert_eq!(schedule(1_000).sleep, Some(Duration::from_micros(6_250)));
    }
}
