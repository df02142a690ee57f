//! Follows connections by the segments that pass: start, progress and end.

use weir_fabric::{ConnectionId, Direction, Packet, PortIndex};
use weir_units::{Duration, Time};
use weir_wire::FlowKey;
use weir_wire::tcp::{Flags, Segment};

use super::Agent;
use crate::demand::Demand;
use crate::message::SwitchReport;

impl<P: Packet + Clone + Send + 'static> Agent<P> {
    /// Releases connections that are over or silent, and reports those without a FIN as closed.
    pub(super) fn forget(&mut self, now: Time) {
        while let Some(gone) = self.connections.reclaim(now) {
            for (direction, flow) in [
                (Direction::Forward, gone.flow),
                (Direction::Reverse, gone.flow.reversed()),
            ] {
                let half = gone.state.half(direction);
                if half.is_open {
                    leave(&mut self.open, half.egress);
                    self.reports.push_back(SwitchReport::Closed { flow });
                }
            }
        }
    }

    /// Whether a FIN or reset is forged: an off-path attacker cannot guess the flow's sequence number.
    pub(super) fn is_forged(&self, flow: &FlowKey, segment: &Segment) -> bool {
        if !segment.flags.intersects(Flags::FIN | Flags::RST) {
            return false;
        }
        let half = self.find(flow).and_then(|(id, direction)| {
            let connection = self.connections.get(id)?;
            Some(connection.state.half(direction))
        });
        half.is_some_and(|half| !half.is_near(segment.sequence))
    }

    /// Stores a flow's demand, for a controller that starts without state.
    pub(super) fn remember(&mut self, flow: &FlowKey, demand: Demand) {
        let Some((id, direction)) = self.find(flow) else {
            return;
        };
        if let Some(connection) = self.connections.get_mut(id) {
            let half = connection.state.half_mut(direction);
            half.demand = Some(demand);
            half.activity.is_known = half.is_open;
        }
    }

    /// Notes a segment's information about its connection, and reports it.
    pub(super) fn note(
        &mut self,
        now: Time,
        id: ConnectionId,
        direction: Direction,
        flow: FlowKey,
        segment: &Segment,
        egress: Option<PortIndex>,
    ) {
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let flags = segment.flags;
        let half = connection.state.half_mut(direction);
        half.on_sent(segment);
        if segment.payload > 0 || flags.contains(Flags::SYN) {
            half.activity.passed_at = now;
        }
        if let Some(port) = egress
            && flags.contains(Flags::SYN)
        {
            if !half.is_open {
                half.is_open = true;
                half.opened_at = now;
                half.activity.is_known = !flags.contains(Flags::ACK);
                join(&mut self.open, port);
            }
            half.egress = Some(port);
            let port = port.index() as u32;
            if flags.contains(Flags::ACK) {
                let segment = connection.handshake.segment_size(direction.reversed());
                self.reports
                    .extend(segment.map(|segment| SwitchReport::Accepted {
                        flow: flow.reversed(),
                        segment,
                        reverse_port: port,
                    }));
            } else {
                self.reports.push_back(SwitchReport::Opened {
                    flow,
                    port,
                    age: Duration::ZERO,
                    demand: None,
                });
            }
        }
        if flags.contains(Flags::ACK) {
            let half = connection.state.half_mut(direction.reversed());
            if half.on_acknowledged(segment.acknowledgment) {
                half.activity.passed_at = now;
            }
        }
        let reset = flags.contains(Flags::RST);
        for (ended, direction, flow) in [
            (reset || flags.contains(Flags::FIN), direction, flow),
            (reset, direction.reversed(), flow.reversed()),
        ] {
            let half = connection.state.half_mut(direction);
            if ended && half.is_open {
                half.is_open = false;
                half.activity.is_known = false;
                leave(&mut self.open, half.egress);
                self.reports.push_back(SwitchReport::Closed { flow });
            }
        }
    }
}

fn join(open: &mut Vec<u32>, port: PortIndex) {
    if open.len() <= port.index() {
        open.resize(port.index() + 1, 0);
    }
    if let Some(open) = open.get_mut(port.index()) {
        *open += 1;
    }
}

fn leave(open: &mut [u32], port: Option<PortIndex>) {
    if let Some(open) = port.and_then(|port| open.get_mut(port.index())) {
        *open = open.saturating_sub(1);
    }
}
