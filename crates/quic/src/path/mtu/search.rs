//! Which size to try next: those that networks have, then the middle between what passes and what
//! does not (RFC 8899, section 5.3.2).

use super::MtuPlan;

/// IP MTUs worth a try: IPv6's smallest; Ethernet behind a tunnel or PPPoE; Ethernet; what hosts
/// take that keep a packet in one page; jumbo frames.
const NETWORK_MTUS: [usize; 5] = [1280, 1480, 1500, 4096, 9000];
/// How many sizes one search tries at most.
pub(super) const MAX_SIZES: u8 = 10;
/// A gain of fewer bytes is not worth a probe.
const SMALLEST_STEP: usize = 16;
/// Nor is one below this fraction of the size in use.
const STEP_FRACTION: usize = 50;

/// A search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// The smallest size that does not pass, or that is not to be tried.
    ceiling: usize,
    sizes_left: u8,
    /// Whether the size in use is to be confirmed first.
    pub(super) confirms: bool,
}

impl Search {
    /// A search for sizes below `ceiling`.
    pub(super) fn below(ceiling: usize) -> Self {
        Self {
            ceiling,
            sizes_left: MAX_SIZES,
            confirms: false,
        }
    }

    /// The size to probe next, where `current` passes; `None` at the end of the search.
    pub(super) fn next(&self, current: usize, plan: &MtuPlan) -> Option<usize> {
        if self.sizes_left == 0 {
            return None;
        }
        if self.confirms {
            return Some(current);
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

    /// The probed size passed.
    pub(super) fn succeed(&mut self) {
        self.confirms = false;
        self.sizes_left = self.sizes_left.saturating_sub(1);
    }

    /// The probed size did not.
    pub(super) fn fail(&mut self, size: usize) {
        self.ceiling = self.ceiling.min(size);
        self.sizes_left = self.sizes_left.saturating_sub(1);
    }
}
