//! The client's side of connection set-up: the choice of local and peer address.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_net::{PathEvent, PathEvents, PathNews};
use weir_traffic::transport::{Client, Connection, Start, Transport};
use weir_units::Duration;

use super::context::FlowContext;
use super::flow_connection::FlowConnection;
use super::meter::FlowMeter;
use super::partial_transfer::impossible;
use super::transports::{broken, unusable};
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
    patience: Option<Duration>,
    /// How often it has switched to the next addresses.
    turns: usize,
}

impl<C: Client> Dialer<C> {
    pub(super) fn new<T: Transport<Client = C>>(
        transport: &T,
        order: &FlowOrder,
        context: &FlowContext,
        clock: Clock,
    ) -> Result<Self, FlowFailure> {
        if order.local.is_empty() || order.peer.is_empty() {
            return Err(impossible(
                "a client needs an address of its own and its server's",
            ));
        }
        Ok(Self {
            context: context.clone(),
            clock,
            flow: order.flow,
            client: transport.client(&order.local).map_err(unusable)?,
            local: order.local.clone(),
            peer: order.peer.clone(),
            patience: order.failover,
            turns: 0,
        })
    }

    /// Switches to the next addresses. Returns `false` if all have been tried and the first are next.
    pub(super) fn turn(&mut self) -> bool {
        self.turns = (self.turns + 1) % self.local.len().max(self.peer.len());
        self.turns != 0
    }

    /// Returns how long a client waits for a response before it repeats the request.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Returns whether a request with this failure may be repeated on another connection.
    pub(super) fn may_repeat(&self, failure: &FlowFailure) -> bool {
        self.patience.is_some() && !matches!(failure, FlowFailure::Order { .. })
    }

    /// Opens a connection.
    pub(super) async fn dial(
        &self,
        meter: &Arc<FlowMeter>,
    ) -> Result<FlowConnection<C::Connection>, FlowFailure> {
        let peer = self.peer[self.turns % self.peer.len()];
        let connecting = self.client.connect(Some(self.local()), peer, Start::Full);
        let connection = connecting.await.map_err(broken)?;
        if let Some(events) = connection.path_events() {
            self.report_paths(events, meter.clone());
        }
        FlowConnection::new(connection, meter)
    }

    /// Returns the local address to connect from, after address changes.
    fn local(&self) -> SocketAddr {
        let mut local = self.local[self.turns % self.local.len()];
        local.set_ip(self.context.current_address(local.ip()));
        local
    }

    /// Reports a connection's path events to the director until the connection ends.
    fn report_paths(&self, mut paths: PathEvents, meter: Arc<FlowMeter>) {
        let (events, clock, flow) = (self.context.events.clone(), self.clock, self.flow);
        tokio::spawn(async move {
            while let Some(news) = paths.next().await {
                let moved = matches!(news, PathNews::Event(PathEvent::Moved { .. }));
                meter.note(|outcome| outcome.moves += u64::from(moved));
                events.tell(AgentEvent::Path {
                    flow,
                    at: clock.now(),
                    moved,
                    news: news.to_string(),
                });
            }
        });
    }
}
