//! Path MTU discovery by the packetization layer (DPLPMTUD: RFC 8899, applied as in RFC 9000,
//! section 14.3), and black hole detection (RFC 8899, section 4.3).
//!
//! Each path has an [`MtuDiscovery`]. It starts with the size that the configuration and the peer's
//! parameters allow at once, and searches upwards. The connection asks for the size of the next
//! probe ([`MtuDiscovery::next_probe`]) and reports its sending. Recovery reports the fate of the
//! probe and of all other packets of the path. The loss of a probe is no congestion signal. The
//! current packet size is [`MtuDiscovery::current`].
//!
//! There is no timer: the fate of a probe comes from loss detection, and the raise timer is checked
//! when the connection sends, so that it does not wake an idle connection.
//!
//! | file | what it holds |
//! |---|---|
//! | `search` | chooses the next size |
//! | `black_hole` | detects losses caused by packet size |

mod black_hole;
mod search;
#[cfg(test)]
mod tests;

use weir_units::{Duration, Time};

use crate::interfaces::SMALLEST_MAX_UDP_PAYLOAD;
use black_hole::BlackHoleDetector;
use search::Search;

/// BASE_PLPMTU (RFC 8899, section 5.1.2): the UDP payload in bytes that every path carries.
pub(crate) const BASE: usize = SMALLEST_MAX_UDP_PAYLOAD;
/// MAX_PROBES (RFC 8899, section 5.1.2): the lost probes of one size after which it counts as too
/// large.
pub(crate) const MAX_PROBES: u8 = 3;

/// The lost probes of one size after which it counts as too large even if other packets were lost
/// with each of them.
const MAX_CONGESTED_PROBES: u8 = 12;
/// How often probes may contradict the detection of a black hole: they pass, but packets of their
/// size do not.
const TRUSTED_PROBES: u8 = 3;

/// The bounds of the search. Sizes are UDP payloads in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MtuPlan {
    /// The configured size, used at once.
    pub(crate) start: usize,
    /// The upper bound.
    pub(crate) limit: usize,
    /// The IP and UDP headers, in bytes.
    pub(crate) headers: usize,
    /// Whether the upper bound is probed for first, as most paths carry it.
    pub(crate) limit_first: bool,
    /// Whether an earlier connection has searched: the next search waits for the raise timer.
    pub(crate) is_searched: bool,
    /// PMTU_RAISE_TIMER (RFC 8899, section 5.1.1): the time from the end of a search to the next
    /// one; zero for never.
    pub(crate) raise_interval: Duration,
}

impl MtuPlan {
    /// The plan before the peer's limit is known: the base size, and no search.
    pub(crate) const BASE: Self = Self {
        start: BASE,
        limit: BASE,
        headers: 0,
        limit_first: false,
        is_searched: false,
        raise_interval: Duration::ZERO,
    };
}

/// The state of a path's MTU discovery (RFC 8899, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuPhase {
    /// The peer's limit is not known yet; packets have the base size.
    Disabled,
    /// Probes are sent.
    Searching,
    /// No larger size is worth a probe until the raise timer expires.
    SearchComplete,
}

/// Statistics of discovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MtuStats {
    /// Probes sent.
    pub(crate) probes_sent: u64,
    /// Probes lost, or too large for our own interface.
    pub(crate) probes_lost: u64,
    /// Black holes: how often the path stopped carrying a size in use.
    pub(crate) black_holes: u64,
}

/// A size under test.
#[derive(Clone, Copy, Debug)]
struct Probe {
    size: usize,
    failures: u8,
    /// Lost probes of this size that say little: other packets were lost with them.
    congested: u8,
    outstanding: bool,
}

/// The MTU discovery of one path.
#[derive(Clone, Debug)]
pub(crate) struct MtuDiscovery {
    plan: MtuPlan,
    /// The state of discovery.
    pub(crate) phase: MtuPhase,
    /// The largest packet that may be sent now, except for probes.
    pub(crate) current: usize,
    search: Search,
    probe: Option<Probe>,
    raise_at: Option<Time>,
    /// Whether a packet of the size in use has been acknowledged since the last search began.
    confirmed: bool,
    /// How many black holes were detected since then.
    alarms: u8,
    detector: BlackHoleDetector,
    /// Whether another packet has been lost since the last probe was sent.
    is_losing: bool,
    /// Statistics.
    pub(crate) stats: MtuStats,
}

