//! Epochs: synchronized requests, and their statistics.
//!
//! Every flow of every group with the workload `epochs` takes part. The applications report when a flow
//! has started and when its request was answered. The next epoch begins when all were.

use weir_results::EpochSummary;
use weir_scenario::{Group, Scenario};
use weir_units::{Duration, Time};

/// The epochs of a run.
#[derive(Debug)]
pub(crate) struct Epochs {
    /// The number of epochs in the run.
    count: u32,
    /// The number of epochs that have begun.
    begun: u32,
    began_at: Time,
    /// Flows that have not started yet.
    missing: u64,
    flows: u64,
    /// Requests of this epoch that are not answered yet.
    due: u64,
    /// By group number.
    accounts: Vec<EpochStats>,
    reports: Vec<EpochReport>,
}

/// The epoch statistics of a group since the warm-up.
#[derive(Clone, Copy, Debug, Default)]
struct EpochStats {
    /// The flows that take part.
    flows: u64,
    /// Requests of this epoch that are not answered yet.
    due: u64,
    count: u64,
    total: Duration,
    lost: u64,
    /// The slowest request of the current epoch; `None` once one was given up.
    slowest: Option<Duration>,
}

/// The result of a request in an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochReport {
    pub(crate) group: u32,
    /// The flow's number in its group.
    pub(crate) index: u64,
    pub(crate) epoch: u32,
    pub(crate) start: Time,
    /// Its duration; `None` if it was given up.
    pub(crate) took: Option<Duration>,
    /// The number of connections that it used.
    pub(crate) attempts: u64,
}

impl Epochs {
    /// Creates the epochs of this scenario, which may be none.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let groups = scenario.groups.iter();
        let stats = |group: &Group| EpochStats {
            flows: match group.workload.epochs() {
                Some(_) => group.pairs().count() as u64 * u64::from(group.flows),
                None => 0,
            },
            slowest: Some(Duration::ZERO),
            ..EpochStats::default()
        };
        let accounts: Vec<_> = groups.clone().map(stats).collect();
        let flows = accounts.iter().map(|stats| stats.flows).sum();
        Self {
            count: groups
                .filter_map(|group| group.workload.epochs())
                .max()
                .unwrap_or(0),
            begun: 0,
            began_at: Time::ZERO,
            missing: flows,
            flows,
            due: 0,
            accounts,
            reports: Vec::new(),
        }
    }

    /// Records that a flow has started.
    pub(crate) fn join(&mut self) {
        self.missing = self.missing.saturating_sub(1);
    }

    /// Begins the next epoch if it is time, and returns its number.
    pub(crate) fn begin(&mut self, now: Time) -> Option<u32> {
        if !self.is_idle() || self.begun == self.count {
            return None;
        }
        let number = self.begun;
        self.begun += 1;
        self.began_at = now;
        self.due = self.flows;
        for stats in &mut self.accounts {
            stats.due = stats.flows;
        }
        Some(number)
    }

    /// Whether there were epochs, and all are complete.
    pub(crate) fn are_over(&self) -> bool {
        self.count > 0 && self.begun == self.count && self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.missing == 0 && self.due == 0
    }

    /// Records that a flow's request was answered, or given up (`took` is `None`).
    pub(crate) fn end_request(
        &mut self,
        (group, index): (u32, u64),
        took: Option<Duration>,
        attempts: u64,
    ) {
        self.due = self.due.saturating_sub(1);
        self.reports.push(EpochReport {
            group,
            index,
            epoch: self.begun.saturating_sub(1),
            start: self.began_at,
            took,
            attempts,
        });
        if let Some(stats) = self.accounts.get_mut(group as usize) {
            stats.end_request(took);
        }
    }

    /// Returns the new reports, oldest first.
    pub(crate) fn take_reports(&mut self) -> Vec<EpochReport> {
        std::mem::take(&mut self.reports)
    }

    /// Resets the statistics: the warm-up is over.
    pub(crate) fn forget(&mut self) {
        for stats in &mut self.accounts {
            (stats.count, stats.total, stats.lost) = (0, Duration::ZERO, 0);
        }
    }

    /// Returns the statistics of a group, if it takes part.
    pub(crate) fn summary(&self, group: u32) -> Option<EpochSummary> {
        let stats = self.accounts.get(group as usize)?;
        (stats.flows > 0).then_some(EpochSummary {
            count: stats.count,
            total: stats.total,
            lost: stats.lost,
        })
    }
}

impl EpochStats {
    /// Ends a request. The group's epoch is complete when all its requests were answered, independently of
    /// other groups.
    fn end_request(&mut self, took: Option<Duration>) {
        self.lost += u64::from(took.is_none());
        self.slowest = self.slowest.zip(took).map(|(one, other)| one.max(other));
        self.due = self.due.saturating_sub(1);
        if self.due == 0 {
            if let Some(slowest) = self.slowest {
                self.count += 1;
                self.total += slowest;
            }
            self.slowest = Some(Duration::ZERO);
        }
    }
}
