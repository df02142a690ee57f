//! Senders that are their own agents: DCQUIC endpoints, whose ACKs no switch can read.
//!
//! In the logic, their flows leave by the switch ports that lead to their receivers, and it orders
//! windows there as for all others. Here the smallest of a flow's windows is sent to the sender instead
//! of the switches.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use weir_sed::{Demand, WindowOrder};
use weir_wire::FlowKey;

use super::refusal::Refusal;
use super::switches::PeerSession;

/// A flow of a sender.
#[derive(Debug)]
pub(super) struct RegisteredFlow {
    owner: u64,
    pub(super) segment: u32,
    pub(super) demand: Option<Demand>,
    pub(super) acknowledged: u64,
    /// Its windows, by the switch whose port they were ordered for.
    windows: BTreeMap<u32, u32>,
    /// The last window sent to its sender.
    reported: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Sender {
    session: PeerSession,
    flows: BTreeSet<FlowKey>,
}

/// All attached senders.
#[derive(Debug, Default)]
pub(super) struct Senders {
    pub(super) attached: BTreeMap<u64, Sender>,
    flows: FxHashMap<FlowKey, RegisteredFlow>,
}

/// The most flows per connection.
const MOST_FLOWS: usize = 10_000;

impl Senders {
    pub(super) fn attach(&mut self, session: PeerSession) {
        let flows = BTreeSet::new();
        self.attached.insert(session.id, Sender { session, flows });
    }

    /// Removes a sender; returns its flows.
    pub(super) fn detach(&mut self, id: u64) -> Vec<FlowKey> {
        let Some(sender) = self.attached.remove(&id) else {
            return Vec::new();
        };
        for flow in &sender.flows {
            self.flows.remove(flow);
        }
        sender.flows.into_iter().collect()
    }

    pub(super) fn session(&mut self, id: u64) -> Option<&mut PeerSession> {
        Some(&mut self.attached.get_mut(&id)?.session)
    }

    pub(super) fn sessions(&mut self) -> impl Iterator<Item = &mut PeerSession> {
        self.attached.values_mut().map(|sender| &mut sender.session)
    }

    /// Adds a flow or changes its demand. Returns whether the flow is this sender's.
    pub(super) fn open(
        &mut self,
        owner: u64,
        flow: FlowKey,
        segment: u32,
        demand: Option<Demand>,
    ) -> Result<bool, Refusal> {
        let Some(sender) = self.attached.get_mut(&owner) else {
            return Ok(false);
        };
        if let Some(known) = self.flows.get_mut(&flow) {
            if known.owner == owner {
                known.demand = demand;
            }
            return Ok(known.owner == owner);
        }
        if sender.flows.len() >= MOST_FLOWS {
            return Err(Refusal::Flows(MOST_FLOWS));
        }
        sender.flows.insert(flow);
        let new = RegisteredFlow {
            owner,
            segment,
            demand,
            acknowledged: 0,
            windows: BTreeMap::new(),
            reported: None,
        };
        self.flows.insert(flow, new);
        Ok(true)
    }

    /// Removes a flow. Returns whether it was this sender's.
    pub(super) fn close(&mut self, owner: u64, flow: &FlowKey) -> bool {
        let Some(sender) = self.attached.get_mut(&owner) else {
            return false;
        };
        sender.flows.remove(flow) && self.flows.remove(flow).is_some()
    }

    /// Notes the acknowledged bytes of a flow. Returns whether it is this sender's.
    pub(super) fn acknowledge(&mut self, owner: u64, flow: &FlowKey, bytes: u64) -> bool {
        match self.flows.get_mut(flow) {
            Some(known) if known.owner == owner => {
                known.acknowledged = known.acknowledged.max(bytes);
                true
            }
            _ => false,
        }
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = (&FlowKey, &RegisteredFlow)> {
        self.flows.iter()
    }

    /// Takes a switch's order that is for a sender's flow. Returns whether it was one: the switch does
    /// not get it.
    pub(super) fn take(&mut self, switch: u32, order: &WindowOrder) -> bool {
        let (flow, window) = match order {
            WindowOrder::Allow { flow, window } => (flow, Some(*window)),
            WindowOrder::Release { flow } => (flow, None),
            WindowOrder::Retransmit { flow, .. } | WindowOrder::Remember { flow, .. } => {
                return self.flows.contains_key(flow);
            }
            WindowOrder::Renew => {
                self.renew(switch);
                return false;
            }
            WindowOrder::Describe => return false,
        };
        let Some(known) = self.flows.get_mut(flow) else {
            return false;
        };
        match window {
            Some(window) => known.windows.insert(switch, window),
            None => known.windows.remove(&switch),
        };
        Self::send_window(&mut self.attached, flow, known);
        true
    }

    /// Removes the windows of a switch that has left.
    pub(super) fn forget_switch(&mut self, switch: u32) {
        for (flow, known) in &mut self.flows {
            if known.windows.remove(&switch).is_some() {
                Self::send_window(&mut self.attached, flow, known);
            }
        }
    }

    fn send_window(
        senders: &mut BTreeMap<u64, Sender>,
        flow: &FlowKey,
        known: &mut RegisteredFlow,
    ) {
        let smallest = known.windows.values().min().copied();
        if smallest == known.reported {
            return;
        }
        known.reported = smallest;
        let flow = *flow;
        let order = match smallest {
            Some(window) => WindowOrder::Allow { flow, window },
            None => WindowOrder::Release { flow },
        };
        if let Some(sender) = senders.get_mut(&known.owner) {
            sender.session.order(&order);
        }
    }

    fn renew(&mut self, switch: u32) {
        let governed = self.flows.values();
        let owners: BTreeSet<u64> = governed
            .filter(|flow| flow.windows.contains_key(&switch))
            .map(|flow| flow.owner)
            .collect();
        for owner in owners {
            if let Some(session) = self.session(owner) {
                session.order(&WindowOrder::Renew);
            }
        }
    }
}