impl MtuDiscovery {
    /// Creates a discovery that waits for [`MtuDiscovery::begin`]; until then packets have the base
    /// size.
    pub(crate) fn new() -> Self {
        Self {
            plan: MtuPlan::BASE,
            phase: MtuPhase::Disabled,
            current: BASE,
            search: Search::below(BASE + 1),
            probe: None,
            raise_at: None,
            confirmed: false,
            alarms: 0,
            detector: BlackHoleDetector::default(),
            is_losing: false,
            stats: MtuStats::default(),
        }
    }

    /// Starts discovery once the peer's parameters are known: packets get the first size of the
    /// plan, and larger sizes are searched for.
    pub(crate) fn begin(&mut self, now: Time, plan: MtuPlan) {
        let limit = plan.limit.max(BASE);
        self.plan = MtuPlan {
            limit,
            start: plan.start.clamp(BASE, limit),
            ..plan
        };
        self.current = self.plan.start;
        self.search_below(limit + 1);
        if plan.is_searched {
            self.complete(now);
        }
    }

    /// Returns the upper bound.
    pub(crate) fn limit(&self) -> usize {
        self.plan.limit
    }

    /// Updates the upper bound after a change of our own interface. The size found stays as far as
    /// it is still allowed; larger sizes are searched for again.
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

    /// Returns the size of the probe to send now; `None` if there is none. It returns the same size
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
            congested: 0,
            outstanding: false,
        });
        Some(size)
    }

    /// Whether no probe is outstanding or due.
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.probe.is_none()
            && self.phase != MtuPhase::Searching
            && self.raise_at.is_none_or(|at| now < at)
    }

    /// Records that the requested probe was sent.
    pub(crate) fn on_probe_sent(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.outstanding = true;
            self.is_losing = false;
            self.stats.probes_sent += 1;
        }
    }

    /// Handles the ACK of a probe of this size. An outdated probe is ignored: the path may have
    /// changed since.
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

    /// Handles the loss of a probe of this size.
    pub(crate) fn on_probe_lost(&mut self, size: usize) {
        let Some(probe) = &mut self.probe else {
            return;
        };
        if probe.size != size || !probe.outstanding {
            return;
        }
        probe.outstanding = false;
        self.stats.probes_lost += 1;
        // A full queue drops packets of any size.
        if self.is_losing {
            probe.congested += 1;
        } else {
            probe.failures += 1;
        }
        if probe.failures >= MAX_PROBES || probe.congested >= MAX_CONGESTED_PROBES {
            self.fail(size);
        }
    }

    /// Handles a move to another path: the fate of the probe stays unknown. It is sent again when
    /// the connection returns.
    pub(crate) fn on_path_left(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.outstanding = false;
        }
    }

    /// Handles the ACK of a packet other than a probe.
    pub(crate) fn on_acked(&mut self, number: u64, size: usize) {
        if size <= BASE {
            return;
        }
        self.confirmed |= size >= self.current;
        self.detector.on_acked(number, size);
    }

    /// Handles the loss of a packet other than a probe; `round_trip` is the path's RTT. `true`: the
    /// path has become a black hole for packets above the base size, and those in flight are lost.
    pub(crate) fn on_lost(
        &mut self,
        number: u64,
        size: usize,
        sent_at: Time,
        round_trip: Duration,
    ) -> bool {
        self.is_losing = true;
        // Packets above the size in use were sent before a black hole was detected.
        if size <= BASE || size > self.current {
            return false;
        }
        let Some(smallest) = self.detector.on_lost(number, size, sent_at, round_trip) else {
            return false;
        };
        // Congestion may look like this, and probes find out: the previous size is tried again.
        let ceiling = if self.alarms < TRUSTED_PROBES {
            self.current + 1
        } else {
            smallest
        };
        self.fall_back(ceiling);
        true
    }

    /// Handles a refusal of this size by our own interface (EMSGSIZE). `true`: it was the size in
    /// use, which falls back to the base.
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

    /// Records that a probed size does not pass. `true`: it is the size in use.
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
        self.alarms = self.alarms.saturating_add(1);
        self.search_below(ceiling.min(self.plan.limit + 1));
    }

    /// Restarts the search when the raise timer expires.
    fn raise(&mut self) {
        let confirms = !self.confirmed && self.current > BASE;
        self.alarms = 0;
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
