//! A part of a flow that is reported by itself, and what a host says that cannot do what it was told.

use std::fmt;
use std::sync::Arc;

use super::context::{EventSender, FlowContext};
use super::meter::FlowMeter;
use crate::control::{AgentEvent, FlowFailure, FlowOrder};

/// What this host cannot do.
pub(super) fn impossible(problem: impl fmt::Display) -> FlowFailure {
    FlowFailure::Order {
        problem: problem.to_string(),
    }
}

/// A part of a flow that is reported when it is over, however it ends.
#[derive(Debug)]
pub(super) struct PartialTransfer {
    pub(super) meter: Arc<FlowMeter>,
    events: EventSender,
}

impl PartialTransfer {
    pub(super) fn new(order: &FlowOrder, context: &FlowContext, whole: &Arc<FlowMeter>) -> Self {
        let meter = FlowMeter::part_of(whole);
        meter.note(|outcome| {
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
        // One that has not said which it is, is none.
        if outcome.arrival.is_some() {
            self.events.tell(AgentEvent::Finished(Box::new(outcome)));
        }
    }
}
