//! The choice among standby paths.

use weir_units::Duration;

use crate::PathId;

/// What a lost packet costs, in round trips, times the packets of a request: three round trips until
/// a probe has repaired it, ten packets.
const LOSS_COST: f64 = 30.0;
/// A path that loses fewer packets than this is not left for its losses.
const NOTABLE_LOSS: f64 = 0.01;

/// A path as the connection sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Which one.
    pub id: PathId,
    /// Whether the path was validated, and still answers (RFC 9000, section 8.2). No connection is
    /// ever moved to a path that is not.
    pub validated: bool,
    /// Whether the operator prefers it.
    pub preferred: bool,
    /// Its smoothed round-trip time, where it was measured.
    pub rtt: Option<Duration>,
    /// The fraction of packets lost of late, 0 to 1; what is not a number counts as 1.
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

    /// What a request costs over this path: its round trip, and those that losses add.
    fn cost(&self) -> f64 {
        let rtt = self.rtt.map_or(f64::MAX, |rtt| rtt.as_nanos() as f64);
        rtt * (1.0 + LOSS_COST * self.sane_loss())
    }
}

/// What a new path has to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathRequirement {
    /// Validated.
    Working,
    /// Better by this factor than the path in use, which takes `rtt` at present, in round trips or
    /// in losses: where all paths are slow, or only the server is, moving helps nobody.
    Better {
        /// The factor.
        alpha: f64,
        /// The round-trip time of the path in use.
        rtt: Option<Duration>,
    },
}

/// The validated standby path on which requests cost least, of those that meet the demand; among
/// equals the preferred one, then the one with the lowest number.
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
    fn the_shortest_round_trip_wins_and_losses_count() {
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
    fn among_equals_the_preferred_one_wins() {
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
