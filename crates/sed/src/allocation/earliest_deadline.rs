//! Earliest deadline first, with admission, and without stopping a flow.

use weir_units::Duration;

use super::{AllocationSettings, FlowDemand, LatePolicy, WindowAllocator};
use crate::schedule::Job;

/// Twin grows until the windows of one segment of all waiting flows are this part of it.
const WAITING_PART: u32 = 20;

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
        let share = match (due, others) {
            (0, _) => total.saturating_sub(given_up),
            (_, 0) => 0,
            // A window of one segment waits for delayed ACKs: one flow at a time has two.
            _ => ((f64::from(total) * settings.best_effort).ceil() as u32).max(others + 1),
        };
        let left = total.saturating_sub(share.max(others).saturating_add(due + given_up));
        self.admit(settings, flows, total, share.saturating_add(waiting));
        let left = self.serve_due(settings, flows, left);
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

    /// Serves the flows that can be in time, then the others with deadlines ahead; returns what is left.
    fn serve_due(
        &mut self,
        settings: &AllocationSettings,
        flows: &[FlowDemand],
        mut left: u32,
    ) -> u32 {
        // First what each can use, then what it might: its congestion window grows.
        for is_estimated in [true, false] {
            for in_time in [true, false] {
                let mut chosen = self.chosen.iter();
                for (window, flow) in self.windows.iter_mut().zip(flows) {
                    let Class::Due(job) = settings.class(flow) else {
                        continue;
                    };
                    if chosen.next() != Some(&in_time) {
                        continue;
                    }
                    // A flow that is larger than its demand says has an unknown rest.
                    let rest = if job.size.is_zero() {
                        flow.usable
                    } else {
                        flow.rest(&job)
                    };
                    let most = if is_estimated {
                        rest.min(flow.usable)
                    } else {
                        rest
                    };
                    let more = most.saturating_sub(*window).min(left);
                    *window += more;
                    left -= more;
                }
            }
        }
        left
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
