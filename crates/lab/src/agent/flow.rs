//! One end of a flow, from its order to its outcome.

use std::sync::Arc;

use super::context::FlowContext;
use super::meter::FlowMeter;
use super::partial_transfer::order_failure;
use super::{client, server};
use crate::clock::RunTimer;
use crate::control::{AgentEvent, FlowFailure, FlowOrder, Role};

/// Carries out an order until it is done, its time is over or the run ends, and reports the outcome.
pub(super) async fn carry_out(order: FlowOrder, context: FlowContext, meter: Arc<FlowMeter>) {
    meter.update_outcome(|outcome| {
        outcome.flow = order.flow;
        outcome.role = Some(order.role);
    });
    tokio::select! {
        biased;
        () = context.stopped() => {}
        result = is_over(&order, &context) => settle(&meter, result),
        result = work(&order, &context, &meter) => settle(&meter, result),
    }
    // The connections were closed with the futures, and have delivered their counters.
    context
        .events
        .send(AgentEvent::Finished(Box::new(meter.outcome())));
}

async fn work(
    order: &FlowOrder,
    context: &FlowContext,
    meter: &Arc<FlowMeter>,
) -> Result<(), FlowFailure> {
    match order.role {
        Role::Client => client::run(order, context, meter).await,
        Role::Server => server::run(order, context, meter).await,
    }
}

/// Waits until a client's stop time.
async fn is_over(order: &FlowOrder, context: &FlowContext) -> Result<(), FlowFailure> {
    let stop = order.stop.filter(|_| order.role == Role::Client);
    let Some(stop) = stop else {
        return std::future::pending().await;
    };
    let mut alarm = RunTimer::new(context.clock().await).map_err(order_failure)?;
    alarm.until(stop).await.map_err(order_failure)
}

fn settle(meter: &FlowMeter, result: Result<(), FlowFailure>) {
    if let Err(failure) = result {
        tracing::debug!(%failure, "a flow ends before its time");
        meter.fail(failure);
    }
}
