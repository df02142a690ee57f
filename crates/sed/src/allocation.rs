//! Who may send how much: the paper's Algorithm 2, and a plan that does better where not everybody can
//! finish in time.
//!
//! Both are functions of the flows of one port and of nothing else, in whole segments. The paper leaves
//! open how a window is rounded (up: what is needed is had), what the base rate is (a setting, one segment
//! by default), whether it is kept where the total is too small for it (it is: without it a flow would
//! starve), and who gets what is left where no flow is without deadline (those with one, evenly).

use weir_units::{ByteSize, Duration, Rate};

use crate::schedule::{Job, JobScheduler};

/// How windows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Algorithm 2: each flow with a deadline gets what it needs to meet it just so.
    Paper,
    /// The flows that can be in time altogether are found first (Moore–Hodgson); then flows are sent in
    /// turns, the earliest deadline first, and wait at zero for theirs.
    Planned,
}

/// What becomes of a flow whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatePolicy {
    /// It gets its share of what is left, after the others.
    Spare,
    /// It is stopped: what it carries is of no use any more (lines 2 to 4 of Algorithm 2).
    Stop,
}

/// What decides the windows of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllocationSettings {
    /// How they are chosen.
    pub method: Method,
    /// Twin, in segments: the sum of all windows.
    pub total: u32,
    /// The round-trip time of equation 4.
    pub rtt: Duration,
    /// The rate at which the port carries data, headers not counted.
    pub rate: Rate,
    /// What a flow without deadline has at least, in segments.
    pub base: u32,
    /// What becomes of flows that are late.
    pub late: LatePolicy,
}

/// A flow that wants a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDemand {
    /// The data of a full segment, in bytes.
    pub segment: u32,
    /// What it has left to carry by when; `None` without deadline. No time left means late.
    pub job: Option<Job>,
}

impl FlowDemand {
    /// Equation 4: the window with which the rest arrives just in time, in segments, rounded up.
    fn needed(&self, job: &Job, rtt: Duration) -> u32 {
        let (size, rtt) = (job.size.bytes(), rtt.as_nanos());
        let (due, segment) = (job.due.as_nanos().max(1), u64::from(self.segment.max(1)));
        let segments = match (size.checked_mul(rtt), due.checked_mul(segment)) {
            // What is usual fits, and is several times faster.
            (Some(product), Some(left)) => u32::try_from(product.div_ceil(left)),
            _ => {
                let product = u128::from(size) * u128::from(rtt);
                u32::try_from(product.div_ceil(u128::from(due) * u128::from(segment)))
            }
        };
        self.rest(job).min(segments.unwrap_or(u32::MAX).max(1))
    }

    /// How many segments are left; one at least, as its last one may get lost.
    fn rest(&self, job: &Job) -> u32 {
        let segments = job.size.bytes().div_ceil(u64::from(self.segment.max(1)));
        u32::try_from(segments).unwrap_or(u32::MAX).max(1)
    }
}

/// The windows of the flows of a port, in segments. `flows` with deadlines come in the order of these.
pub fn allocate(settings: &AllocationSettings, flows: &[FlowDemand]) -> Vec<u32> {
    WindowAllocator::default().divide(settings, flows).to_vec()
}

/// Computes windows without asking for memory anew each time: for 100,000 flows that is a good part of the
/// work.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowAllocator {
    windows: Vec<u32>,
    chooser: JobScheduler,
    chosen: Vec<bool>,
}

impl WindowAllocator {
    /// As [`allocate`].
    pub(crate) fn divide(&mut self, settings: &AllocationSettings, flows: &[FlowDemand]) -> &[u32] {
        self.windows.clear();
        self.windows.resize(flows.len(), 0);
        let windows = &mut self.windows;
        let mut left = settings.total;
        for (window, _) in without_deadline(windows, flows) {
            *window = settings.base;
            left = left.saturating_sub(settings.base);
        }
        left = match settings.method {
            // There is nothing to be divided.
            _ if left == 0 => 0,
            Method::Paper => meet_exactly(settings, flows, windows, left),
            Method::Planned => self.take_turns(settings, flows, left),
        };
        share(settings, flows, &mut self.windows, left);
        &self.windows
    }

    /// First those that can be in time, then the others. A turn of theirs is no less than equation 4 asks for.
    fn take_turns(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        mut left: u32,
    ) -> u32 {
        let early = settings.rtt * 2;
        // What is sent arrives a round trip before its ACK is counted, and slow start takes another one.
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

/// Lines 10 to 17: what each needs, or nothing where that does not fit.
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

/// How many flows have a turn at once: a window of that part of the total is reached within two or three
/// round trips of slow start, during which the others keep the link busy.
const TURNS: u32 = 6;

/// Lines 26 to 28: what is left goes to the flows without deadline, and to those that are late; where
/// there are none, to those that have a window.
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

/// The sum of all windows: `Twin = K + C · RTT` (equation 3), in packets of this size.
pub fn total_window(threshold: ByteSize, rate: Rate, rtt: Duration, packet: ByteSize) -> u32 {
    let bytes = threshold.bytes().saturating_add(rate.size_in(rtt).bytes());
    u32::try_from(bytes / packet.bytes().max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
