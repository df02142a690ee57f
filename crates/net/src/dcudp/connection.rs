//! The API of a DCUDP connection, for streams and messages.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use weir_dcudp::{ConnectionStats, DataKind};

use super::error::DcudpError;
use super::state::SharedDcudpConnection;
use crate::waiters::wait;

/// The data kind of a connection: [`Stream`] or [`Messages`].
pub trait ServiceKind: sealed::Sealed + Send + Sync + Unpin + 'static {
    /// The engine's constant for it.
    const DATA: DataKind;
}

/// One stream of bytes in each direction.
#[derive(Debug)]
pub struct Stream;

/// Messages with boundaries, ordered or unordered.
#[derive(Debug)]
pub struct Messages;

impl ServiceKind for Stream {
    const DATA: DataKind = DataKind::Stream;
}

impl ServiceKind for Messages {
    const DATA: DataKind = DataKind::Messages;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Stream {}
    impl Sealed for super::Messages {}
}

/// One end of a connection: a [`DcudpStream`](super::DcudpStream) or
/// [`DcudpMessages`](super::DcudpMessages).
///
/// Dropping it aborts the connection: the peer receives code 0, and undelivered data are lost.
/// Where this end had finished before ([`DcudpConnection::finish`], or `shutdown` of a stream), all
/// written data are still delivered, as long as the runtime runs.
pub struct DcudpConnection<K: ServiceKind> {
    pub(super) connection: Arc<SharedDcudpConnection>,
    pub(super) finished: bool,
    kind: PhantomData<K>,
}

impl<K: ServiceKind> DcudpConnection<K> {
    pub(super) fn new(connection: Arc<SharedDcudpConnection>) -> Self {
        Self {
            connection,
            finished: false,
            kind: PhantomData,
        }
    }

    /// Ends this end's data. Data written before are delivered, and the peer's data still arrive.
    /// Once both ends have finished and have everything, the connection is over.
    pub fn finish(&mut self) {
        self.finished = true;
        let mut state = self.connection.lock();
        state.engine.finish();
        state.send();
    }

    /// Closes the connection in order: waits until the peer has acknowledged all data written here.
    /// It does not wait for the peer's remaining data. An acknowledgment by the peer's transport
    /// does not mean that its application has read the data.
    ///
    /// # Errors
    /// [`DcudpError`] where the connection ends before; after
    /// [`TransportConfig::close_timeout`](weir_dcudp::TransportConfig::close_timeout) it does.
    pub async fn close(mut self) -> Result<(), DcudpError> {
        self.finished = true;
        self.release();
        self.closed().await
    }

    /// Aborts the connection at once, with a code for the peer's application. Undelivered data are
    /// lost.
    pub fn abort(&self, code: u32) {
        let mut state = self.connection.lock();
        let now = state.now();
        state.engine.abort(now, code);
        state.send();
    }

    /// Waits until the connection is over.
    ///
    /// # Errors
    /// [`DcudpError`] where it did not end in order.
    pub async fn closed(&self) -> Result<(), DcudpError> {
        poll_fn(|cx| {
            let mut state = self.connection.lock();
            if let Some(end) = &state.end {
                return Poll::Ready(end.clone());
            }
            wait(&mut state.watchers, cx.waker());
            Poll::Pending
        })
        .await
    }

    /// Releases the connection for the application.
    fn release(&self) {
        let mut state = self.connection.lock();
        let now = state.now();
        if state.release(now, self.finished) {
            state.send();
        }
    }

    /// Waits until the handshake is complete.
    pub(super) async fn established(&self) -> Result<(), DcudpError> {
        poll_fn(|cx| {
            let mut state = self.connection.lock();
            state.check_open()?;
            if state.engine.is_established() {
                return Poll::Ready(Ok(()));
            }
            wait(&mut state.watchers, cx.waker());
            Poll::Pending
        })
        .await
    }

    /// Returns the peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        let remote = self.connection.peek().engine.remote();
        SocketAddr::new(remote.ip().to_canonical(), remote.port())
    }

    /// Returns the address of this end's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.connection.shared.sockets.local()
    }

    /// Returns the connection's counters and its current mode, rate and RTT.
    pub fn stats(&self) -> ConnectionStats {
        self.connection.peek().engine.stats()
    }

    /// Returns a view of the connection that outlives it.
    pub fn watch(&self) -> DcudpWatch {
        DcudpWatch {
            connection: self.connection.clone(),
        }
    }
}

/// Reads a connection's statistics without keeping it open.
#[derive(Clone)]
pub struct DcudpWatch {
    connection: Arc<SharedDcudpConnection>,
}

impl DcudpWatch {
    /// As [`DcudpConnection::stats`].
    pub fn stats(&self) -> ConnectionStats {
        self.connection.peek().engine.stats()
    }
}

impl fmt::Debug for DcudpWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DcudpWatch").finish_non_exhaustive()
    }
}

impl<K: ServiceKind> Drop for DcudpConnection<K> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<K: ServiceKind> fmt::Debug for DcudpConnection<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DcudpConnection")
            .field("remote", &self.remote_address())
            .field("data", &K::DATA)
            .finish_non_exhaustive()
    }
}
