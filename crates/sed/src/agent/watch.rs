//! Reports of congested queues and acknowledged bytes, and the full description for a new controller.

use weir_fabric::{Direction, EgressPort, Output, Packet, PortIndex};
use weir_units::{ByteSize, Time};

use super::Agent;
use crate::message::SwitchReport;

impl<P: Packet + Clone + Send + 'static> Agent<P> {
    /// Checks the queue that a packet has just entered.
    pub(super) fn watch(&mut self, now: Time, egress: Option<PortIndex>, out: &mut Output<'_, P>) {
        let Some(port) = egress else {
            return;
        };
        let is_short = |egress_port: &EgressPort<P>| {
            egress_port.queue().backlog().size < self.config.threshold
        };
        if out.egress_port_stale(port).is_none_or(is_short) {
            return;
        }
        let Some(egress_port) = out.egress_port(port) else {
            return;
        };
        let backlog = egress_port.queue().backlog().size;
        if backlog < self.config.threshold || self.queues.is_congested(port) {
            return;
        }
        let excess = backlog.checked_sub(self.config.recovery);
        let drained = egress_port
            .link()
            .rate()
            .time_for(excess.unwrap_or(ByteSize::ZERO));
        self.queues.set_congested(port, Some(now + drained));
        self.counters.congested += 1;
        if self.config.never_stops {
            self.report_progress(now, out);
        } else {
            self.report_counters(now);
        }
        let port = port.index() as u32;
        self.reports.push_back(SwitchReport::Congested { port });
    }

    /// Checks whether congested queues have recovered.
    pub(super) fn watch_recovery(&mut self, now: Time, out: &mut Output<'_, P>) {
        while let Some(port) = self.queues.due(now) {
            let Some(egress_port) = out.egress_port(port) else {
                return;
            };
            let backlog = egress_port.queue().backlog().size;
            if backlog < self.config.recovery {
                self.queues.set_congested(port, None);
                let port = port.index() as u32;
                self.reports.push_back(SwitchReport::Recovered { port });
            } else {
                // One packet more has to leave for it to be below.
                let excess = backlog - self.config.recovery + self.config.packet;
                let drained = egress_port.link().rate().time_for(excess);
                self.queues.set_congested(port, Some(now + drained));
            }
        }
    }

    /// Reports the acknowledged bytes that have changed since the last report.
    pub(super) fn report_counters(&mut self, now: Time) {
        self.next_counters = Some(now + self.config.counters_interval);
        let mut acknowledged = Vec::new();
        for (_, connection) in self.connections.iter_mut() {
            let flow = connection.flow;
            for (direction, flow) in [
                (Direction::Forward, flow),
                (Direction::Reverse, flow.reversed()),
            ] {
                let half = connection.state.half_mut(direction);
                acknowledged.extend(half.take_acknowledged().map(|bytes| (flow, bytes)));
            }
        }
        if !acknowledged.is_empty() {
            self.reports
                .push_back(SwitchReport::Counters { acknowledged });
        }
    }

    /// Describes every flow and every congested port to a controller that has just started.
    pub(super) fn describe(&mut self, now: Time) {
        for (_, connection) in self.connections.iter_mut() {
            let (flow, handshake) = (connection.flow, connection.handshake);
            let state = &mut connection.state;
            let ports = [Direction::Forward, Direction::Reverse]
                .map(|direction| state.half(direction).egress);
            let [Some(port), back] = ports.map(|port| port.map(|port| port.index() as u32)) else {
                continue;
            };
            let half = state.half(Direction::Forward);
            // After its FIN it has nothing to send any more.
            if half.is_open {
                self.reports.push_back(SwitchReport::Opened {
                    flow,
                    port,
                    age: now.since(half.opened_at),
                    demand: half.demand,
                });
            }
            let half = state.half(Direction::Reverse);
            if let (true, Some(port), Some(demand)) = (half.is_open, back, half.demand) {
                self.reports.push_back(SwitchReport::Opened {
                    flow: flow.reversed(),
                    port,
                    age: now.since(half.opened_at),
                    demand: Some(demand),
                });
            }
            if let (Some(segment), Some(reverse_port)) =
                (handshake.segment_size(Direction::Forward), back)
            {
                self.reports.push_back(SwitchReport::Accepted {
                    flow,
                    segment,
                    reverse_port,
                });
            }
            for direction in [Direction::Forward, Direction::Reverse] {
                state.half_mut(direction).reset_reported();
            }
        }
        if self.config.never_stops {
            self.report_again(now);
        } else {
            self.report_counters(now);
        }
        for port in self.queues.congested() {
            let port = port.index() as u32;
            self.reports.push_back(SwitchReport::Congested { port });
        }
    }
}
