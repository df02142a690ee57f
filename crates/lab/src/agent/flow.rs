//! One end of a flow, from its order to its outcome.

use std::sync::Arc;

use super::arrival::impossible;
use super::context::Context;
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
