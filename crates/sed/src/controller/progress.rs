//! What flows and queues do, for [`Method::EarliestDeadline`]: Twin follows the measured queue, and
//! windows follow the flows that have something to send.

use weir_units::{ByteSize, Duration, Time};
use weir_wire::FlowKey;

use super::{Controller, ControllerConfig, Port};
use crate::allocation::{AllocationSettings, Method};
use crate::demand::Demand;
use crate::message::{FlowProgress, PortId, QueueState};

/// A flow that begins to send, as its switch reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveFlow {
    pub(super) flow: FlowKey,
    pub(super) segment: u32,
    pub(super) acknowledged: u64,
    pub(super) started: Time,
    pub(super) demand: Option<Demand>,
}

/// A flow that agents report, and have not reported for this long, has ended.
const UNREPORTED: Duration = Duration::from_secs(1);

/// How long a flow without deadline keeps the part that cannot be divided.
const ROUND: Duration = Duration::from_millis(10);

impl Port {
    /// Returns the settings of a computation: for [`Method::EarliestDeadline`] with the measured Twin.
    pub(super) fn current_settings(
        &self,
        now: Time,
        config: &ControllerConfig,
    ) -> AllocationSettings {
        let ControllerConfig {
            threshold,
            recovery,
            packet,
            ..
        } = *config;
        let settings = self.settings;
        if settings.method != Method::EarliestDeadline {
            return settings;
        }
        let packets = |size: ByteSize| (size.bytes() / packet.bytes().max(1)) as u32;
        let most = match self.buffer {
            Some(buffer) => packets(buffer / 2).max(settings.total),
            None => settings.total.saturating_mul(4),
        };
        let measured = self.pipe.total(packets(threshold), packets(recovery));
        let total = measured.unwrap_or(settings.total).max(1);
        // While it is met, windows of one segment are enough.
        let is_share_met = self.share.is_at_least(settings.best_effort);
        AllocationSettings {
            total: total.min(most),
            most,
            best_effort: if is_share_met {
                0.0
            } else {
                settings.best_effort
            },
            round: (now.since(Time::ZERO).as_nanos() / ROUND.as_nanos()) as u32,
            ..settings
        }
    }
}

impl Controller {
    /// A flow begins to send: it gets a window at once.
    pub(super) fn activate(&mut self, now: Time, id: PortId, active: ActiveFlow) {
        let flow = active.flow;
        if !self.egress_ports.contains_key(&(id.switch, flow)) {
            // Its demand is for what it has sent before.
            let left = |demand: &Demand| active.acknowledged < demand.size.bytes();
            let demand = active.demand.filter(left);
            self.insert(now, id, flow, active.started, demand);
        }
        self.update(id.switch, &flow, |entry| {
            entry.segment = active.segment.max(1);
            entry.acknowledged = entry.acknowledged.max(active.acknowledged);
            entry.in_flight = Some(entry.in_flight.unwrap_or(0));
            entry.is_idle = false;
            entry.reported_at = now;
        });
        if let Some(port) = self.ports.get_mut(&id) {
            port.is_due |= port.state.governed || port.state.congested;
        }
    }

    /// Takes the state of flows and queues.
    pub(super) fn progress(
        &mut self,
        now: Time,
        switch: u32,
        flows: &[FlowProgress],
        queues: &[QueueState],
    ) {
        for reported in flows {
            let Some(port) = self.port_of(switch, &reported.flow) else {
                continue;
            };
            let mut is_complete = false;
            let share = &mut port.share;
            port.table.update(&reported.flow, |entry| {
                let delivered = reported.acknowledged.saturating_sub(entry.acknowledged);
                let is_due = entry.demand.is_some() && entry.deadline() > now;
                share.update(now, delivered, if is_due { 0 } else { delivered });
                entry.acknowledged += delivered;
                entry.note_in_flight(now, reported.in_flight);
                entry.is_idle = reported.is_idle;
                entry.reported_at = now;
                is_complete = entry.is_complete();
            });
            if is_complete {
                self.close(switch, &reported.flow);
            }
        }
        let packet = self.config.packet;
        for queue in queues {
            let port = queue.port;
            if let Some(port) = self.ports.get_mut(&PortId { switch, port }) {
                port.pipe.update(now, queue, packet, port.settings.rate);
            }
        }
        self.refresh(now, switch);
    }

    /// Removes flows that agents have reported, and report no longer.
    pub(super) fn remove_unreported(&mut self, now: Time) {
        let Some(since) = now.checked_sub(UNREPORTED) else {
            return;
        };
        let mut gone = Vec::new();
        for (id, port) in &self.ports {
            let reported = port.table.iter().filter(|entry| entry.in_flight.is_some());
            let gone_here = reported.filter(|entry| entry.reported_at < since);
            gone.extend(gone_here.map(|entry| (id.switch, entry.flow)));
        }
        self.counters.idle += gone.len() as u64;
        for (switch, flow) in gone {
            self.close(switch, &flow);
        }
    }
}
