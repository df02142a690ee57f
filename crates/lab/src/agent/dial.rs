//! The client's side of connection set-up: the choice of local and peer address.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_net::{PathEvent, PathEvents, PathUpdate};
use weir_traffic::transport::{Client, Connection, Start, Transport};
use weir_units::Duration;

use super::context::FlowContext;
use super::flow_connection::FlowConnection;
use super::meter::FlowMeter;
use super::partial_transfer::order_failure;
use super::transports::{connect_failure, setup_failure};
use crate::clock::Clock;
use crate::control::{AgentEvent, FlowFailure, FlowOrder};

/// Opens a flow's connections.
pub(super) struct Dialer<C> {
    context: FlowContext,
    clock: Clock,
    flow: u64,
    client: C,
    local: Vec<SocketAddr>,
    peer: Vec<SocketAddr>,
    response_timeout: Option<Duration>,
    /// How often it has switched to the next addresses.
    address_index: usize,
}

impl<C: Client> Dialer<C> {
    pub(super) fn new<T: Transport<Client = C>>(
        transport: &T,
        order: &FlowOrder,
        context: &FlowContext,
        clock: Clock,
    ) -> Result<Self, FlowFailure> {
        if order.local.is_empty() || order.peer.is_empty() {
            return Err(order_failure(
                "a client needs an address of its own and its server's",
            ));
        }
        Ok(Self {
            context: context.clone(),
            clock,
            flow: order.flow,
            client: transport.client(&order.local).map_err(setup_failure)?,
            local: order.local.clone(),
            peer: order.peer.clone(),
            response_timeout: order.failover,
            address_index: 0,
        })
    }

    /// Switches to the next addresses. Returns `false` if all have been tried and the first are next.
    pub(super) fn next_addresses(&mut self) -> bool {
        self.address_index = (self.address_index + 1) % self.local.len().max(self.peer.len());
        self.address_index != 0
    }

    /// Returns how long a client waits for a response before it repeats the request.
    pub(super) fn response_timeout(&self) -> Option<Duration> {
        self.response_timeout
    }

    /// Returns whether a request with this failure may be repeated on another connection.
    pub(super) fn may_repeat(&self, failure: &FlowFailure) -> bool {
        self.response_timeout.is_some() && !matches!(failure, FlowFailure::Order { .. })
    }

    /// Opens a connection.
    pub(super) async fn dial(
        &self,
        meter: &Arc<FlowMeter>,
    ) -> Result<FlowConnection<C::Connection>, FlowFailure> {
        let peer = self.peer[self.address_index % self.peer.len()];
        let connecting = self.client.connect(Some(self.local()), peer, Start::Full);
        let connection = connecting.await.map_err(connect_failure)?;
        if let Some(events) = connection.path_events() {
            self.report_paths(events, meter.clone());
        }
        FlowConnection::new(connection, meter)
    }

    /// Returns the local address to connect from, after address changes.
    fn local(&self) -> SocketAddr {
        let mut local = self.local[self.address_index % self.local.len()];
        local.set_ip(self.context.current_address(local.ip()));
        local
    }

    /// Reports a connection's path events to the director until the connection ends.
    fn report_paths(&self, mut paths: PathEvents, meter: Arc<FlowMeter>) {
        let (events, clock, flow) = (self.context.events.clone(), self.clock, self.flow);
        tokio::spawn(async move {
            while let Some(news) = paths.next().await {
                let moved = matches!(news, PathUpdate::Event(PathEvent::Moved { .. }));
                meter.update_outcome(|outcome| outcome.moves += u64::from(moved));
                events.send(AgentEvent::Path {
                    flow,
                    at: clock.now(),
                    moved,
                    description: news.to_string(),
                });
            }
        });
    }
}
