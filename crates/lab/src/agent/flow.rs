//! One end of a flow, from its order to its outcome.

use std::fmt;
use std::sync::Arc;

use super::context::{Context, Events};
use super::meter::Meter;
use super::{client, server};
use crate::clock::Alarm;
use crate::control::{Event, FlowFailure, FlowOrder, Role};

/// Carries out an order until it is done, its time is over or the run is, and reports.
pub(super) async fn carry_out(order: FlowOrder, context: Context, meter: Arc<Meter>) {
    meter.note(|outcome| {
        outcome.flow = order.flow;
        outcome.role = Some(order.role);
    });
    tokio::select! {
        biased;
        () = context.stopped() => {}
        result = is_over(&order, &context) => settle(&meter, result),
        result = work(&order, &context, &meter) => settle(&meter, result),
    }
    // Connections were closed with the futures, and have handed in their counters.
    context
        .events
        .tell(Event::Finished(Box::new(meter.outcome())));
}

async fn work(order: &FlowOrder, context: &Context, meter: &Arc<Meter>) -> Result<(), FlowFailure> {
    match order.role {
        Role::Client => client::run(order, context, meter).await,
        Role::Server => server::run(order, context, meter).await,
    }
}

/// Waits for the end of a client's time.
async fn is_over(order: &FlowOrder, context: &Context) -> Result<(), FlowFailure> {
    let stop = order.stop.filter(|_| order.role == Role::Client);
    let Some(stop) = stop else {
        return std::future::pending().await;
    };
    let mut alarm = Alarm::new(context.clock().await).map_err(impossible)?;
    alarm.until(stop).await.map_err(impossible)
}

fn settle(meter: &Meter, result: Result<(), FlowFailure>) {
    if let Err(failure) = result {
        tracing::debug!(%failure, "a flow ends before its time");
        meter.fail(failure);
    }
}

/// What this host cannot do.
pub(super) fn impossible(problem: impl fmt::Display) -> FlowFailure {
    FlowFailure::Order {
        problem: problem.to_string(),
    }
}

/// A part of a flow that is reported when it is over, however it ends.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) meter: Arc<Meter>,
    events: Events,
}

impl Arrival {
    pub(super) fn new(order: &FlowOrder, context: &Context, whole: &Arc<Meter>) -> Self {
        let meter = Meter::part_of(whole);
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

impl Drop for Arrival {
    fn drop(&mut self) {
        let outcome = self.meter.outcome();
        // One that has not said which it is, is none.
        if outcome.arrival.is_some() {
            self.events.tell(Event::Finished(Box::new(outcome)));
        }
    }
}
