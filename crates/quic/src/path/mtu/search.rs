//! Chooses the next size to probe: first common network MTUs, then the middle between the largest
//! size that passes and the smallest that does not (RFC 8899, section 5.3.2).

use super::MtuPlan;

/// Common IP MTUs: the IPv6 minimum; Ethernet behind a tunnel or PPPoE; Ethernet; hosts that keep a
/// packet in one page; jumbo frames.
const NETWORK_MTUS: [usize; 5] = [1280, 1480, 1500, 4096, 9000];
/// The most sizes that one search tries.
pub(super) const MAX_SIZES: u8 = 10;
/// A gain of fewer bytes is not worth a probe.
const SMALLEST_STEP: usize = 16;
/// A gain below this fraction of the size in use is not worth one either.
const STEP_FRACTION: usize = 50;

/// The state of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// The smallest size that does not pass or is not to be tried.
    ceiling: usize,
    sizes_left: u8,
    /// Whether the size in use is to be confirmed first.
    pub(super) confirms: bool,
}

impl Search {
    /// Creates a search for sizes below `ceiling`.
    pub(super) fn below(ceiling: usize) -> Self {
        Self {
            ceiling,
            sizes_left: MAX_SIZES,
            confirms: false,
        }
    }

    /// Returns the next size to probe, if `current` passes; `None` at the end of the search.
    pub(super) fn next(&self, current: usize, plan: &MtuPlan) -> Option<usize> {
        if self.sizes_left == 0 {
            return None;
        }
        if self.confirms {
            return Some(current);
        }
        if plan.limit_first && self.ceiling > plan.limit {
            return (plan.limit > current).then_some(plan.limit);
        }
        NETWORK_MTUS
            .iter()
            .map(|mtu| mtu.saturating_sub(plan.headers))
            .chain([plan.start, plan.limit])
            .filter(|size| (current + 1..self.ceiling).contains(size))
            .min()
            .or_else(|| self.middle(current))
    }

    fn middle(&self, current: usize) -> Option<usize> {
        let gain = self.ceiling.saturating_sub(current + 1);
        let worthwhile = (current / STEP_FRACTION).max(SMALLEST_STEP);
        (gain >= worthwhile).then(|| current + gain.div_ceil(2))
    }

    /// Records that the probed size passed.
    pub(super) fn succeed(&mut self) {
        self.confirms = false;
        self.sizes_left = self.sizes_left.saturating_sub(1);
    }

    /// Records that the probed size did not pass.
    pub(super) fn fail(&mut self, size: usize) {
        self.ceiling = self.ceiling.min(size);
        self.sizes_left = self.sizes_left.saturating_sub(1);
    }
}
