//! Path MTU discovery by the packetization layer (DPLPMTUD: RFC 8899, as RFC 9000, section 14.3
//! applies it), and black hole detection (RFC 8899, section 4.3).
//!
//! [`MtuDiscovery`] belongs to a path. It begins with the size that the operator's word and the
//! peer's parameters allow at once, and searches upwards from there: the connection asks for the
//! size of the next probe ([`MtuDiscovery::next_probe`]), says that it was sent, and recovery says
//! what became of it, and of all other packets of the path. A probe is lost without any say about
//! congestion. What packets may have now is [`MtuDiscovery::current`].
//!
//! There is no timer of its own: a probe's fate comes from loss detection, and the raise timer is
//! looked at when the connection sends, so that an idle connection is not kept awake by it.
//!
//! | file | what it holds |
//! |---|---|
//! | `search` | which size to try next |
//! | `black_hole` | when losses mean that packets are too large |

mod black_hole;
mod search;
#[cfg(test)]
mod tests;

use weir_units::{Duration, Time};

use crate::interfaces::SMALLEST_MAX_UDP_PAYLOAD;
use black_hole::BlackHoleDetector;
use search::Search;

/// BASE_PLPMTU (RFC 8899, section 5.1.2): what every path carries, as UDP payload in bytes.
pub(crate) const BASE: usize = SMALLEST_MAX_UDP_PAYLOAD;
/// MAX_PROBES (RFC 8899, section 5.1.2): how many probes of one size are lost before it counts as
/// too large.
pub(crate) const MAX_PROBES: u8 = 3;

/// Between which sizes to search. Sizes are UDP payloads in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MtuPlan {
    /// What is used at once, on the operator's word.
    pub(crate) start: usize,
    /// What is never exceeded.
    pub(crate) limit: usize,
    /// The IP and UDP headers, in bytes.
    pub(crate) headers: usize,
    /// PMTU_RAISE_TIMER (RFC 8899, section 5.1.1): how long after a search the next one begins;
    /// zero for never.
    pub(crate) raise_interval: Duration,
}

impl MtuPlan {
    /// Before anything is known of the peer: the base, and no search.
    pub(crate) const BASE: Self = Self {
        start: BASE,
        limit: BASE,
        headers: 0,
        raise_interval: Duration::ZERO,
    };
}

/// How far the discovery of a path's MTU is (RFC 8899, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuPhase {
    /// Nothing is known of the peer yet; packets have the base size.
    Disabled,
    /// Probes are sent.
    Searching,
    /// No larger size is worth a probe until the raise timer ends.
    SearchComplete,
}

/// What discovery did, for people to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MtuStats {
    /// Probes sent.
    pub(crate) probes_sent: u64,
    /// Probes lost, or too large for our own interface.
    pub(crate) probes_lost: u64,
    /// How often the path turned out not to carry a size that was in use.
    pub(crate) black_holes: u64,
}

/// A size under test.
#[derive(Clone, Copy, Debug)]
struct Probe {
    size: usize,
    failures: u8,
    outstanding: bool,
}

/// The discovery of one path's MTU.
#[derive(Clone, Debug)]
pub(crate) struct MtuDiscovery {
    plan: MtuPlan,
    /// How far the discovery is.
    pub(crate) phase: MtuPhase,
    /// The largest packet that may be sent now, probes aside.
    pub(crate) current: usize,
    search: Search,
    probe: Option<Probe>,
    raise_at: Option<Time>,
    /// Whether a packet of the size in use has been acknowledged since the last search began.
    confirmed: bool,
    /// Whether there was a black hole since then.
    shrunk: bool,
    detector: BlackHoleDetector,
    /// What happened so far.
    pub(crate) stats: MtuStats,
}

impl MtuDiscovery {
    /// Discovery that waits for [`MtuDiscovery::begin`]; until then packets have the base size.
    pub(crate) fn new() -> Self {
        Self {
            plan: MtuPlan::BASE,
            phase: MtuPhase::Disabled,
            current: BASE,
            search: Search::below(BASE + 1),
            probe: None,
            raise_at: None,
            confirmed: false,
            shrunk: false,
            detector: BlackHoleDetector::default(),
            stats: MtuStats::default(),
        }
    }

    /// The peer's parameters are known: from now on packets have the plan's first size, and larger
    /// ones are searched for.
    pub(crate) fn begin(&mut self, plan: MtuPlan) {
        let limit = plan.limit.max(BASE);
        self.plan = MtuPlan {
            limit,
            start: plan.start.clamp(BASE, limit),
            ..plan
        };
        self.current = self.plan.start;
        self.search_below(limit + 1);
    }

    /// The size that is never exceeded.
    pub(crate) fn limit(&self) -> usize {
        self.plan.limit
    }

