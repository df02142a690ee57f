//! How often flows are reported, and how often the reports are read.

use weir_units::Duration;

/// A shorter interval reports a flow about as often as it is acknowledged on most links.
const SHORTEST: Duration = Duration::from_micros(100);
/// A flow with rarer reports is hardly controlled.
const LONGEST: Duration = Duration::from_millis(100);

/// While flows are active the process polls: a wakeup costs the kernel's side of a connection ten times
/// as much as a report.
const LOOK: Duration = Duration::from_micros(500);

/// The report interval of the data plane, and the polling interval of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSchedule {
    /// Between two reports of one flow.
    pub interval: Duration,
    /// How long the reader sleeps between polls; `None` if a report wakes it.
    pub sleep: Option<Duration>,
}

impl ReportSchedule {
    /// Computes the schedule for this many active flows and this many reports per second of all of
    /// them.
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
    fn report_intervals_grow_with_the_number_of_flows() {
        let schedule = |active| ReportSchedule::new(active, 20_000);
        assert_eq!(schedule(0).interval, SHORTEST);
        assert_eq!(schedule(1_000).interval, Duration::from_millis(50));
        assert_eq!(schedule(20_000).interval, LONGEST);
        assert_eq!((schedule(0).sleep, schedule(1).sleep), (None, Some(LOOK)));
        assert_eq!(schedule(1_000).sleep, Some(Duration::from_micros(6_250)));
    }
}
