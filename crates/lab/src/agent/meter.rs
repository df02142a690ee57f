//! The counters of a running flow.
//!
//! A meter holds the flow's own counters and, for each of its connections, a [`Probe`] that reads the
//! transport's. A connection's counters are kept when it closes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_counters::FlowCounters;
use weir_traffic::probe::{PathSample, Probe};
use weir_units::{ByteSize, Duration, Time};

use crate::control::{Completion, FlowFailure, FlowOutcome, FlowSample};

/// The counters of one end of a flow, or of one of its arrivals.
#[derive(Debug, Default)]
pub(super) struct FlowMeter {
    delivered: AtomicU64,
    /// The meter of the whole flow, which counts the same events.
    parent: Option<Arc<FlowMeter>>,
    rare: Mutex<RareCounts>,
}

/// Counters that change rarely.
#[derive(Debug, Default)]
struct RareCounts {
    outcome: FlowOutcome,
    /// The sum over closed connections.
    closed: PathSample,
    open: Vec<Probe>,
}

/// Watches a connection until this is dropped.
#[derive(Debug)]
pub(super) struct ProbeGuard {
    meter: Arc<FlowMeter>,
    probe: Probe,
}

impl FlowMeter {
    /// Returns a meter for a part of the flow.
    pub(super) fn part_of(whole: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            parent: Some(whole.clone()),
            ..Self::default()
        })
    }

    /// Counts bytes delivered to the application.
    pub(super) fn count_delivered(&self, bytes: u64) {
        self.each(|meter| {
            meter.delivered.fetch_add(bytes, Ordering::Relaxed);
        });
    }

    /// Counts datagrams sent or received, `marked` of them with a CE mark.
    pub(super) fn count_datagrams(&self, count: u64, marked: u64) {
        let mut flow_table = self.lock_rare();
        flow_table.outcome.datagrams += count;
        flow_table.closed.counters.marks += marked;
    }

    /// Records the completion of a transfer, request or round.
    pub(super) fn record_completion(&self, at: Time, took: Duration) {
        self.lock_rare()
            .outcome
            .completions
            .push(Completion { at, took });
    }

    /// Changes the outcome of this part of the flow.
    pub(super) fn update_outcome(&self, change: impl FnOnce(&mut FlowOutcome)) {
        change(&mut self.lock_rare().outcome);
    }

    /// Sets why the flow ended early; the first reason is kept.
    pub(super) fn fail(&self, failure: FlowFailure) {
        self.update_outcome(|outcome| {
            outcome.failure.get_or_insert(failure);
        });
    }

    /// Watches an open connection, which may have begun without a handshake.
    pub(super) fn watch(self: &Arc<Self>, probe: Probe, without_handshake: bool) -> ProbeGuard {
        self.each(|meter| {
            let mut flow_table = meter.lock_rare();
            flow_table.outcome.connections += 1;
            flow_table.outcome.connections_without_handshake += u64::from(without_handshake);
            flow_table.open.push(probe.clone());
        });
        ProbeGuard {
            meter: self.clone(),
            probe,
        }
    }

    /// Returns the current counters.
    pub(super) fn sample(&self, flow: u64) -> FlowSample {
        let flow_table = self.lock_rare();
        let path = flow_table.sum();
        FlowSample {
            flow,
            counters: self.counted(path.counters),
            window: path.cwnd,
            smoothed_rtt: path.smoothed_rtt,
        }
    }

    /// Returns the outcome for the final report.
    pub(super) fn outcome(&self) -> FlowOutcome {
        let mut flow_table = self.lock_rare();
        let path = flow_table.sum();
        let outcome = std::mem::take(&mut flow_table.outcome);
        FlowOutcome {
            counters: self.counted(path.counters),
            smoothed_rtt: path.smoothed_rtt,
            min_rtt: path.min_rtt,
            ..outcome
        }
    }

    /// Returns the transports' counters with the bytes delivered to the application.
    fn counted(&self, counters: FlowCounters) -> FlowCounters {
        FlowCounters {
            delivered: ByteSize::from_bytes(self.delivered.load(Ordering::Relaxed)),
            ..counters
        }
    }

    /// Applies `act` to this meter and to that of the whole flow.
    fn each(&self, mut act: impl FnMut(&Self)) {
        act(self);
        if let Some(whole) = &self.parent {
            act(whole);
        }
    }

    fn close(&self, probe: &Probe, last: &PathSample) {
        let mut flow_table = self.lock_rare();
        flow_table.open.retain(|open| !open.is_same(probe));
        add(&mut flow_table.closed, last);
    }

    /// Locks the counters. No holder of the lock can panic.
    fn lock_rare(&self) -> MutexGuard<'_, RareCounts> {
        self.rare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RareCounts {
    /// Returns the sum over all connections; the window is the mean of the open ones.
    fn sum(&self) -> PathSample {
        let mut sum = self.closed;
        let (mut windows, mut count) = (0, 0);
        for sample in self.open.iter().filter_map(Probe::sample) {
            add(&mut sum, &sample);
            windows += sample.cwnd.map_or(0, ByteSize::bytes);
            count += u64::from(sample.cwnd.is_some());
        }
        sum.cwnd = windows.checked_div(count).map(ByteSize::from_bytes);
        sum
    }
}

/// Adds a connection's counters to `sum`; takes its smoothed RTT, and the lesser minimum RTT.
fn add(sum: &mut PathSample, sample: &PathSample) {
    sum.counters += sample.counters;
    sum.smoothed_rtt = sample.smoothed_rtt.or(sum.smoothed_rtt);
    sum.min_rtt = sum.min_rtt.into_iter().chain(sample.min_rtt).min();
}

impl Drop for ProbeGuard {
    fn drop(&mut self) {
        let last = self.probe.sample().unwrap_or_default();
        self.meter.each(|meter| meter.close(&self.probe, &last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> Probe {
        Probe::new(|| {
            Some(PathSample {
                cwnd: Some(ByteSize::from_kib(10)),
                ..PathSample::default()
            })
        })
    }

    #[test]
    fn a_part_meter_adds_to_its_parent() {
        let whole = Arc::new(FlowMeter::default());
        let part = FlowMeter::part_of(&whole);
        part.count_delivered(5);
        whole.count_delivered(2);
        let watch = part.watch(probe(), true);
        assert!(whole.sample(7).window.is_some());
        drop(watch);
        assert_eq!(whole.sample(7).window, None);
        assert_eq!(whole.sample(7).counters.delivered, ByteSize::from_bytes(7));
        let outcome = part.outcome();
        assert_eq!(outcome.counters.delivered, ByteSize::from_bytes(5));
        for outcome in [outcome, whole.outcome()] {
            let connections = (outcome.connections, outcome.connections_without_handshake);
            assert_eq!(connections, (1, 1));
        }
    }

    #[test]
    fn the_first_failure_is_kept() {
        let meter = FlowMeter::default();
        let failure = |problem: &str| FlowFailure::Order {
            problem: problem.to_owned(),
        };
        meter.fail(failure("first"));
        meter.fail(failure("second"));
        meter.record_completion(Time::from_nanos(9), Duration::from_nanos(4));
        let outcome = meter.outcome();
        assert_eq!(outcome.failure, Some(failure("first")));
        assert_eq!(outcome.completions.len(), 1);
    }
}
