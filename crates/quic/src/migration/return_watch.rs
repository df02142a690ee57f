//! The return to the preferred path.

use weir_units::{Duration, Time};

use super::choice::PathView;
use super::decision;
use crate::PathId;

/// The checks of the preferred path until it has been healthy for long enough.
const LOOKS: u64 = 8;
/// The shortest time between two checks.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// Monitors a preferred path that is not in use.
#[derive(Debug)]
pub(super) struct ReturnWatch {
    /// How long it has to be healthy.
    after: Option<Duration>,
    /// The RTT of a healthy path is at most this multiple of the RTT of the path in use.
    alpha: f64,
    /// When to check the paths.
    pub(super) next_check: Option<Time>,
    /// The path and the time since which it has been healthy.
    healthy: Option<(PathId, Time)>,
}

impl ReturnWatch {
    pub(super) fn new(now: Time, after: Option<Duration>, alpha: f64) -> Self {
        Self {
            after,
            alpha,
            next_check: after.map(|after| now + interval(after)),
            healthy: None,
        }
    }

    /// Restarts after a move.
    pub(super) fn restart(&mut self, now: Time) {
        *self = Self::new(now, self.after, self.alpha);
    }

    /// Records that a path does not answer.
    pub(super) fn on_path_failed(&mut self, path: PathId) {
        if self.healthy.is_some_and(|(healthy, _)| healthy == path) {
            self.healthy = None;
        }
    }

    /// Whether a check is due; `true` once for each.
    pub(super) fn take_check(&mut self, now: Time) -> bool {
        self.next_check.take_if(|at| *at <= now).is_some()
    }

    /// Checks the paths. Returns the preferred one once it has been healthy for long enough.
    pub(super) fn check_paths<'a>(
        &mut self,
        now: Time,
        current: PathId,
        paths: &'a [PathView],
    ) -> Option<(&'a PathView, decision::Return)> {
        let after = self.after?;
        let in_use = paths.iter().find(|path| path.id == current);
        if in_use.is_some_and(|path| path.preferred) {
            // The preferred path is in use; the next move restarts the watch.
            self.next_check = None;
            self.healthy = None;
            return None;
        }
        self.next_check = Some(now + interval(after));
        let healthy = paths
            .iter()
            .filter(|path| path.id != current && path.preferred)
            .find(|path| self.is_healthy(path, in_use));
        let Some(path) = healthy else {
            self.healthy = None;
            return None;
        };
        let since = match self.healthy {
            Some((id, since)) if id == path.id => since,
            _ => now,
        };
        self.healthy = Some((path.id, since));
        let healthy_for = now.since(since);
        (healthy_for >= after).then_some((path, decision::Return { healthy_for }))
    }

    fn is_healthy(&self, path: &PathView, in_use: Option<&PathView>) -> bool {
        let here = in_use.and_then(|in_use| in_use.rtt);
        let fast = match (path.rtt, here) {
            (Some(there), Some(here)) => there <= here.mul_f64(self.alpha),
            _ => true,
        };
        path.validated && fast
    }
}

fn interval(after: Duration) -> Duration {
    (after / LOOKS).max(SHORTEST_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn paths(preferred_rtt: u64, validated: bool) -> [PathView; 2] {
        let path = |id, rtt| PathView {
            id: PathId(id),
            validated: true,
            preferred: id == 0,
            rtt: Some(Duration::from_micros(rtt)),
            loss: 0.0,
        };
        let preferred = PathView {
            validated,
            ..path(0, preferred_rtt)
        };
        [preferred, path(1, 100)]
    }

    fn watch() -> ReturnWatch {
        ReturnWatch::new(at(0), Some(Duration::from_secs(8)), 2.0)
    }

    /// Checks every second; returns when the watch wants to return.
    fn first_return(watch: &mut ReturnWatch, view: impl Fn(u64) -> [PathView; 2]) -> Option<u64> {
        (1..60).find(|&second| {
            assert!(!watch.take_check(at(second) - Duration::from_nanos(1)));
            assert!(watch.take_check(at(second)));
            watch
                .check_paths(at(second), PathId(1), &view(second))
                .is_some()
        })
    }

    #[test]
    fn the_preferred_path_must_stay_healthy_for_the_required_time() {
        assert_eq!(first_return(&mut watch(), |_| paths(100, true)), Some(9));
        assert_eq!(
            first_return(&mut watch(), |second| paths(100, second != 5)),
            Some(14)
        );
        assert_eq!(first_return(&mut watch(), |_| paths(100_000, true)), None);
    }

    #[test]
    fn a_failure_between_two_checks_restarts_the_wait() {
        let mut watch = watch();
        assert!(
            watch
                .check_paths(at(1), PathId(1), &paths(100, true))
                .is_none()
        );
        watch.on_path_failed(PathId(0));
        assert!(
            watch
                .check_paths(at(9), PathId(1), &paths(100, true))
                .is_none()
        );
        let paths = paths(100, true);
        let (path, figures) = watch.check_paths(at(17), PathId(1), &paths).unwrap();
        assert_eq!(
            (path.id.as_u32(), figures.healthy_for),
            (0, Duration::from_secs(8))
        );
    }

    #[test]
    fn nothing_is_watched_on_the_preferred_path() {
        let mut watch = watch();
        assert!(
            watch
                .check_paths(at(1), PathId(0), &paths(100, true))
                .is_none()
        );
        assert_eq!(watch.next_check, None);
        watch.restart(at(2));
        assert_eq!(watch.next_check, Some(at(3)));
        assert_eq!(ReturnWatch::new(at(0), None, 2.0).next_check, None);
    }
}
