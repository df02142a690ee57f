//! What a handler knows about its call.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use weir_net::{Connection, Duration, PeerIdentity};

use crate::metadata::{Metadata, MetadataError};
use crate::trace::{self, Scope, TraceContext};
use crate::wire::RequestHeader;

/// What a handler knows about its call. Clones are handles to the same call.
#[derive(Clone)]
pub struct Context {
    call: Arc<Call>,
}

struct Call {
    header: RequestHeader,
    deadline: Option<Instant>,
    connection: Connection,
    is_early_data: bool,
    trace: TraceContext,
    trailers: Mutex<Metadata>,
    /// Closed when the call has ended.
    ended: watch::Receiver<()>,
}

impl Context {
    pub(super) fn new(
        header: RequestHeader,
        deadline: Option<Instant>,
        connection: Connection,
        is_early_data: bool,
        trace: TraceContext,
        ended: watch::Receiver<()>,
    ) -> Self {
        Self {
            call: Arc::new(Call {
                header,
                deadline,
                connection,
                is_early_data,
                trace,
                trailers: Mutex::default(),
                ended,
            }),
        }
    }

    /// Returns the method's name.
    pub fn method(&self) -> &str {
        &self.call.header.method
    }

    /// Returns the request's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.call.header.metadata
    }

    /// Returns the number of this attempt, from 1: above 1 the client has made the call before.
    pub fn attempt(&self) -> u32 {
        self.call.header.attempt
    }

    /// Returns how much time is left until the call's deadline; `None` where it has none. Calls
    /// that the handler makes have the same deadline, unless they have an earlier one.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.call.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()).into())
    }

    /// Returns the client's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.call.connection.remote_address()
    }

    /// Returns the client's data from the handshake, such as its certificates.
    pub fn peer_identity(&self) -> PeerIdentity {
        self.call.connection.peer_identity()
    }

    /// Returns whether the request arrived as early data (0-RTT), which an attacker may have
    /// replayed: carry it out only where that may safely happen twice.
    pub fn is_early_data(&self) -> bool {
        self.call.is_early_data
    }

    /// Returns the trace and this hop's span. Calls that the handler makes continue the trace.
    pub fn trace(&self) -> &TraceContext {
        &self.call.trace
    }

    /// Adds metadata to the status at the end of the response.
    ///
    /// # Errors
    /// [`MetadataError`] where the name is none.
    pub fn add_trailer(&self, name: &str, value: impl Into<Bytes>) -> Result<(), MetadataError> {
        self.trailers().add(name, value)
    }

    /// Waits until the call has ended: the client cancelled it, its deadline passed, or it is
    /// answered. The handler itself is dropped then; this is for tasks that it spawned.
    pub async fn ended(&self) {
        let mut ended = self.call.ended.clone();
        // Nothing is ever sent.
        let _ = ended.changed().await;
    }

    /// Runs a future within this call: calls that it makes have the trace and the deadline. A
    /// handler runs so already; this is for tasks that it spawns.
    pub fn within<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let scope = Scope {
            trace: self.call.trace.clone(),
            deadline: self.call.deadline,
        };
        trace::within(scope, future)
    }

    pub(super) fn take_trailers(&self) -> Metadata {
        std::mem::take(&mut *self.trailers())
    }

    fn trailers(&self) -> std::sync::MutexGuard<'_, Metadata> {
        let trailers = self.call.trailers.lock();
        trailers.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("method", &self.method())
            .field("peer", &self.peer_address())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
