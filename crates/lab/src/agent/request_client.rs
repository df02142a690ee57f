//! A client that makes one request after another. If the order asks for it, the client switches to its
//! next address when no answer arrives.

use std::sync::Arc;
use std::time::Duration as StdDuration;

use tokio::time::timeout;
use weir_traffic::transport::Client;
use weir_units::{ByteSize, Duration, Time};

use super::dial::Dialer;
use super::flow_connection::{ASKING, FlowConnection};
use super::meter::FlowMeter;
use super::partial_transfer::order_failure;
use crate::clock::Clock;
use crate::control::FlowFailure;

/// The pause of a client after it has tried all addresses without success.
const REST: StdDuration = StdDuration::from_millis(10);

/// Sends requests over one connection at a time.
pub(super) struct RequestClient<C: Client> {
    dialer: Dialer<C>,
    meter: Arc<FlowMeter>,
    clock: Clock,
    request: u64,
    response: u64,
    connection: Option<FlowConnection<C::Connection>>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) struct RequestOutcome {
    /// When it was sent first.
    pub(super) asked: Time,
    /// The time from then to its end.
    pub(super) took: Duration,
    /// The number of connections on which it was sent.
    pub(super) attempts: u64,
    pub(super) result: Result<(), FlowFailure>,
}

impl<C: Client> RequestClient<C> {
    /// Creates a client with the sizes of requests and responses.
    pub(super) fn new(
        dialer: Dialer<C>,
        meter: &Arc<FlowMeter>,
        clock: Clock,
        sizes: (ByteSize, ByteSize),
    ) -> Result<Self, FlowFailure> {
        let (request, response) = (sizes.0.bytes(), sizes.1.bytes());
        if request == 0 || response == 0 {
            return Err(order_failure(
                "a request or a response without a byte is none",
            ));
        }
        Ok(Self {
            dialer,
            meter: meter.clone(),
            clock,
            request,
            response,
            connection: None,
        })
    }

    /// Returns the connection, and opens it if there is none.
    pub(super) async fn connect(
        &mut self,
    ) -> Result<&mut FlowConnection<C::Connection>, FlowFailure> {
        match &mut self.connection {
            Some(link) => Ok(link),
            none => Ok(none.insert(self.dialer.dial(&self.meter).await?)),
        }
    }

    /// Makes a request. The time of a handshake that it needs is included.
    pub(super) async fn request(&mut self) -> RequestOutcome {
        let asked = self.clock.now();
        let mut attempts = 1;
        let result = loop {
            match self.try_once().await {
                Ok(()) => break Ok(()),
                Err(failure) => {
                    // Abort the connection: a late response would be taken for that of the next request.
                    self.connection = None;
                    if !self.dialer.may_repeat(&failure) {
                        break Err(failure);
                    }
                    tracing::debug!(%failure, "a request is repeated");
                    attempts += 1;
                    if !self.dialer.next_addresses() {
                        tokio::time::sleep(REST).await;
                    }
                }
            }
        };
        let now = self.clock.now();
        let took = now.since(asked);
        if result.is_ok() {
            self.meter.record_completion(now, took);
        }
        self.meter.update_outcome(|outcome| {
            outcome.requests_repeated += attempts - 1;
            outcome.requests_failed += u64::from(result.is_err());
        });
        RequestOutcome {
            asked,
            took,
            attempts,
            result,
        }
    }

    async fn try_once(&mut self) -> Result<(), FlowFailure> {
        let (request, response) = (self.request, self.response);
        let patience = self.dialer.response_timeout();
        let answer = async { self.connect().await?.request(request, response).await };
        match patience {
            None => answer.await,
            Some(limit) => match timeout(limit.into(), answer).await {
                Ok(answer) => answer,
                Err(_) => Err(FlowFailure::Lost {
                    doing: ASKING.to_owned(),
                    cause: format!("there was none for {limit}"),
                }),
            },
        }
    }

    /// Ends a connection that served one request.
    pub(super) async fn depart(&mut self) {
        if let Some(link) = self.connection.take() {
            link.close_as_client().await;
        }
    }

    /// Closes the connection after the last request.
    pub(super) async fn close(&mut self) {
        if let Some(link) = self.connection.take() {
            link.close().await;
        }
    }
}
