//! The windows of a port's flows: the paper's Algorithm 2, and a plan that does better where not all
//! flows can meet their deadlines.
//!
//! Both depend on the flows of one port only, and count in whole segments. The paper leaves some points
//! open. Windows are rounded up, so that a flow gets what it needs. The base rate is a setting, one
//! segment by default. It is kept where the total is too small for it: otherwise a flow would starve.
//! Without flows that have no deadline, the rest is shared evenly by those with one.

mod earliest_deadline;

use weir_units::{ByteSize, Duration, Rate};

use crate::schedule::{Job, JobScheduler};

/// How windows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The flows that can be in time together are served first (Moore–Hodgson), the earliest deadline
    /// first, each as much as it can send; flows without deadline keep a part. No flow is stopped: each
    /// has a window of one segment at least.
    EarliestDeadline,
    /// Algorithm 2: each flow with a deadline gets the window that just meets it.
    Paper,
    /// First the flows that can be in time together are chosen (Moore–Hodgson). Then flows send in
    /// turns, the earliest deadline first, and wait for their turn with a window of zero.
    Planned,
}

/// How a flow is treated after its deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatePolicy {
    /// It shares the rest, after the others.
    Spare,
    /// It is stopped, as its data is of no use any more (lines 2 to 4 of Algorithm 2).
    Stop,
}

/// The inputs for the windows of a port, beside its flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllocationSettings {
    /// How windows are chosen.
    pub method: Method,
    /// Twin, in segments: the sum of all windows.
    pub total: u32,
    /// The RTT of equation 4.
    pub rtt: Duration,
    /// The port's rate of payload, without headers.
    pub rate: Rate,
    /// The least window of a flow without deadline, in segments.
    pub base: u32,
    /// How late flows are treated.
    pub late: LatePolicy,
    /// The least share of the flows without deadline ([`Method::EarliestDeadline`]), from 0 to 1.
    pub best_effort: f64,
    /// The most that Twin may grow to, so that the windows of one segment of all waiting flows stay a
    /// small part of it ([`Method::EarliestDeadline`]).
    pub most: u32,
    /// A number that increases: flows without deadline take turns with windows that are too small to be
    /// shared ([`Method::EarliestDeadline`]).
    pub round: u32,
}

/// The inputs of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDemand {
    /// The payload of a full segment, in bytes.
    pub segment: u32,
    /// The remaining bytes and time; `None` without deadline. No time left means late.
    pub job: Option<Job>,
    /// How much it can use within the next round trip, in segments: zero if it has nothing to send
    /// ([`Method::EarliestDeadline`]).
    pub usable: u32,
    /// What it has in flight, in segments; the largest number where that is unknown
    /// ([`Method::EarliestDeadline`]).
    pub in_flight: u32,
    /// How much of what it can use it will have in flight: less where it does not fill its window
    /// ([`Method::EarliestDeadline`]).
    pub expected: u32,
    /// Whether what it has in flight grows quickly, so that it may soon use all of any window
    /// ([`Method::EarliestDeadline`]).
    pub is_growing: bool,
}

impl FlowDemand {
    /// Returns the remaining segments. A flow that is larger than its demand says has an unknown rest.
    fn remaining(&self, job: &Job) -> u32 {
        if job.size.is_zero() {
            self.usable
        } else {
            self.rest(job)
        }
    }

    /// Returns equation 4: the window with which the rest arrives just in time, in segments, rounded
    /// up.
    fn needed(&self, job: &Job, rtt: Duration) -> u32 {
        let (size, rtt) = (job.size.bytes(), rtt.as_nanos());
        let (due, segment) = (job.due.as_nanos().max(1), u64::from(self.segment.max(1)));
        let segments = match (size.checked_mul(rtt), due.checked_mul(segment)) {
            // Usual values fit, which is several times faster.
            (Some(product), Some(left)) => u32::try_from(product.div_ceil(left)),
            _ => {
                let product = u128::from(size) * u128::from(rtt);
                u32::try_from(product.div_ceil(u128::from(due) * u128::from(segment)))
            }
        };
        self.rest(job).min(segments.unwrap_or(u32::MAX).max(1))
    }

    /// Returns the remaining segments; one at least, as its last one may get lost.
    fn rest(&self, job: &Job) -> u32 {
        let segments = job.size.bytes().div_ceil(u64::from(self.segment.max(1)));
        u32::try_from(segments).unwrap_or(u32::MAX).max(1)
    }
}

/// Returns the windows of a port's flows, in segments. `flows` with deadlines must be ordered by
/// deadline.
pub fn allocate(settings: &AllocationSettings, flows: &[FlowDemand]) -> Vec<u32> {
    WindowAllocator::default()
        .allocate(settings, flows)
        .to_vec()
}

/// Computes windows with reused buffers: for 100,000 flows allocation is a good part of the work.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowAllocator {
    windows: Vec<u32>,
    chooser: JobScheduler,
    chosen: Vec<bool>,
}

