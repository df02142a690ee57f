//! The servers of flows, which accept connections until the run is over.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use weir_scenario::{ConnectionUse, Workload};
use weir_traffic::transport::{Connection, Incoming, Listener, Transport};
use weir_traffic::udp::Udp;
use weir_units::{ByteSize, Duration};

use super::client::only_simulated;
use super::context::FlowContext;
use super::datagrams;
use super::flow_connection::FlowConnection;
use super::meter::FlowMeter;
use super::partial_transfer::{PartialTransfer, order_failure};
use super::transfer_header::TransferHeader;
use super::transports::{self, connect_failure, setup_failure};
use crate::clock::RunTimer;
use crate::control::{AgentEvent, FlowFailure, FlowOrder, LiveTransport};

/// The size of the requests of an incast's receiver, which the simulator omits.
pub(super) const INCAST_REQUEST: u64 = 8;

/// Carries out a server's order until the task is cancelled.
pub(super) async fn run(
    order: &FlowOrder,
    context: &FlowContext,
    meter: &Arc<FlowMeter>,
) -> Result<(), FlowFailure> {
    match &order.transport {
        LiveTransport::Tcp(settings) => {
            let tcp = transports::tcp(order, settings);
            take_connections(&tcp, order, context, meter).await
        }
        LiveTransport::Tls { tcp, tls } => {
            let tls = transports::tls(order, context, tcp, tls)?;
            take_connections(&tls, order, context, meter).await
        }
        LiveTransport::Quic {
            options,
            congestion,
        } => {
            let quic = transports::quic(order, context, options, congestion)?;
            take_connections(&quic, order, context, meter).await
        }
        LiveTransport::Dcudp {
            options,
            congestion,
        } => {
            let dcudp = transports::dcudp(order, options, congestion)?;
            take_connections(&dcudp, order, context, meter).await
        }
        LiveTransport::Udp { .. } => {
            let sockets = datagrams::bind(order)?;
            let addresses = sockets.iter().map(Udp::address).collect::<Result<_, _>>();
            announce(order, context, addresses.map_err(order_failure)?);
            datagrams::receive(&sockets, meter).await
        }
    }
}

async fn take_connections<T: Transport>(
    transport: &T,
    order: &FlowOrder,
    context: &FlowContext,
    meter: &Arc<FlowMeter>,
) -> Result<(), FlowFailure> {
    let listener = transport.listen(&order.local).map_err(setup_failure)?;
    announce(order, context, listener.addresses().map_err(order_failure)?);
    let mut served = FuturesUnordered::new();
    loop {
        tokio::select! {
            incoming = listener.accept() => {
                let incoming = incoming.map_err(setup_failure)?;
                served.push(serve(incoming, order, context, meter));
            }
            Some(end) = served.next() => match end {
                Ok(()) => {}
                // The other flows of the group would wait for it forever.
                Err(failure) if matches!(order.workload, Workload::Incast { .. }) => {
                    return Err(failure);
                }
                // The client reports the failure in more detail.
                Err(failure) => tracing::debug!(%failure, "a client is gone"),
            },
        }
    }
}

fn announce(order: &FlowOrder, context: &FlowContext, addresses: Vec<std::net::SocketAddr>) {
    context.events.send(AgentEvent::Listening {
        flow: order.flow,
        addresses,
    });
}

