//! The clients of flows: one function per workload, with the same meaning as in the simulator.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use weir_network::Random;
use weir_scenario::{Arrivals, ConnectionUse, Distribution, Workload};
use weir_traffic::transport::Transport;
use weir_units::{ByteSize, Duration, Rate};

use super::context::FlowContext;
use super::datagrams;
use super::dial::Dialer;
use super::meter::FlowMeter;
use super::packet_schedule::PacketSchedule;
use super::partial_transfer::{PartialTransfer, order_failure};
use super::request_client::RequestClient;
use super::server::INCAST_REQUEST;
use super::transfer_header::TransferHeader;
use super::transports;
use crate::clock::{Clock, RunTimer};
use crate::control::{AgentEvent, FlowFailure, FlowOrder, LiveTransport};

/// A running client.
struct Client<'a, T> {
    transport: &'a T,
    order: &'a FlowOrder,
    context: &'a FlowContext,
    meter: &'a Arc<FlowMeter>,
    clock: Clock,
    timer: RunTimer,
}

/// Carries out a client's order from its start time on.
pub(super) async fn run(
    order: &FlowOrder,
    context: &FlowContext,
    meter: &Arc<FlowMeter>,
) -> Result<(), FlowFailure> {
    let clock = context.clock().await;
    let mut alarm = RunTimer::new(clock).map_err(order_failure)?;
    alarm.until(order.start).await.map_err(order_failure)?;
    meter.update_outcome(|outcome| outcome.started = Some(clock.now()));
    let host = (context, meter);
    match &order.transport {
        LiveTransport::Tcp(settings) => {
            let tcp = transports::tcp(order, settings);
            work(&tcp, order, host, (clock, alarm)).await
        }
        LiveTransport::Tls { tcp, tls } => {
            let tls = transports::tls(order, context, tcp, tls)?;
            work(&tls, order, host, (clock, alarm)).await
        }
        LiveTransport::Quic {
            options,
            congestion,
        } => {
            let quic = transports::quic(order, context, options, congestion)?;
            work(&quic, order, host, (clock, alarm)).await
        }
        LiveTransport::Dcudp {
            options,
            congestion,
        } => {
            let dcudp = transports::dcudp(order, options, congestion)?;
            work(&dcudp, order, host, (clock, alarm)).await
        }
        LiveTransport::Udp { ecn } => datagrams::send(*ecn, order, meter, alarm).await,
    }?;
    meter.update_outcome(|outcome| outcome.ended = Some(clock.now()));
    Ok(())
}

async fn work<T: Transport>(
    transport: &T,
    order: &FlowOrder,
    (context, meter): (&FlowContext, &Arc<FlowMeter>),
    (clock, alarm): (Clock, RunTimer),
) -> Result<(), FlowFailure> {
    let client = Client {
        transport,
        order,
        context,
        meter,
        clock,
        timer: alarm,
    };
    client.work().await
}

