//! A connection during its handshake.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle as Runtime;

use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::handle::Handle;
use crate::waiters::wait;

/// A connection during its handshake: a future of the [`Connection`].
///
/// It completes at the latest after the transport's `handshake_timeout`. Dropping it closes the
/// connection, unless [`Connecting::early`] returned a handle to it.
#[must_use = "dropping it gives the connection up"]
pub struct Connecting {
    handle: Arc<Handle>,
}

impl Connecting {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Returns the connection before its handshake is complete, where that is possible.
    ///
    /// A client gets it when it resumes a session with a server that allows 0-RTT, and
    /// [`ClientTls::early_data`](crate::tls::ClientTls::early_data) is on. Only
    /// [`Connection::open_bi_early`], [`Connection::open_uni_early`] and
    /// [`Call::early_data`](crate::Call::early_data) send at once; everything else waits for the
    /// handshake. An attacker can replay early data: send only what may safely happen twice.
    ///
    /// A server always gets it, and may answer early data before the client has proved anything:
    /// see [`RecvStream::is_early_data`](crate::RecvStream::is_early_data).
    pub fn early(&self) -> Option<Connection> {
        let state = self.handle.connection.peek();
        let possible = state.error.is_none()
            && (!state.engine.side().is_client()
                || state.engine.is_established()
                || state.engine.has_early_keys());
        drop(state);
        possible.then(|| Connection::new(self.handle.clone()))
    }

    /// Returns the runtime of the connection's engine; see [`Connection::runtime`].
    pub fn runtime(&self) -> &Runtime {
        &self.handle.connection.shared.settings.runtime
    }

    /// Returns the peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        crate::connection::remote_of(&self.handle)
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.handle.connection.lock();
        state.check_open()?;
        if state.engine.is_established() {
            drop(state);
            return Poll::Ready(Ok(Connection::new(self.handle.clone())));
        }
        wait(&mut state.waiting.connecting, cx.waker());
        Poll::Pending
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting")
            .field("remote", &self.remote_address())
            .finish_non_exhaustive()
    }
}