/// Serves a client on one connection.
async fn serve<I: Incoming>(
    incoming: I,
    order: &FlowOrder,
    context: &FlowContext,
    meter: &Arc<FlowMeter>,
) -> Result<(), FlowFailure> {
    match &order.workload {
        Workload::Bulk | Workload::Cbr { .. } => {
            let mut link = establish(incoming, meter).await?;
            link.accept_one_way().await?;
            link.receive_all().await?;
            Ok(())
        }
        Workload::Transfer { rounds: ..2, .. } => {
            let link = establish(incoming, meter).await?;
            receive_transfer(link, context, meter, false).await
        }
        Workload::Transfer { .. } | Workload::Poisson { .. } => {
            let arrival = PartialTransfer::new(order, context, meter);
            let link = establish(incoming, &arrival.meter).await?;
            receive_transfer(link, context, &arrival.meter, true).await
        }
        Workload::Trace { .. } => Err(only_simulated()),
        Workload::RequestResponse {
            request,
            response,
            connection,
            ..
        } => {
            let link = establish(incoming, meter).await?;
            answer(link, *request, *response, *connection).await
        }
        Workload::Epochs {
            request, response, ..
        } => {
            let link = establish(incoming, meter).await?;
            answer(link, *request, *response, ConnectionUse::Kept).await
        }
        Workload::Incast {
            response,
            rounds,
            pause,
            ..
        } => {
            let link = establish(incoming, meter).await?;
            let round = (*rounds, *response, *pause);
            ask_in_rounds(link, order, context, meter, round).await
        }
    }
}

/// Accepts a client's connection.
async fn establish<I: Incoming>(
    incoming: I,
    meter: &Arc<FlowMeter>,
) -> Result<FlowConnection<I::Connection>, FlowFailure> {
    let connection = incoming.establish().await.map_err(connect_failure)?;
    FlowConnection::new(connection, meter)
}

async fn receive_transfer<C: Connection>(
    mut link: FlowConnection<C>,
    context: &FlowContext,
    meter: &FlowMeter,
    is_arrival: bool,
) -> Result<(), FlowFailure> {
    link.accept_one_way().await?;
    let preface = TransferHeader::decode(link.receive_head().await?);
    meter.update_outcome(|outcome| {
        outcome.arrival = is_arrival.then_some(preface.number);
        outcome.size = Some(preface.size);
        outcome.started = Some(preface.started);
    });
    let rest = link.receive_all().await?;
    let now = context.clock().await.now();
    if rest != preface.rest() {
        let problem = format!("{rest} of {} bytes have arrived", preface.rest());
        return Err(FlowFailure::Protocol { problem });
    }
    meter.update_outcome(|outcome| outcome.ended = Some(now));
    meter.record_completion(now, now.checked_since(preface.started).unwrap_or_default());
    link.close().await;
    Ok(())
}

async fn answer<C: Connection>(
    mut link: FlowConnection<C>,
    request: ByteSize,
    response: ByteSize,
    connection: ConnectionUse,
) -> Result<(), FlowFailure> {
    if request.is_zero() || response.is_zero() {
        return Err(order_failure(
            "a request or a response without a byte is none",
        ));
    }
    while link.receive_request(request.bytes()).await? {
        link.respond(response.bytes()).await?;
        if connection == ConnectionUse::Fresh {
            link.close_as_server().await;
            break;
        }
    }
    Ok(())
}

/// Runs an incast's receiver, which requests from all of its senders at once, each by its own flow.
/// The flows wait for each other before and after each round.
async fn ask_in_rounds<C: Connection>(
    mut link: FlowConnection<C>,
    order: &FlowOrder,
    context: &FlowContext,
    meter: &FlowMeter,
    (rounds, response, pause): (u32, ByteSize, Duration),
) -> Result<(), FlowFailure> {
    let clock = context.clock().await;
    let mut alarm = RunTimer::new(clock).map_err(order_failure)?;
    let others = context.barrier_of(&order.group, order.related_flows);
    for round in 1..=rounds {
        others.wait().await;
        let asked = clock.now();
        link.request(INCAST_REQUEST, response.bytes()).await?;
        // The last response completes the round.
        if others.wait().await.is_leader() {
            let now = clock.now();
            meter.record_completion(now, now.since(asked));
        }
        if round < rounds {
            alarm.sleep(pause).await.map_err(order_failure)?;
        }
    }
    meter.update_outcome(|outcome| outcome.ended = Some(clock.now()));
    link.close().await;
    Ok(())
}
