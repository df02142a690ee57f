//! The data transfer of a test: all lanes, sampled at intervals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at};
use weir_units::Duration;

use super::error::Error;
use super::lane::{DataConnection, LoopContext};
use super::measurement::{Interval, StreamInterval};
use super::parameters::Extent;
use super::path::{PathHistory, PathSample};
use super::protocol::{Outcome, StreamOutcome};
use crate::probe::Probe;
use crate::processor::ProcessorTime;

/// The sampling and the stall limit of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SamplingOptions {
    /// The time between two reports; zero if only the last one is reported.
    pub(super) interval: Duration,
    /// The maximum time without a transferred byte.
    pub(super) stall: Duration,
}

/// A running transfer. Dropping it ends it.
pub(super) struct Transfer {
    began: Instant,
    processor: ProcessorTime,
    extent: Extent,
    sends: bool,
    /// The congestion control of the connections.
    congestion: String,
    lanes: Vec<Running>,
    tasks: JoinSet<(usize, Instant, Result<(), Error>)>,
    /// The end of the last reported interval.
    reported: Duration,
}

struct Running {
    counter: Arc<AtomicU64>,
    /// It also keeps a receiver's connection open until the test is over.
    probe: Probe,
    history: PathHistory,
    reported: u64,
    elapsed: Duration,
}

impl Transfer {
    /// Starts the transfer. `sends` is the direction of the lanes.
    pub(super) fn begin(lanes: Vec<DataConnection>, extent: Extent, sends: bool) -> Self {
        let began = Instant::now();
        let (bytes, deadline) = match extent {
            Extent::Bytes(size) => (size.bytes(), None),
            Extent::Time(time) => (u64::MAX, began.checked_add(time.into())),
        };
        let budget = Arc::new(AtomicU64::new(bytes));
        let congestion = lanes.last().map(|lane| lane.congestion.clone());
        let mut tasks = JoinSet::new();
        let lanes = lanes.into_iter().enumerate().map(|(index, lane)| {
            let counter = Arc::default();
            let probe = lane.probe.clone();
            let work = lane.begin(LoopContext {
                counter: Arc::clone(&counter),
                budget: Arc::clone(&budget),
                deadline,
            });
            tasks.spawn(async move {
                let result = work.await;
                (index, Instant::now(), result)
            });
            Running {
                counter,
                probe,
                history: PathHistory::default(),
                reported: 0,
                elapsed: Duration::ZERO,
            }
        });
        Self {
            began,
            processor: ProcessorTime::now(),
            extent,
            sends,
            congestion: congestion.unwrap_or_default(),
            lanes: lanes.collect(),
            tasks,
            reported: Duration::ZERO,
        }
    }

    /// Runs to the end; `observe` is called for each interval.
    ///
    /// # Errors
    /// The first error of a lane, or [`Error::Stalled`].
    pub(super) async fn run(
        &mut self,
        watch: SamplingOptions,
        observe: &mut (dyn FnMut(Interval) + Send),
    ) -> Result<Outcome, Error> {
        let mut reports = ticks(self.began, watch.interval);
        let mut checks = ticks(self.began, (watch.stall / 4).min(Duration::from_secs(1)));
        let mut progress = (self.total(), Instant::now());
        loop {
            tokio::select! {
                ended = self.tasks.join_next() => match ended {
                    None => break,
                    Some(ended) => self.lane_ended(ended)?,
                },
                _ = reports.tick(), if !watch.interval.is_zero() => {
                    if self.is_report_due(watch.interval) {
                        observe(self.end_interval());
                    }
                }
                _ = checks.tick() => {
                    let total = self.total();
                    if total != progress.0 {
                        progress = (total, Instant::now());
                    } else if Duration::from(progress.1.elapsed()) >= watch.stall {
                        return Err(Error::Stalled(watch.stall));
                    }
                }
            }
        }
        let processor = ProcessorTime::now().since(self.processor);
        observe(self.end_interval());
        Ok(self.outcome(processor))
    }

    fn lane_ended(
        &mut self,
        ended: Result<(usize, Instant, Result<(), Error>), tokio::task::JoinError>,
    ) -> Result<(), Error> {
        let (index, at, result) = ended.map_err(|error| Error::Internal(error.to_string()))?;
        result?;
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.elapsed = at.duration_since(self.began).into();
        }
        Ok(())
    }

    /// Returns whether an interval is over; the last one ends with the test, not just before it.
    fn is_report_due(&self, interval: Duration) -> bool {
        match self.extent {
            Extent::Time(time) => Duration::from(self.began.elapsed()) + interval / 10 < time,
            Extent::Bytes(_) => true,
        }
    }

    fn total(&self) -> u64 {
        self.lanes
            .iter()
            .map(|lane| lane.counter.load(Ordering::Relaxed))
            .sum()
    }

    fn end_interval(&mut self) -> Interval {
        let end = Duration::from(self.began.elapsed());
        let start = std::mem::replace(&mut self.reported, end);
        let sends = self.sends;
        let lanes = self.lanes.iter_mut();
        Interval {
            start,
            end,
            streams: lanes.map(|lane| lane.end_interval(sends)).collect(),
        }
    }

    fn outcome(&self, processor: ProcessorTime) -> Outcome {
        let stream = |lane: &Running| StreamOutcome {
            bytes: lane.counter.load(Ordering::Relaxed),
            elapsed: lane.elapsed,
            path: lane.history.summary(),
            reception: lane
                .probe
                .sample()
                .filter(|_| !self.sends)
                .and_then(|sample| sample.reception),
        };
        let streams: Vec<StreamOutcome> = self.lanes.iter().map(stream).collect();
        Outcome {
            elapsed: streams
                .iter()
                .map(|stream| stream.elapsed)
                .max()
                .unwrap_or_default(),
            streams,
            processor,
            congestion: self.congestion.clone(),
        }
    }
}

impl Running {
    /// Ends an interval. Only a sender's state of the path is relevant for the data.
    fn end_interval(&mut self, sends: bool) -> StreamInterval {
        let total = self.counter.load(Ordering::Relaxed);
        let bytes = total - std::mem::replace(&mut self.reported, total);
        let sample = sends.then(|| self.probe.sample()).flatten();
        let path = sample.as_ref().and_then(PathSample::of).map(|sample| {
            let path = sample.since(self.history.last());
            self.history.add(sample);
            path
        });
        StreamInterval { bytes, path }
    }
}

/// Returns a timer that ticks at multiples of `period` after `began`.
fn ticks(began: Instant, period: Duration) -> tokio::time::Interval {
    // A timer needs a period above zero, even if it is not used.
    let period = std::time::Duration::from(period.max(Duration::from_millis(1)));
    let mut ticks = interval_at((began + period).into(), period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}
