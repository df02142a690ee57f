//! How often flows are reported, and how often the reports are read.

use weir_units::Duration;

/// The shortest interval: at 40,000 acknowledgments per second, as of 20 Gbps in super-packets, a report covers
/// 16 of them, which the controllers' windows do not depend on.
const SHORTEST: Duration = Duration::from_micros(400);
/// A flow with rarer reports is hardly controlled.
const LONGEST: Duration = Duration::from_millis(100);

/// While flows are active the process polls: a wakeup costs the kernel's side of a connection ten times
/// as much as a report.
const LOOK: Duration = Duration::from_millis(1);
/// How often it reads in the shortest round trip of a busy flow, if that is longer.
const LOOKS_PER_ROUND_TRIP: u64 = 4;

/// The same while no sender is held back by its window.
const LAZY_LOOK: Duration = Duration::from_millis(5);

/// The report interval of the data plane, and the polling interval of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSchedule {
    /// Between two reports of one flow.
    pub interval: Duration,
    /// How long the reader sleeps between polls; `None` if a report wakes it.
    pub sleep: Option<Duration>,
    /// Whether a flow that opens wakes the reader.
    pub opens_wake: bool,
}

impl ReportSchedule {
    /// Computes the schedule for this many active flows, of which so many are `busy`: their senders have as
    /// much to send as they may. Their shortest round trip takes `rtt`. All flows together are to make this many
    /// reports per second.
    pub fn new(active: u64, busy: u64, rtt: Duration, reports_per_second: u32) -> Self {
        let share = Duration::from_secs(1) * active / u64::from(reports_per_second.max(1));
        let interval = share.clamp(SHORTEST, LONGEST);
        let look = match busy {
            0 => LAZY_LOOK,
            _ => (rtt / LOOKS_PER_ROUND_TRIP).clamp(LOOK, LAZY_LOOK),
        };
        Self {
            interval,
            sleep: (active > 0).then(|| (interval / 8).max(look)),
            opens_wake: busy == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_intervals_grow_with_the_number_of_flows() {
        let rtt = Duration::from_micros(100);
        let schedule = |active| ReportSchedule::new(active, active, rtt, 20_000);
        assert_eq!(schedule(0).interval, SHORTEST);
        assert_eq!(schedule(1_000).interval, Duration::from_millis(50));
        assert_eq!(schedule(20_000).interval, LONGEST);
        assert_eq!((schedule(0).sleep, schedule(1).sleep), (None, Some(LOOK)));
        assert_eq!(schedule(1_000).sleep, Some(Duration::from_micros(6_250)));
        assert_eq!(
            (schedule(0).opens_wake, schedule(1).opens_wake),
            (true, false)
        );
    }

    #[test]
    fn reports_of_senders_with_little_to_send_are_read_later() {
        let schedule = |busy, rtt| ReportSchedule::new(64, busy, rtt, 20_000);
        let lazy = schedule(0, Duration::ZERO);
        let busy = schedule(1, Duration::ZERO);
        assert_eq!(lazy.interval, busy.interval);
        assert_eq!((lazy.sleep, busy.sleep), (Some(LAZY_LOOK), Some(LOOK)));
        assert!(lazy.opens_wake);
        // A quarter of the round trip.
        let far = schedule(1, Duration::from_millis(8));
        assert_eq!(far.sleep, Some(Duration::from_millis(2)));
        let further = schedule(1, Duration::from_secs(1));
        assert_eq!(further.sleep, Some(LAZY_LOOK));
    }
}
