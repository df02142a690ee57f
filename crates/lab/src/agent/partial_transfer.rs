//! A part of a flow with its own report, and the failure of an order that a host cannot carry out.

use std::fmt;
use std::sync::Arc;

use super::context::{EventSender, FlowContext};
use super::meter::FlowMeter;
use crate::control::{AgentEvent, FlowFailure, FlowOrder};

/// Returns the failure for an order that this host cannot carry out.
pub(super) fn order_failure(problem: impl fmt::Display) -> FlowFailure {
    FlowFailure::Order {
        problem: problem.to_string(),
    }
}

/// A part of a flow. Dropping it reports its outcome.
#[derive(Debug)]
pub(super) struct PartialTransfer {
    pub(super) meter: Arc<FlowMeter>,
    events: EventSender,
}

impl PartialTransfer {
    pub(super) fn new(order: &FlowOrder, context: &FlowContext, whole: &Arc<FlowMeter>) -> Self {
        let meter = FlowMeter::part_of(whole);
        meter.update_outcome(|outcome| {
            outcome.flow = order.flow;
            outcome.role = Some(order.role);
        });
        Self {
            meter,
            events: context.events.clone(),
        }
    }
}

impl Drop for PartialTransfer {
    fn drop(&mut self) {
        let outcome = self.meter.outcome();
        // Without an arrival number it never started.
        if outcome.arrival.is_some() {
            self.events.send(AgentEvent::Finished(Box::new(outcome)));
        }
    }
}
