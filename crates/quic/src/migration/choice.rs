//! Chooses among standby paths.

use weir_units::Duration;

use crate::PathId;

/// The cost of a lost packet in round trips, times the packets of a request: three round trips
/// until a probe has repaired it, ten packets.
const LOSS_COST: f64 = 30.0;
/// A path with a lower loss rate is not left because of losses.
const NOTABLE_LOSS: f64 = 0.01;

/// The connection's view of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Its ID.
    pub id: PathId,
    /// Whether the path was validated and still answers (RFC 9000, section 8.2). A connection never
    /// moves to another path.
    pub validated: bool,
    /// Whether the configuration prefers it.
    pub preferred: bool,
    /// Its smoothed RTT, if measured.
    pub rtt: Option<Duration>,
    /// Its recent loss rate, 0 to 1; NaN counts as 1.
    pub loss: f64,
}

impl PathView {
    pub(super) fn sane_loss(&self) -> f64 {
        if self.loss.is_nan() {
            1.0
        } else {
            self.loss.clamp(0.0, 1.0)
        }
    }

    /// Returns the cost of a request over this path: its RTT plus the round trips added by losses.
    fn cost(&self) -> f64 {
        let rtt = self.rtt.map_or(f64::MAX, |rtt| rtt.as_nanos() as f64);
        rtt * (1.0 + LOSS_COST * self.sane_loss())
    }
}

/// The requirement for a new path.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathRequirement {
    /// Validated.
    Working,
    /// Better by this factor than the path in use, whose current RTT is `rtt`, in RTT or in losses.
    /// If all paths are slow, or only the server is, a move does not help.
    Better {
        /// The factor.
        alpha: f64,
        /// The RTT of the path in use.
        rtt: Option<Duration>,
    },
}

/// Returns the validated standby path that meets the requirement at the lowest request cost; among
/// equals the preferred one, then the one with the lowest ID.
pub(super) fn choose(
    current: PathId,
    paths: &[PathView],
    demand: PathRequirement,
) -> Option<&PathView> {
    let in_use = paths.iter().find(|path| path.id == current);
    paths
        .iter()
        .filter(|path| path.validated && path.id != current)
        .filter(|path| match demand {
            PathRequirement::Working => true,
            PathRequirement::Better { alpha, rtt } => is_better(path, in_use, rtt, alpha),
        })
        .min_by(|a, b| {
            a.cost()
                .total_cmp(&b.cost())
                .then(b.preferred.cmp(&a.preferred))
                .then(a.id.cmp(&b.id))
        })
}

fn is_better(
    path: &PathView,
    in_use: Option<&PathView>,
    rtt: Option<Duration>,
    alpha: f64,
) -> bool {
    let rtt = rtt.or(in_use.and_then(|in_use| in_use.rtt));
    let faster = match (path.rtt, rtt) {
        (Some(there), Some(here)) => there.mul_f64(alpha) < here,
        _ => false,
    };
    let loses_less = in_use.is_some_and(|in_use| {
        in_use.sane_loss() >= NOTABLE_LOSS && path.sane_loss() * alpha < in_use.sane_loss()
    });
    faster || loses_less
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u32, micros: u64, loss: f64) -> PathView {
        PathView {
            id: PathId(id),
            validated: true,
            preferred: false,
            rtt: (micros > 0).then(|| Duration::from_micros(micros)),
            loss,
        }
    }

    fn working(paths: &[PathView]) -> Option<u32> {
        choose(PathId::FIRST, paths, PathRequirement::Working).map(|path| path.id.as_u32())
    }

    #[test]
    fn the_path_with_the_lowest_loss_adjusted_rtt_is_chosen() {
        assert_eq!(working(&[path(1, 120, 0.0), path(2, 100, 0.0)]), Some(2));
        assert_eq!(working(&[path(1, 120, 0.0), path(2, 100, 0.05)]), Some(1));
        assert_eq!(
            working(&[path(1, 120, 0.0), path(2, 100, f64::NAN)]),
            Some(1)
        );
        assert_eq!(working(&[path(1, 0, 0.0), path(2, 9000, 0.0)]), Some(2));
        assert_eq!(working(&[path(1, 0, 0.0)]), Some(1));
    }

    #[test]
    fn only_validated_standby_paths_are_chosen() {
        let unvalidated = PathView {
            validated: false,
            ..path(1, 50, 0.0)
        };
        assert_eq!(working(&[path(0, 10, 0.0), unvalidated]), None);
        assert_eq!(
            working(&[path(0, 10, 0.0), unvalidated, path(2, 500, 0.9)]),
            Some(2)
        );
    }

    #[test]
    fn the_preferred_path_wins_a_tie() {
        let preferred = PathView {
            preferred: true,
            ..path(7, 100, 0.0)
        };
        assert_eq!(
            working(&[path(1, 100, 0.0), preferred, path(2, 100, 0.0)]),
            Some(7)
        );
        assert_eq!(working(&[path(3, 100, 0.0), path(2, 100, 0.0)]), Some(2));
    }

    #[test]
    fn a_slow_path_is_left_only_for_a_better_one() {
        let better = |here: PathView, there: PathView, rtt| {
            let demand = PathRequirement::Better { alpha: 2.0, rtt };
            choose(PathId::FIRST, &[here, there], demand).is_some()
        };
        let ms = |millis| Some(Duration::from_millis(millis));
        assert!(better(path(0, 100, 0.0), path(1, 110, 0.0), ms(100)));
        assert!(!better(path(0, 100, 0.0), path(1, 60_000, 0.0), ms(100)));
        assert!(!better(path(0, 100, 0.0), path(1, 100, 0.0), None));
        assert!(better(path(0, 100, 0.05), path(1, 100, 0.0), None));
        assert!(!better(path(0, 100, 0.005), path(1, 100, 0.0), None));
        assert!(!better(path(0, 100, 0.05), path(1, 100, 0.03), None));
    }
}