impl WindowAllocator {
    /// As [`allocate`].
    pub(crate) fn allocate(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
    ) -> &[u32] {
        self.windows.clear();
        self.windows.resize(flows.len(), 0);
        let windows = &mut self.windows;
        if settings.method == Method::EarliestDeadline {
            self.serve_earliest(settings, flows);
            return &self.windows;
        }
        let mut left = settings.total;
        for (window, _) in without_deadline(windows, flows) {
            *window = settings.base;
            left = left.saturating_sub(settings.base);
        }
        left = match settings.method {
            // Nothing is left to share.
            _ if left == 0 => 0,
            Method::Paper | Method::EarliestDeadline => {
                meet_exactly(settings, flows, windows, left)
            }
            Method::Planned => self.take_turns(settings, flows, left),
        };
        share(settings, flows, &mut self.windows, left);
        &self.windows
    }

    /// Serves the flows that can be in time first, then the others. A turn of the former is no smaller
    /// than equation 4 requires.
    fn take_turns(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        mut left: u32,
    ) -> u32 {
        let early = settings.rtt * 2;
        // Data arrives one RTT before its ACK is counted, and slow start takes another one.
        let earlier = |job: Job| Job {
            due: job.due.checked_sub(early).unwrap_or(Duration::ZERO),
            ..job
        };
        let jobs = flows.iter().filter_map(|flow| flow.job.map(earlier));
        let part = f64::from(left) / f64::from(settings.total.max(1));
        let rate = settings.rate.mul_f64(part);
        self.chooser.choose(jobs, rate, &mut self.chosen);
        let turn = (settings.total / TURNS).max(1);
        for in_time in [true, false] {
            let mut chosen = self.chosen.iter();
            for (window, flow) in self.windows.iter_mut().zip(flows) {
                let Some(job) = flow.job else {
                    continue;
                };
                let is_stopped = job.due.is_zero() && settings.late == LatePolicy::Stop;
                if chosen.next() != Some(&in_time) || is_stopped {
                    continue;
                }
                if left == 0 {
                    return 0;
                }
                let needed = if in_time {
                    flow.needed(&earlier(job), settings.rtt)
                } else {
                    0
                };
                *window = flow.rest(&job).min(turn.max(needed)).min(left);
                left -= *window;
            }
        }
        left
    }
}

fn without_deadline<'a>(
    windows: &'a mut [u32],
    flows: &'a [FlowDemand],
) -> impl Iterator<Item = (&'a mut u32, &'a FlowDemand)> {
    let flows = windows.iter_mut().zip(flows);
    flows.filter(|(_, flow)| flow.job.is_none())
}

/// Lines 10 to 17: each flow gets what it needs, or nothing if that does not fit.
fn meet_exactly(
    settings: &AllocationSettings,
    flows: &[FlowDemand],
    windows: &mut [u32],
    mut left: u32,
) -> u32 {
    for (window, flow) in windows.iter_mut().zip(flows) {
        let Some(job) = flow.job.filter(|job| !job.due.is_zero()) else {
            continue;
        };
        let needed = flow.needed(&job, settings.rtt);
        if needed <= left {
            *window = needed;
            left -= needed;
        }
    }
    left
}

/// How many flows have a turn at once. Slow start reaches a window of this part of the total within two
/// or three round trips, during which the other flows keep the link busy.
const TURNS: u32 = 6;

/// Lines 26 to 28: shares the rest among the flows without deadline and the late ones; without any,
/// among those that have a window.
fn share(settings: &AllocationSettings, flows: &[FlowDemand], windows: &mut [u32], left: u32) {
    if left == 0 {
        return;
    }
    let is_spare = |flow: &FlowDemand| match flow.job {
        None => true,
        Some(job) => {
            job.due.is_zero()
                && settings.late == LatePolicy::Spare
                && settings.method == Method::Paper
        }
    };
    let any_spare = flows.iter().any(is_spare);
    let takes = |flow: &FlowDemand, window: u32| {
        if any_spare {
            is_spare(flow)
        } else {
            window > 0
        }
    };
    let takers = windows.iter().zip(flows);
    let count = takers
        .filter(|(window, flow)| takes(flow, **window))
        .count() as u32;
    let (each, mut rest) = match count {
        0 => return,
        count => (left / count, left % count),
    };
    for (window, flow) in windows.iter_mut().zip(flows) {
        if takes(flow, *window) {
            let one = rest.min(1);
            rest -= one;
            *window = window.saturating_add(each + one);
        }
    }
}

/// Returns the sum of all windows: `Twin = K + C · RTT` (equation 3), in packets of this size.
pub fn total_window(threshold: ByteSize, rate: Rate, rtt: Duration, packet: ByteSize) -> u32 {
    let bytes = threshold.bytes().saturating_add(rate.size_in(rtt).bytes());
    u32::try_from(bytes / packet.bytes().max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
