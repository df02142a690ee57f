//! Reports of what flows and queues do, for windows that follow it
//! ([`Method::EarliestDeadline`](crate::Method::EarliestDeadline)).

use std::collections::BTreeMap;

use weir_fabric::{ConnectionId, Direction, Output, Packet, PortIndex};
use weir_units::{Duration, Time};
use weir_wire::FlowKey;
use weir_wire::tcp::Segment;

use super::Agent;
use super::flow::FlowDirection;
use crate::controller::INITIAL_WINDOW;
use crate::message::{FlowProgress, QueueState, SwitchReport};

/// A flow of which nothing passes for this long leaves the controller's table.
const SILENT_AFTER: Duration = Duration::from_millis(700);
/// Each flow in the controller's table is reported at least this often: one that is not has ended,
/// though the report of its end was lost.
const REPEATED_AFTER: Duration = Duration::from_millis(250);
/// A flow is idle if nothing has been in flight for this many intervals.
const IDLE_AFTER: u64 = 2;
/// A flow waits for its window if all but this part of the window is in flight.
const ON_THE_WAY: u32 = 4;
/// Without windows in force, reports are this many intervals apart.
const UNLIMITED: u64 = 10;

/// What the flows of a port have in flight.
#[derive(Clone, Copy, Debug, Default)]
struct PortLoad {
    in_flight: u64,
    is_window_limited: bool,
}

impl<P: Packet + Clone + Send + 'static> Agent<P> {
    /// Notes a segment. A flow that begins to send is reported at once, one that the controller does not
    /// know once it has sent more than an initial window: most never do.
    pub(super) fn note_activity(
        &mut self,
        now: Time,
        id: ConnectionId,
        direction: Direction,
        flow: FlowKey,
        segment: &Segment,
    ) {
        if !self.config.never_stops {
            return;
        }
        self.schedule_progress(now + self.progress_interval());
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let full = connection.handshake.segment_size(direction);
        let half = connection.state.half_mut(direction);
        let (true, true, Some(port), Some(full)) =
            (half.is_open, segment.payload > 0, half.egress, full)
        else {
            return;
        };
        let activity = &mut half.activity;
        if activity.is_known && !activity.is_idle {
            return;
        }
        activity.unreported += u64::from(segment.payload);
        let few = u64::from(INITIAL_WINDOW) * u64::from(full);
        if !activity.is_known && activity.unreported <= few {
            return;
        }
        activity.is_known = true;
        activity.is_idle = false;
        activity.unreported = 0;
        self.reports.push_back(SwitchReport::Active {
            flow,
            port: port.index() as u32,
            segment: full,
            age: now.since(half.opened_at),
            acknowledged: half.acknowledged_bytes(),
            demand: half.demand,
        });
    }

    /// Reports the flows that have changed and the queues, and those flows as closed that are silent.
    pub(super) fn report_progress(&mut self, now: Time, out: &mut Output<'_, P>) {
        let idle_after = self.config.counters_interval * IDLE_AFTER;
        let mut ports: BTreeMap<PortIndex, PortLoad> = BTreeMap::new();
        let mut flows = Vec::new();
        let mut any_known = false;
        for (_, connection) in self.connections.iter_mut() {
            let (flow, handshake) = (connection.flow, connection.handshake);
            for (direction, flow) in [
                (Direction::Forward, flow),
                (Direction::Reverse, flow.reversed()),
            ] {
                let half = connection.state.half_mut(direction);
                let in_flight = half.in_flight();
                if let Some(port) = half.egress.filter(|_| in_flight > 0) {
                    let full = handshake.segment_size(direction).unwrap_or(1);
                    let load = ports.entry(port).or_default();
                    load.in_flight += u64::from(in_flight);
                    // ACKs that have passed may not have come to the sender yet, nor its data here.
                    load.is_window_limited |= half.limit.is_some_and(|limit| {
                        in_flight.saturating_add(full) > limit - limit / ON_THE_WAY
                    });
                }
                let quiet = now.since(half.activity.passed_at);
                let is_idle = in_flight == 0 && quiet >= idle_after;
                if is_idle {
                    half.activity.unreported = 0;
                }
                if !half.activity.is_known {
                    continue;
                }
                if quiet > SILENT_AFTER {
                    half.activity.is_known = false;
                    half.activity.is_idle = false;
                    self.reports.push_back(SwitchReport::Closed { flow });
                    continue;
                }
                any_known = true;
                flows.extend(half.progress(now, flow, is_idle));
            }
        }
        self.links.retain(|port| ports.contains_key(port));
        let queues: Vec<_> = ports
            .into_iter()
            .filter_map(|(port, load)| {
                let egress_port = out.egress_port(port)?;
                Some(QueueState {
                    port: port.index() as u32,
                    backlog: egress_port.queue().backlog().size.bytes(),
                    idle: self.links.take_idle(now, port, egress_port),
                    in_flight: load.in_flight,
                    is_window_limited: load.is_window_limited,
                })
            })
            .collect();
        self.next_counters = None;
        if !queues.is_empty() {
            self.schedule_progress(now + self.progress_interval());
        } else if any_known {
            self.schedule_progress(now + REPEATED_AFTER);
        }
        if !flows.is_empty() || !queues.is_empty() {
            self.reports
                .push_back(SwitchReport::Progress { flows, queues });
        }
    }

    /// Has all flows reported again, to a controller that has just started.
    pub(super) fn report_again(&mut self, now: Time) {
        for (_, connection) in self.connections.iter_mut() {
            for direction in [Direction::Forward, Direction::Reverse] {
                let half = connection.state.half_mut(direction);
                half.activity.reported = None;
                // Only flows that began with a SYN of their own, or have a demand, were described.
                half.activity.is_known =
                    half.is_open && (direction == Direction::Forward || half.demand.is_some());
                half.activity.is_idle = false;
            }
        }
        self.schedule_progress(now);
    }

    fn progress_interval(&self) -> Duration {
        let interval = self.config.counters_interval;
        if self.leased_until.is_some() || self.queues.any_congested() {
            interval
        } else {
            interval * UNLIMITED
        }
    }

    fn schedule_progress(&mut self, time: Time) {
        let next = self.next_counters.get_or_insert(time);
        *next = time.min(*next);
    }
}

impl<P> FlowDirection<P> {
    /// Returns its state if that is due to be reported.
    fn progress(&mut self, now: Time, flow: FlowKey, is_idle: bool) -> Option<FlowProgress> {
        let (acknowledged, in_flight) = (self.acknowledged_bytes(), self.in_flight());
        let activity = &mut self.activity;
        let is_reported = activity.reported.is_some_and(|(bytes, flight, at)| {
            (bytes, flight) == (acknowledged, in_flight) && now.since(at) < REPEATED_AFTER
        });
        if is_reported && activity.is_idle == is_idle {
            return None;
        }
        activity.reported = Some((acknowledged, in_flight, now));
        activity.is_idle = is_idle;
        Some(FlowProgress {
            flow,
            acknowledged,
            in_flight,
            is_idle,
        })
    }
}
