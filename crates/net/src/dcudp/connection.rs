//! A connection as applications hold it, whatever it carries.

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

/// What a connection carries: [`Stream`] or [`Messages`].
pub trait ServiceKind: sealed::Sealed + Send + Sync + Unpin + 'static {
    /// As the engine calls it.
    const DATA: DataKind;
}

/// One stream of bytes in each direction.
#[derive(Debug)]
pub struct Stream;

/// Messages with ends, in order or not.
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
/// Dropping it cuts the connection off: the peer hears that the application has given up (code 0), and
/// what was not delivered is lost. Where this end had finished before
/// ([`DcudpConnection::finish`], or `shutdown` of a stream), all that was written is still delivered, as
/// long as the runtime runs.
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

    /// Says that no more data will come from here. What was written before is delivered, and what the
    /// peer sends still arrives. Once both ends have finished and have everything, the connection is
    /// over.
    pub fn finish(&mut self) {
        self.finished = true;
        let mut state = self.connection.lock();
        state.engine.finish();
        state.send();
    }

    /// Ends the connection in order: waits until the peer has everything that was written here. What
    /// the peer still has to say is not waited for. That its transport has the data does not say that
    /// its application has read them.
    ///
    /// # Errors
    /// [`DcudpError`] where the connection ends before; after
    /// [`TransportConfig::close_timeout`](weir_dcudp::TransportConfig::close_timeout) it does.
    pub async fn close(mut self) -> Result<(), DcudpError> {
        self.finished = true;
        self.leave();
        self.closed().await
    }

    /// Ends the connection at once, with a code for the peer's application. What was not delivered is
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

    /// The application lets go.
    fn leave(&self) {
        let mut state = self.connection.lock();
        let now = state.now();
        if state.leave(now, self.finished) {
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

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        let remote = self.connection.peek().engine.remote();
        SocketAddr::new(remote.ip().to_canonical(), remote.port())
    }

    /// The address of this end's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.connection.shared.sockets.local()
    }

    /// What the connection has counted so far, and how it is now: mode, rate, round-trip time.
    pub fn stats(&self) -> ConnectionStats {
        self.connection.peek().engine.stats()
    }

    /// A view of the connection that outlives it.
    pub fn watch(&self) -> DcudpWatch {
        DcudpWatch {
            connection: self.connection.clone(),
        }
    }
}

/// Sees what a connection counts, without keeping it open.
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
        self.leave();
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