    /// Our own interface carries more or less than it did. What was found holds as far as it is
    /// still allowed; the rest is searched for anew.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        let limit = limit.max(BASE);
        if limit == self.plan.limit {
            return;
        }
        self.plan.limit = limit;
        self.plan.start = self.plan.start.min(limit);
        self.current = self.current.min(limit);
        self.search_below(limit + 1);
    }

    /// The size of the probe to send now; `None` where none is wanted. The same size is given
    /// until [`MtuDiscovery::on_probe_sent`].
    pub(crate) fn next_probe(&mut self, now: Time) -> Option<usize> {
        if let Some(probe) = self.probe {
            return (!probe.outstanding).then_some(probe.size);
        }
        if self.phase == MtuPhase::SearchComplete && self.raise_at.is_some_and(|at| now >= at) {
            self.raise();
        }
        if self.phase != MtuPhase::Searching {
            return None;
        }
        let Some(size) = self.search.next(self.current, &self.plan) else {
            self.complete(now);
            return None;
        };
        self.probe = Some(Probe {
            size,
            failures: 0,
            outstanding: false,
        });
        Some(size)
    }

    /// The probe that was asked for is on its way.
    pub(crate) fn on_probe_sent(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.outstanding = true;
            self.stats.probes_sent += 1;
        }
    }

    /// A probe of this size was acknowledged. One that is no longer asked about is ignored: the
    /// path may have changed since it was sent.
    pub(crate) fn on_probe_acked(&mut self, size: usize) {
        if self.probe.is_none_or(|probe| probe.size != size) {
            return;
        }
        self.probe = None;
        self.current = self.current.max(size);
        self.confirmed = true;
        self.search.succeed();
        self.detector = BlackHoleDetector::default();
    }

    /// A probe of this size was lost.
    pub(crate) fn on_probe_lost(&mut self, size: usize) {
        let Some(probe) = &mut self.probe else {
            return;
        };
        if probe.size != size || !probe.outstanding {
            return;
        }
        probe.outstanding = false;
        probe.failures += 1;
        self.stats.probes_lost += 1;
        if probe.failures >= MAX_PROBES {
            self.fail(size);
        }
    }

    /// The connection has left the path: what became of the probe will not be known. It is sent
    /// again when the connection comes back.
    pub(crate) fn on_path_left(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.outstanding = false;
        }
    }

    /// Another packet than a probe was acknowledged.
    pub(crate) fn on_acked(&mut self, number: u64, size: usize) {
        if size <= BASE {
            return;
        }
        self.confirmed |= size >= self.current;
        self.detector.on_acked(number, size);
    }

    /// Another packet than a probe was lost; `round_trip` is the path's. `true` where the path has
    /// turned into a black hole for packets above the base: what is in flight of them is lost.
    pub(crate) fn on_lost(
        &mut self,
        number: u64,
        size: usize,
        sent_at: Time,
        round_trip: Duration,
    ) -> bool {
        // Larger packets than the size in use are left from before a black hole.
        if size <= BASE || size > self.current {
            return false;
        }
        let Some(smallest) = self.detector.on_lost(number, size, sent_at, round_trip) else {
            return false;
        };
        // Congestion may look like this: once, the size that was in use is tried again.
        let ceiling = if self.shrunk {
            smallest
        } else {
            self.current + 1
        };
        self.fall_back(ceiling);
        true
    }

    /// Our own interface does not take a packet of this size (EMSGSIZE). `true` where it was one
    /// of the size in use, which falls back to the base.
    pub(crate) fn on_too_large(&mut self, size: usize) -> bool {
        if self.probe.is_some_and(|probe| probe.size == size) {
            self.stats.probes_lost += 1;
            return self.fail(size);
        }
        let in_use = size > BASE && size <= self.current;
        if in_use {
            self.fall_back(size);
        }
        in_use
    }

    /// A probed size does not pass. `true` where it is the one in use.
    fn fail(&mut self, size: usize) -> bool {
        self.probe = None;
        if size == self.current {
            self.fall_back(size);
            return true;
        }
        self.search.fail(size);
        false
    }

    fn fall_back(&mut self, ceiling: usize) {
        self.stats.black_holes += 1;
        self.current = BASE;
        self.shrunk = true;
        self.search_below(ceiling.min(self.plan.limit + 1));
    }

    /// The raise timer has ended.
    fn raise(&mut self) {
        let confirms = !self.confirmed && self.current > BASE;
        self.shrunk = false;
        self.search_below(self.plan.limit + 1);
        self.search.confirms = confirms;
    }

    fn search_below(&mut self, ceiling: usize) {
        self.phase = MtuPhase::Searching;
        self.probe = None;
        self.raise_at = None;
        self.confirmed = false;
        self.search = Search::below(ceiling);
        self.detector = BlackHoleDetector::default();
    }

    fn complete(&mut self, now: Time) {
        self.phase = MtuPhase::SearchComplete;
        let interval = self.plan.raise_interval;
        self.raise_at = (!interval.is_zero()).then(|| now + interval);
    }
}
