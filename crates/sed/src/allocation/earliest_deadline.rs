//! Earliest deadline first, with admission, and without stopping a flow.

use weir_units::Duration;

use super::{AllocationSettings, FlowDemand, LatePolicy, WindowAllocator};
use crate::schedule::Job;

/// Twin grows until the windows of one segment of all waiting flows are this part of it.
const WAITING_PART: u32 = 40;

/// Flows are served together if they are due within so many times the time until the first deadline. In a
/// queue that is longer for them, later ones would delay the first.
const HORIZON: u64 = 2;

/// What a flow is to the allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// It has nothing to send.
    Idle,
    /// It has a deadline ahead.
    Due(Job),
    /// It has no deadline, or is late.
    BestEffort,
    /// It is late, and is not to be served any more.
    GivenUp,
}

/// The segments of flows that wait for those with deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    /// Of flows with deadlines themselves.
    due: u32,
    /// Of flows without.
    others: u32,
}

impl AllocationSettings {
    fn class(&self, flow: &FlowDemand) -> Class {
        match flow.job {
            _ if flow.usable == 0 => Class::Idle,
            Some(job) if !job.due.is_zero() => Class::Due(job),
            Some(_) if self.late == LatePolicy::Stop => Class::GivenUp,
            _ => Class::BestEffort,
        }
    }
}

impl WindowAllocator {
    /// Sets the windows. Each flow has one segment at least; idle flows, which use nothing, are not
    /// counted.
    pub(super) fn serve_earliest(&mut self, settings: &AllocationSettings, flows: &[FlowDemand]) {
        let Waiting { due, others } = self.serve(settings, flows, settings.total, 0);
        // In a longer queue the windows of waiting flows are a smaller part.
        let wanted = (due + others).saturating_mul(WAITING_PART);
        let total = wanted.min(settings.most).max(settings.total);
        if due > 0 || total > settings.total {
            self.serve(settings, flows, total, due);
        }
    }

    /// Divides `total` segments, of which flows with deadlines that wait have about `waiting`. Returns what
    /// flows have that wait for those with deadlines.
    fn serve(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        total: u32,
        waiting: u32,
    ) -> Waiting {
        self.windows.clear();
        self.windows.resize(flows.len(), 1);
        let classes = || flows.iter().map(|flow| settings.class(flow));
        let count = |is: fn(Class) -> bool| classes().filter(|class| is(*class)).count() as u32;
        let due = count(|class| matches!(class, Class::Due(_)));
        let others = count(|class| class == Class::BestEffort);
        let given_up = count(|class| class == Class::GivenUp);
        let share_of = |total: u32| match (due, others) {
            (0, _) => total.saturating_sub(given_up),
            (_, 0) => 0,
            // A window of one segment waits for delayed ACKs: one flow at a time has two.
            _ => ((f64::from(total) * settings.best_effort).ceil() as u32).max(others + 1),
        };
        let share = share_of(total);
        self.admit(settings, flows, total, share.saturating_add(waiting));
        let single = due + given_up;
        let left = total.saturating_sub(share.saturating_add(single));
        let taken = self.serve_nearest(settings, flows, left);
        // The others keep the link busy. A longer queue would delay these, which may still be in slow start.
        let used = taken.saturating_add(single);
        let in_flight = self.in_flight(settings, flows);
        let share = share_of(in_flight.saturating_add(share).min(total));
        let left = settings.total.saturating_sub(share.saturating_add(used));
        let left = self.serve_later(settings, flows, left);
        self.share_rest(settings, flows, share, left);
        let served = self.windows.iter().zip(classes());
        let waits =
            |(window, class): &(&u32, Class)| **window == 1 && matches!(class, Class::Due(_));
        Waiting {
            due: served.filter(waits).count() as u32 + given_up,
            others: match (due, others) {
                (0, _) | (_, 0) => 0,
                _ => others + 1,
            },
        }
    }