impl<T: Transport> Client<'_, T> {
    async fn work(mut self) -> Result<(), FlowFailure> {
        match &self.order.workload {
            Workload::Bulk => self.bulk().await,
            Workload::Cbr {
                rate,
                packet,
                arrivals,
            } => self.cbr(*rate, *packet, *arrivals).await,
            Workload::Transfer { size, rounds, .. } => self.transfer(*size, *rounds).await,
            Workload::Incast {
                response, spread, ..
            } => self.respond(*response, *spread).await,
            Workload::RequestResponse {
                request,
                response,
                pause,
                requests,
                connection,
            } => {
                let sizes = (*request, *response);
                self.send_request(sizes, *pause, *requests, *connection)
                    .await
            }
            Workload::Epochs {
                request,
                response,
                count,
            } => self.epochs((*request, *response), *count).await,
            Workload::Poisson {
                mean_interval,
                distribution,
                ..
            } => self.arrivals(*mean_interval, distribution).await,
            Workload::Trace { .. } => Err(only_simulated()),
        }
    }

    fn dialer(&self) -> Result<Dialer<T::Client>, FlowFailure> {
        Dialer::new(self.transport, self.order, self.context, self.clock)
    }

    async fn bulk(&self) -> Result<(), FlowFailure> {
        let mut link = self.dialer()?.dial(self.meter).await?;
        link.open_one_way().await?;
        link.send(&[], u64::MAX).await
    }

    async fn cbr(
        &mut self,
        rate: Rate,
        packet: ByteSize,
        arrivals: Arrivals,
    ) -> Result<(), FlowFailure> {
        let start = self.clock.now();
        let mut ticks = PacketSchedule::new(start, (rate, packet, arrivals), self.order);
        let mut link = self.dialer()?.dial(self.meter).await?;
        link.open_one_way().await?;
        let write = self.order.write_size.bytes();
        loop {
            let due = ticks.wait(&mut self.timer, Duration::ZERO).await;
            let bytes = due.map_err(order_failure)?.saturating_mul(write);
            link.send(&[], bytes).await?;
        }
    }

    async fn transfer(&mut self, size: ByteSize, rounds: u32) -> Result<(), FlowFailure> {
        let dialer = self.dialer()?;
        if rounds <= 1 {
            return transfer(&dialer, self.meter, self.clock, 0, size).await;
        }
        let begin = |number| {
            let arrival = PartialTransfer::new(self.order, self.context, self.meter);
            arrive(&dialer, arrival, self.clock, number, size)
        };
        // A round does not wait for the previous one.
        let mut running = FuturesUnordered::new();
        running.push(begin(0));
        let mut starts = (1..).zip(&self.order.later_starts).peekable();
        while let Some((number, start)) = starts.peek() {
            tokio::select! {
                begun = self.timer.until(**start) => begun.map_err(order_failure)?,
                Some(()) = running.next() => continue,
            }
            running.push(begin(*number));
            starts.next();
        }
        while running.next().await.is_some() {}
        Ok(())
    }

    /// Runs an incast sender: answers the receiver's requests.
    async fn respond(&mut self, response: ByteSize, spread: Duration) -> Result<(), FlowFailure> {
        let mut random = Random::new(self.order.seed);
        let mut link = self.dialer()?.dial(self.meter).await?;
        while link.receive_request(INCAST_REQUEST).await? {
            let wait = self.timer.sleep(random.span_up_to(spread)).await;
            wait.map_err(order_failure)?;
            link.respond(response.bytes()).await?;
        }
        link.close().await;
        Ok(())
    }

    async fn send_request(
        &mut self,
        sizes: (ByteSize, ByteSize),
        pause: Duration,
        requests: Option<u32>,
        connection: ConnectionUse,
    ) -> Result<(), FlowFailure> {
        let mut client = RequestClient::new(self.dialer()?, self.meter, self.clock, sizes)?;
        let mut left = requests.map_or(u64::MAX, u64::from);
        loop {
            let answer = client.request().await;
            answer.result?;
            left -= 1;
            if connection == ConnectionUse::Fresh {
                client.depart().await;
            }
            if left == 0 {
                client.close().await;
                return Ok(());
            }
            self.timer.sleep(pause).await.map_err(order_failure)?;
        }
    }

    async fn epochs(&mut self, sizes: (ByteSize, ByteSize), count: u32) -> Result<(), FlowFailure> {
        let mut client = RequestClient::new(self.dialer()?, self.meter, self.clock, sizes)?;
        let mut epochs = self.context.signals.epoch.clone();
        // The handshake is not part of an epoch. If it fails, the first request tries again.
        if let Err(failure) = client.connect().await {
            tracing::debug!(%failure, "no connection before the first epoch");
        }
        let mut next = 0;
        while next < u64::from(count) {
            let begun = epochs.wait_for(|epoch| *epoch >= Some(next)).await;
            let Ok(Some(number)) = begun.map(|epoch| *epoch) else {
                return Ok(());
            };
            let answer = client.request().await;
            self.context.events.send(AgentEvent::EpochDone {
                flow: self.order.flow,
                number,
                asked: answer.asked,
                took: answer.result.is_ok().then_some(answer.took),
                attempts: answer.attempts,
            });
            match answer.result {
                Err(failure @ FlowFailure::Order { .. }) => return Err(failure),
                Err(failure) => self.meter.fail(failure),
                Ok(()) => {}
            }
            next = number + 1;
        }
        client.close().await;
        Ok(())
    }

    /// Starts transfers at random times. The superposed arrivals of several pairs of hosts are a Poisson
    /// process again, so each pair draws its own. Related are the pairs that share a process.
    async fn arrivals(
        &mut self,
        mean_interval: Duration,
        sizes: &Distribution,
    ) -> Result<(), FlowFailure> {
        let mut random = Random::new(self.order.seed);
        let dialer = self.dialer()?;
        let of_pair = mean_interval.mul_f64(f64::from(self.order.related_flows.max(1)));
        let load = &self.order.load;
        let mut next = load.after(self.order.start, random.exponential(of_pair));
        let mut running = FuturesUnordered::new();
        let mut number = 0;
        loop {
            tokio::select! {
                arrived = self.timer.until(next) => arrived.map_err(order_failure)?,
                Some(()) = running.next() => continue,
            }
            let size = sizes.quantile(random.fraction());
            let arrival = PartialTransfer::new(self.order, self.context, self.meter);
            running.push(arrive(&dialer, arrival, self.clock, number, size));
            number += 1;
            next = load.after(next, random.exponential(of_pair));
        }
    }
}

/// A plan with this workload is refused before an order is given.
pub(super) fn only_simulated() -> FlowFailure {
    let problem = "the workload `trace` is only simulated".to_owned();
    FlowFailure::Order { problem }
}

/// Runs one transfer of a `poisson` flow. Its failure does not affect the others.
async fn arrive<C: weir_traffic::transport::Client>(
    dialer: &Dialer<C>,
    arrival: PartialTransfer,
    clock: Clock,
    number: u64,
    size: ByteSize,
) {
    let meter = &arrival.meter;
    meter.update_outcome(|outcome| {
        outcome.arrival = Some(number);
        outcome.started = Some(clock.now());
    });
    match transfer(dialer, meter, clock, number, size).await {
        Ok(()) => meter.update_outcome(|outcome| outcome.ended = Some(clock.now())),
        Err(failure) => meter.fail(failure),
    }
}

async fn transfer<C: weir_traffic::transport::Client>(
    dialer: &Dialer<C>,
    meter: &Arc<FlowMeter>,
    clock: Clock,
    number: u64,
    size: ByteSize,
) -> Result<(), FlowFailure> {
    let preface = TransferHeader {
        number,
        size: TransferHeader::size(size),
        started: clock.now(),
    };
    meter.update_outcome(|outcome| outcome.size = Some(preface.size));
    let mut link = dialer.dial(meter).await?;
    link.open_one_way().await?;
    link.send(&preface.encode(), preface.rest()).await?;
    link.finish().await
}
