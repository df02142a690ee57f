//! A call: configured, then made, and made again where that is safe.

use bytes::Bytes;
use tokio::time::Instant;
use weir_channel::{NoServer, NotRetried};
use weir_net::{Duration, WriteError};

use super::Channel;
use super::error::CallError;
use super::exchange::{Deadline, Server, within};
use super::protocol::Rpc;
use super::retry::retry;
use super::stats::Counters;
use super::stream::{RequestSender, ResponseReceiver};
use crate::executed::Executed;
use crate::metadata::{Metadata, MetadataError};
use crate::trace::{Scope, TraceContext, current_scope};
use crate::wire::{RequestHeader, is_method};

/// A call: configure it, then make it by [`Call::unary`], [`Call::server_streaming`] or
/// [`Call::streaming`].
#[must_use = "a call is made by `unary`, `server_streaming` or `streaming`"]
#[derive(Clone, Debug)]
pub struct Call {
    channel: Channel,
    method: String,
    metadata: Metadata,
    invalid: Option<MetadataError>,
    deadline: Option<Duration>,
    is_idempotent: bool,
    wait_for_ready: bool,
    trace: Option<TraceContext>,
}

/// A response, with the metadata of its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The message.
    pub body: Bytes,
    /// The metadata of the status.
    pub metadata: Metadata,
}

/// What all attempts of a call have in common.
struct Attempts {
    channel: Channel,
    header: RequestHeader,
    deadline: Option<Deadline>,
    is_idempotent: bool,
    wait_for_ready: bool,
    attempts: weir_channel::Attempts<Rpc>,
}

impl Channel {
    /// Returns a call of a method, to be configured and made:
    /// `channel.call("kv.Get").deadline(Duration::from_millis(50)).unary("key").await`.
    ///
    /// Within a handler it continues the trace, and has the deadline, of the call that is handled.
    pub fn call(&self, method: impl Into<String>) -> Call {
        let settings = &self.shared.settings;
        Call {
            method: method.into(),
            metadata: Metadata::new(),
            invalid: None,
            deadline: settings.deadline,
            is_idempotent: false,
            wait_for_ready: settings.wait_for_ready,
            trace: None,
            channel: self.clone(),
        }
    }
}

impl Call {
    /// Sets how long the call may take, all attempts together, in steps of a millisecond. The
    /// server knows it too.
    pub fn deadline(mut self, span: impl Into<Duration>) -> Self {
        self.deadline = Some(span.into());
        self
    }

    /// Adds metadata. A name that is none is reported when the call is made.
    pub fn metadata(mut self, name: &str, value: impl Into<Bytes>) -> Self {
        if let Err(error) = self.metadata.add(name, value) {
            self.invalid = Some(error);
        }
        self
    }

    /// Says that the call may safely be executed twice, so that it is made again also where it is
    /// not known whether it was executed. Only unary calls are.
    pub fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// Sets whether the call waits while no server can be reached, instead of failing at once.
    pub fn wait_for_ready(mut self, wait: bool) -> Self {
        self.wait_for_ready = wait;
        self
    }

