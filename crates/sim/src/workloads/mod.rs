//! Workloads: the data of a group's flows, and their times. One file per kind.
//!
//! A group's [`Application`] opens its flows, writes data, waits for deliveries, and closes the flows. It
//! acts on its timeouts and on events of its flows.

mod bulk;
mod calls;
mod cbr;
mod incast;
mod poisson;
mod request_response;
mod synchronized_requests;
mod timer_queue;
mod trace;
mod transfer;

use std::fmt::Debug;

use weir_network::Random;
use weir_scenario::{ConnectionUse, Group, Workload};
use weir_units::{Duration, Time};

use crate::flows::{FlowId, HostPair};
use crate::hosts::EndpointEvent;
use crate::world::World;

use calls::Calls;
use timer_queue::TimerQueue;

/// The application of a group's flows.
pub(crate) trait Application: Debug + Send {
    /// Returns when [`Self::handle_timeout`] has to be called next.
    fn timeout(&self) -> Option<Time>;

    /// Handles the timeouts that are due by `now`.
    fn handle_timeout(&mut self, now: Time, world: &mut World);

    /// Handles the delivery of the data that a flow of the group waits for.
    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World);

    /// Handles a failed connection of a flow. The flow ends unless it gets another connection now.
    fn on_failed(&mut self, _: Time, _: FlowId, _: &mut World) {}

    /// Handles the start of an epoch.
    fn on_epoch(&mut self, _: Time, _: &mut World) {}

    /// Takes over how much the group sends. What is left until the next arrival, or the next packet, becomes
    /// shorter or longer in proportion: a Poisson process has no memory, and goes on with the new rate.
    fn change_load(&mut self, _: Time, _: &Group) {}
}

/// A group at run time.
#[derive(Debug)]
pub(crate) struct GroupRunner {
    number: u32,
    application: Box<dyn Application>,
    stop: Option<Time>,
}

impl GroupRunner {
    /// Creates the group with this number.
    pub(crate) fn new(number: u32, group: &Group, seed: u64) -> Self {
        Self {
            number,
            application: application(number, group, Random::new(seed)),
            stop: group.stop,
        }
    }

    /// Returns when [`Self::handle_timeout`] has to be called next.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let application = self.application.timeout();
        application.into_iter().chain(self.stop).min()
    }

    /// Handles the timeouts that are due by `now`.
    pub(crate) fn handle_timeout(&mut self, now: Time, world: &mut World) {
        if self.stop.is_some_and(|stop| stop <= now) {
            self.stop = None;
            self.application = Box::new(Stopped);
            world.abort_group(now, self.number);
        }
        self.application.handle_timeout(now, world);
    }

    /// Takes over how much the group sends.
    pub(crate) fn change_load(&mut self, now: Time, group: &Group) {
        self.application.change_load(now, group);
    }

    /// Handles an event of a flow of the group.
    pub(crate) fn on_notice(
        &mut self,
        now: Time,
        flow: FlowId,
        notice: EndpointEvent,
        world: &mut World,
    ) {
        match notice {
            EndpointEvent::Delivered => self.application.on_delivered(now, flow, world),
            EndpointEvent::Closed => {
                if world.has_failed(flow) {
                    self.application.on_failed(now, flow, world);
                }
                world.on_closed(now, flow);
            }
        }
    }

    /// Handles the start of an epoch.
    pub(crate) fn on_epoch(&mut self, now: Time, world: &mut World) {
        self.application.on_epoch(now, world);
    }
}

/// A group that has stopped.
#[derive(Debug)]
struct Stopped;

impl Application for Stopped {
    fn timeout(&self) -> Option<Time> {
        None
    }
    fn handle_timeout(&mut self, _: Time, _: &mut World) {}
    fn on_delivered(&mut self, _: Time, _: FlowId, _: &mut World) {}
}

/// Returns a time after `from` that is later, or earlier, by this factor.
fn stretched(time: Time, from: Time, factor: f64) -> Time {
    from + time.since(from).mul_f64(factor)
}

fn application(number: u32, group: &Group, mut random: Random) -> Box<dyn Application> {
    let starts = starts(group, &mut random);
    match &group.workload {
        Workload::Bulk => Box::new(bulk::Bulk::new(number, starts)),
        Workload::Transfer {
            size,
            rounds,
            interval,
        } => {
            let rounds = transfer::TransferRounds {
                left: *rounds,
                begin: group.start,
                interval: interval.unwrap_or(Duration::ZERO),
                within: group.start_within,
            };
            Box::new(transfer::Transfers::new(
                number, starts, *size, rounds, random,
            ))
        }
        Workload::Cbr {
            rate,
            packet,
            arrivals,
        } => {
            let ticks = cbr::PacketSchedule::new(*rate, *packet, *arrivals, random);
            Box::new(cbr::Cbr::new(number, starts, group, *packet, ticks))
        }
        Workload::Incast {
            response,
            rounds,
            pause,
            spread,
        } => {
            let rounds = incast::IncastRounds {
                response: *response,
                count: *rounds,
                pause: *pause,
                spread: *spread,
            };
            Box::new(incast::Incast::new(number, starts, rounds, random))
        }
        Workload::RequestResponse {
            request,
            response,
            pause,
            requests,
            connection,
        } => {
            let calls = Calls::new(number, group, [*request, *response], *connection);
            let count = requests.map_or(u64::MAX, u64::from);
            Box::new(request_response::Requests::new(
                starts, calls, *pause, count,
            ))
        }
        Workload::Epochs {
            request, response, ..
        } => {
            let sizes = [*request, *response];
            let calls = Calls::new(number, group, sizes, ConnectionUse::Kept);
            Box::new(synchronized_requests::SynchronizedRequests::new(
                number, starts, calls,
            ))
        }
        Workload::Poisson { distribution, .. } => {
            let arrivals = poisson::Arrivals {
                mean_interval: poisson::mean_interval(group),
                sizes: distribution.clone(),
                hosts: group.arrival_pairs(),
            };
            Box::new(poisson::Poisson::new(number, group, arrivals, random))
        }
        Workload::Trace { trace } => Box::new(trace::TracedFlows::new(number, trace, group.start)),
    }
}

/// Returns the initial flows of a group, each with its start.
fn starts(group: &Group, random: &mut Random) -> TimerQueue<HostPair> {
    let count = match group.workload {
        Workload::Poisson { .. } | Workload::Trace { .. } => 0,
        _ => group.flows,
    };
    let mut starts = TimerQueue::new();
    for (from, to) in group.pairs() {
        for _ in 0..count {
            let start = group.start + random.span_up_to(group.start_within);
            starts.note(start, HostPair { from, to });
        }
    }
    starts
}