    /// Chooses the flows that can be in time together, where others have `share` of `total`.
    fn admit(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        total: u32,
        share: u32,
    ) {
        // What is sent now arrives behind the queue.
        let early = settings.rtt;
        let jobs = flows.iter().filter_map(|flow| match settings.class(flow) {
            Class::Due(job) => Some(Job {
                due: job.due.checked_sub(early).unwrap_or(Duration::ZERO),
                ..job
            }),
            _ => None,
        });
        let part = 1.0 - f64::from(share) / f64::from(total.max(1));
        let rate = settings.rate.mul_f64(part.max(0.0));
        self.chooser.choose(jobs, rate, &mut self.chosen);
    }

    /// Gives the flows that can be in time together, and have to be soon, `left` segments beyond the first
    /// one of each. Returns how many of these they are expected to have in flight.
    fn serve_nearest(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        mut left: u32,
    ) -> u32 {
        let first = self.with_deadline(settings, flows, true).next();
        let Some(first) = first.map(|(_, _, job)| job.due) else {
            return 0;
        };
        let horizon = first * HORIZON;
        let is_near = |(_, _, job): &(&mut u32, &FlowDemand, Job)| job.due <= horizon;
        let in_time = self.with_deadline(settings, flows, true);
        for (window, flow, job) in in_time.take_while(is_near) {
            let remaining = flow.remaining(&job);
            // The next flow begins its slow start before this one has ended.
            let most = (remaining.div_ceil(2)).max(left / 2).min(left + 1);
            *window = (remaining.min(flow.usable)).clamp(1, most.max(1));
            left -= flow.expected.clamp(1, *window) - 1;
        }
        let mut taken = 0_u32;
        let in_time = self.with_deadline(settings, flows, true);
        for (window, flow, job) in in_time.take_while(is_near) {
            // What it might use beyond that.
            let more = flow.remaining(&job).saturating_sub(*window).min(left);
            *window += more;
            left -= more;
            let used = if flow.is_growing {
                *window
            } else {
                flow.expected.clamp(1, *window)
            };
            taken = taken.saturating_add(used - 1);
        }
        taken
    }

    /// Returns how much of their windows the flows with deadlines have in flight, in segments.
    fn in_flight(&self, settings: &AllocationSettings, flows: &[FlowDemand]) -> u32 {
        let served = self.windows.iter().zip(flows);
        let due = served.filter(|(_, flow)| matches!(settings.class(flow), Class::Due(_)));
        due.fold(0, |sum, (window, flow)| {
            sum.saturating_add(flow.in_flight.clamp(1, *window))
        })
    }

    /// Gives `left` segments to the other flows that can be in time, then to those that cannot. Returns what
    /// is left.
    fn serve_later(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        mut left: u32,
    ) -> u32 {
        for in_time in [true, false] {
            for (window, flow, job) in self.with_deadline(settings, flows, in_time) {
                let most = flow.remaining(&job).min(flow.usable);
                let more = most.saturating_sub(*window).min(left);
                *window += more;
                left -= more;
            }
        }
        left
    }

    /// Returns the flows with deadlines ahead that can be in time, or the others, with their windows.
    fn with_deadline<'a>(
        &'a mut self,
        settings: &'a AllocationSettings,
        flows: &'a [FlowDemand],
        in_time: bool,
    ) -> impl Iterator<Item = (&'a mut u32, &'a FlowDemand, Job)> {
        let mut chosen = self.chosen.iter();
        let flows = self.windows.iter_mut().zip(flows);
        flows.filter_map(move |(window, flow)| {
            let Class::Due(job) = settings.class(flow) else {
                return None;
            };
            (chosen.next() == Some(&in_time)).then_some((window, flow, job))
        })
    }

    /// Divides the share of the flows without deadline, and what the others have left.
    fn share_rest(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        share: u32,
        left: u32,
    ) {
        let takes = |flow: &FlowDemand| settings.class(flow) == Class::BestEffort;
        let count = flows.iter().filter(|flow| takes(flow)).count() as u32;
        if count == 0 {
            return;
        }
        let all = share.saturating_add(left);
        let (each, rest) = (all / count, all % count);
        // What cannot be divided goes to one flow after the other.
        let favoured = settings.round % count;
        let takers = self.windows.iter_mut().zip(flows);
        let takers = takers.filter(|(_, flow)| takes(flow));
        for (number, (window, _)) in (0..).zip(takers) {
            let extra = if number == favoured { rest } else { 0 };
            *window = (each + extra).max(1);
        }
    }
}