    /// Sets the trace that the call continues, instead of the one of the handler that makes it.
    pub fn trace_context(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Makes the call with one request and returns the one response. Dropping the future cancels
    /// the call.
    ///
    /// # Errors
    /// [`CallError`], that of the last attempt.
    pub async fn unary(self, request: impl Into<Bytes>) -> Result<Response, CallError> {
        let request = request.into();
        let mut attempts = self.begin()?;
        let deadline = attempts.deadline;
        match within(deadline, attempts.unary(request)).await {
            Some(result) => result,
            None => Err(attempts.passed()),
        }
    }

    /// Makes the call with one request and returns the stream of responses. The call is made again
    /// only while it is not sent.
    ///
    /// # Errors
    /// [`CallError`] where the call is not sent.
    pub async fn server_streaming(
        self,
        request: impl Into<Bytes>,
    ) -> Result<ResponseReceiver, CallError> {
        let request = request.into();
        let mut attempts = self.begin()?;
        let deadline = attempts.deadline;
        let sending = async {
            let (requests, responses) = attempts.open().await?;
            sent(requests.only(request).await)?;
            Ok(responses)
        };
        match within(deadline, sending).await {
            Some(result) => result,
            None => Err(attempts.passed()),
        }
    }

    /// Opens the call with a stream of requests; [`ResponseReceiver::only`] returns the response of
    /// a method that has one. The call is made again only while it is not sent.
    ///
    /// # Errors
    /// [`CallError`] where the call is not sent.
    pub async fn streaming(self) -> Result<(RequestSender, ResponseReceiver), CallError> {
        let mut attempts = self.begin()?;
        let deadline = attempts.deadline;
        let sending = async {
            let (mut requests, responses) = attempts.open().await?;
            sent(requests.begin().await)?;
            Ok((requests, responses))
        };
        match within(deadline, sending).await {
            Some(result) => result,
            None => Err(attempts.passed()),
        }
    }

    fn begin(self) -> Result<Attempts, CallError> {
        if !is_method(&self.method) {
            return Err(CallError::Method(self.method));
        }
        if let Some(error) = self.invalid {
            return Err(error.into());
        }
        let scope = current_scope();
        let deadline = deadline(self.deadline, scope.as_ref());
        if let Some(deadline) = deadline
            && deadline.is_over()
        {
            return Err(deadline.passed(Executed::No));
        }
        let mut metadata = self.metadata;
        if let Some(trace) = self.trace.or(scope.map(|scope| scope.trace)) {
            trace.set_in(&mut metadata);
        }
        Counters::add(&self.channel.shared.counters.calls);
        let attempts = weir_channel::Attempts::new(self.channel.shared.servers.clone());
        Ok(Attempts {
            channel: self.channel,
            header: RequestHeader {
                method: self.method,
                time_left: None,
                attempt: 1,
                metadata,
            },
            deadline,
            is_idempotent: self.is_idempotent,
            wait_for_ready: self.wait_for_ready,
            attempts,
        })
    }
}

/// Returns the earlier deadline of a call's own and that of the handler that makes it.
fn deadline(own: Option<Duration>, scope: Option<&Scope>) -> Option<Deadline> {
    let now = Instant::now();
    let own = own.and_then(|span| {
        // A span beyond what the clock can count is no deadline.
        let at = now.checked_add(span.into())?;
        Some(Deadline { at, span })
    });
    let inherited = scope.and_then(|scope| scope.deadline).map(|at| Deadline {
        at,
        span: at.saturating_duration_since(now).into(),
    });
    let both = own.into_iter().chain(inherited);
    both.min_by_key(|deadline| deadline.at)
}

/// A server may answer, or refuse, without reading all of the request: its response says so. Once the
/// stream has been reset in return, nothing says any more that the server stopped it.
fn sent(result: Result<(), WriteError>) -> Result<(), CallError> {
    match result {
        Err(WriteError::Connection(error)) => Err(CallError::connection(error)),
        _ => Ok(()),
    }
}

impl Attempts {
    async fn unary(&mut self, request: Bytes) -> Result<Response, CallError> {
        loop {
            let (requests, responses) = self.open().await?;
            let exchange = async {
                sent(requests.only(request.clone()).await)?;
                responses.only().await
            };
            match exchange.await {
                Ok(response) => return Ok(response),
                Err(error) => self.prepare_next(error).await?,
            }
        }
    }

    /// Opens a stream at a server that is ready.
    async fn open(&mut self) -> Result<(RequestSender, ResponseReceiver), CallError> {
        loop {
            let server = self.pick().await?;
            let address = server.picked.address();
            self.header.time_left = self.deadline.map(|deadline| deadline.time_left());
            self.header.attempt = self.attempts.sent() + 1;
            match server.open(&self.header, self.deadline).await {
                Ok(stream) => {
                    self.attempts.on_sent(address);
                    return Ok(stream);
                }
                Err(error) => self.prepare_next(error).await?,
            }
        }
    }

    /// Waits for a server that is ready.
    async fn pick(&self) -> Result<Server, CallError> {
        let picked = self.attempts.pick(self.wait_for_ready).await;
        let picked = picked.map_err(|NoServer(reason)| CallError::NoServer(reason))?;
        Ok(Server {
            picked,
            limits: self.channel.shared.settings.limits,
        })
    }

    /// Waits until the call may be made again after a failure, or returns that.
    async fn prepare_next(&mut self, error: CallError) -> Result<(), CallError> {
        let counters = &self.channel.shared.counters;
        let is_made_again = self.attempts.next(retry(&error, self.is_idempotent)).await;
        if let Err(reason) = is_made_again {
            if reason == NotRetried::BudgetExhausted {
                Counters::add(&counters.budget_exhausted);
            }
            return Err(error);
        }
        Counters::add(&counters.retries);
        tracing::debug!(method = self.header.method, %error, "a call is made again");
        Ok(())
    }

    fn passed(&self) -> CallError {
        let executed = match self.attempts.sent() {
            0 => Executed::No,
            _ => Executed::Maybe,
        };
        let passed = |deadline: Deadline| deadline.passed(executed);
        self.deadline.map_or(CallError::Reset(0), passed)
    }
}
