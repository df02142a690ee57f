//! The connection to a controller that agents and senders share: the welcome, the leases of its orders,
//! and how it ends.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Response, Status, Streaming};
use weir_units::Duration as Span;

use crate::connect::Connection;
use crate::error::AgentError;
use crate::leader_epoch::LeaderEpoch;
use crate::lease::Lease;
use crate::translate::DecodeError;
use crate::v1;
use crate::v1::from_controller::Message as Incoming;

/// The pause between attempts doubles from the first value to the longest.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The most messages that wait for the connection.
pub(crate) const QUEUED: usize = 16;
/// How long a controller may take to accept a connection.
const WELCOME: Duration = Duration::from_secs(5);

/// Why a connection has ended.
pub(crate) enum DisconnectCause {
    /// The channel was dropped.
    Dropped,
    Failed(AgentError),
}

impl<E: Into<AgentError>> From<E> for DisconnectCause {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl DisconnectCause {
    /// Replaces the cause by one end's refusal of the other's certificate, if that is what ended the
    /// connection.
    fn explained(self, connection: &Connection) -> Self {
        match self {
            Self::Dropped => Self::Dropped,
            Self::Failed(error) => {
                Self::Failed(connection.refusal().map_or(error, AgentError::from))
            }
        }
    }
}

/// A connection to a controller that has accepted this end, which sends messages of type `T`.
pub(crate) struct ControllerStream<T> {
    connection: Connection,
    pub(crate) lease: Lease,
    pub(crate) heartbeat: Duration,
    pub(crate) outgoing: mpsc::Sender<T>,
    pub(crate) incoming: Streaming<v1::FromController>,
}

impl<T> ControllerStream<T> {
    /// Waits for the controller's answer to the `call` over this connection, whose hello was sent at
    /// `begin`; returns its welcome too.
    pub(crate) async fn welcomed(
        connection: Connection,
        call: impl Future<Output = Result<Response<Streaming<v1::FromController>>, Status>>,
        begin: Instant,
        outgoing: mpsc::Sender<T>,
    ) -> Result<(Self, v1::Welcome), DisconnectCause> {
        let answered = async {
            let mut incoming = call.await?.into_inner();
            let first = incoming.message().await?.ok_or(AgentError::Closed)?;
            Ok::<_, DisconnectCause>((first, incoming))
        };
        let answered = timeout(WELCOME, answered).await;
        let answered = answered.unwrap_or_else(|_| Err(AgentError::Silent.into()));
        let (first, incoming) = answered.map_err(|cause| cause.explained(&connection))?;
        let Some(Incoming::Welcome(welcome)) = first.message else {
            return Err(DecodeError::Missing("welcome").into());
        };
        let (lease, heartbeat) = Lease::welcomed(&welcome, begin, Instant::now())?;
        let attached = Self {
            connection,
            lease,
            heartbeat,
            outgoing,
            incoming,
        };
        Ok((attached, welcome))
    }

    /// Explains why the connection has ended.
    pub(crate) fn explain(&self, cause: DisconnectCause) -> DisconnectCause {
        cause.explained(&self.connection)
    }

    /// Sends a message; fails if the controller has not kept up for two heartbeats.
    pub(crate) async fn send(&self, message: T) -> Result<(), DisconnectCause> {
        let sent = self.outgoing.send_timeout(message, self.heartbeat * 2);
        sent.await.map_err(|_| AgentError::Full.into())
    }
}

/// The controller whose orders are in force, and until when.
#[derive(Default)]
pub(crate) struct LeaderLease(Option<(LeaderEpoch, Instant)>);

impl LeaderLease {
    /// Returns the controller whose orders are in force, if any are.
    pub(crate) fn leader_epoch(&mut self, now: Instant) -> Option<v1::LeaderEpoch> {
        drop(self.0.take_if(|(_, until)| *until <= now));
        let (leader_epoch, _) = self.0.as_ref()?;
        Some(v1::LeaderEpoch {
            name: leader_epoch.name.clone(),
            term: leader_epoch.term,
        })
    }

    /// Returns the orders of a message that are to be obeyed, and notes them as in force.
    pub(crate) fn accept_orders(
        &mut self,
        lease: &mut Lease,
        message: v1::FromController,
    ) -> Result<Vec<v1::Order>, DisconnectCause> {
        let Some(Incoming::Orders(orders)) = message.message else {
            return Err(DecodeError::Missing("orders").into());
        };
        let now = Instant::now();
        if orders.term < lease.leader_epoch.term {
            return Ok(Vec::new());
        }
        if !lease.holds(now, orders.beat) {
            return Err(AgentError::Stale.into());
        }
        lease.note_message(now);
        if !orders.orders.is_empty() {
            self.0 = Some((lease.leader_epoch.clone(), now + lease.order_lifetime()));
        }
        Ok(orders.orders)
    }
}

pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
