//! The API of a connection.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle as Runtime;
use weir_congestion::{Controller, Deadline};
use weir_quic::crypto::Identity as PeerIdentity;
use weir_quic::{ConnectionStats, Direction, Side, StreamId, Version};

use crate::dcquic::OpenedStream;
use crate::error::ConnectionError;
use crate::handle::Handle;
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use crate::waiters::wait;

/// A DCQUIC connection. Clones are handles to the same one.
///
/// The connection is closed when the last handle, stream and call is dropped: data that the peer
/// has not acknowledged by then are lost. [`SendStream::acknowledged`] waits for that.
#[derive(Clone)]
pub struct Connection {
    pub(crate) handle: Arc<Handle>,
}

impl Connection {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Opens a bidirectional stream; waits for the handshake, and while the peer's stream limit is
    /// reached. The peer sees the stream when something is sent on it.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over or draining.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        poll_fn(|cx| self.poll_open_bi(cx)).await
    }

    /// As [`Connection::open_bi`], for a future of your own.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over or draining.
    pub fn poll_open_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let opened = ready!(self.poll_open(cx, Direction::Bidirectional, false))?;
        Poll::Ready(Ok(self.both(opened)))
    }

    /// Opens a unidirectional stream; waits as [`Connection::open_bi`] does.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over or draining.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        poll_fn(|cx| self.poll_open_uni(cx)).await
    }

    /// As [`Connection::open_uni`], for a future of your own.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over or draining.
    pub fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        let opened = ready!(self.poll_open(cx, Direction::Unidirectional, false))?;
        Poll::Ready(Ok(SendStream::new(self.handle.clone(), opened)))
    }

    /// As [`Connection::open_bi`], but sends early data (0-RTT) where that is possible now.
    ///
    /// An attacker can replay recorded early data to the server: send only what may safely happen
    /// twice. Where the server rejects them, reading and writing fail with `EarlyDataRejected`, and
    /// the stream has to be opened again.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over or draining.
    pub async fn open_bi_early(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let opened = poll_fn(|cx| self.poll_open(cx, Direction::Bidirectional, true)).await?;
        Ok(self.both(opened))
    }

    /// As [`Connection::open_uni`], but sends early data; see [`Connection::open_bi_early`].
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over or draining.
    pub async fn open_uni_early(&self) -> Result<SendStream, ConnectionError> {
        let opened = poll_fn(|cx| self.poll_open(cx, Direction::Unidirectional, true)).await?;
        Ok(SendStream::new(self.handle.clone(), opened))
    }

    /// Returns the next bidirectional stream that the peer opens.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        poll_fn(|cx| self.poll_accept_bi(cx)).await
    }

    /// As [`Connection::accept_bi`], for a future of your own.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over.
    pub fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let id = ready!(self.poll_accept(cx, Direction::Bidirectional))?;
        Poll::Ready(Ok(self.both(OpenedStream { id, early: false })))
    }

    /// Returns the next unidirectional stream that the peer opens.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        poll_fn(|cx| self.poll_accept_uni(cx)).await
    }

    /// As [`Connection::accept_uni`], for a future of your own.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over.
    pub fn poll_accept_uni(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionError>> {
        let id = ready!(self.poll_accept(cx, Direction::Unidirectional))?;
        let opened = OpenedStream { id, early: false };
        Poll::Ready(Ok(RecvStream::new(self.handle.clone(), opened)))
    }

    /// Closes the connection at once, with a code and a reason for the peer. All reading and
    /// writing on it ends; data that are not acknowledged yet are lost.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.handle.close(code, reason);
    }

    /// Waits until the connection is over, and returns the reason.
    pub async fn closed(&self) -> ConnectionError {
        poll_fn(|cx| {
            let mut state = self.handle.connection.lock();
            match state.closed() {
                Some(error) => Poll::Ready(error),
                None => {
                    wait(&mut state.waiting.closing, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Ends the connection once what runs on it has ended, as [`Endpoint::shutdown`] does with all
    /// connections: the peer's new streams are refused, and it is told which ones; the connection
    /// closes when the streams that it had opened have ended and it has acknowledged that. Returns at
    /// once.
    ///
    /// [`Endpoint::shutdown`]: crate::Endpoint::shutdown
    pub fn drain(&self) {
        self.handle.connection.lock().drain();
    }

    /// Sets the codes of an application protocol of its own for a draining connection: that with which
    /// the peer's new streams are reset and stopped, and that with which the connection closes.
    /// [`SHUT_DOWN`](crate::SHUT_DOWN) by default.
    pub fn set_drain_codes(&self, refusal: u64, close: u64) {
        self.handle.connection.lock().drain_codes = (refusal, close);
    }

    /// Returns whether the connection takes no new calls, as one of its ends shuts down: open another
    /// one. Those that run go on.
    pub fn is_draining(&self) -> bool {
        self.handle.connection.peek().is_draining()
    }

    /// Waits until this side drains the connection, or it is over.
    pub async fn draining_here(&self) {
        poll_fn(|cx| {
            let mut state = self.handle.connection.lock();
            if state.engine.is_going_away() || state.error.is_some() {
                return Poll::Ready(());
            }
            wait(&mut state.waiting.draining, cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Returns whether the peer learns by DCQUIC's GOAWAY which of its calls a draining connection does
    /// not execute. Peers of other QUIC stacks do not.
    pub fn peer_takes_go_away(&self) -> bool {
        self.handle.connection.peek().engine.peer_takes_go_away()
    }

    /// Returns whether the connection takes new calls: it is neither draining nor over.
    pub fn takes_calls(&self) -> bool {
        let state = self.handle.connection.peek();
        state.error.is_none() && !state.is_draining()
    }

    /// Waits until the connection takes no new calls: it is draining, or over.
    pub async fn draining(&self) {
        poll_fn(|cx| {
            let mut state = self.handle.connection.lock();
            if state.check_not_draining().is_err() {
                return Poll::Ready(());
            }
            wait(&mut state.waiting.draining, cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Returns why the connection is over, if it is.
    pub fn error(&self) -> Option<ConnectionError> {
        self.handle.connection.peek().closed()
    }

    /// Returns the runtime that receives the connection's packets: the endpoint's, or that of its
    /// engine ([`EndpointBuilder::threads`](crate::EndpointBuilder::threads)). A task there answers
    /// without waking another thread.
    pub fn runtime(&self) -> &Runtime {
        &self.handle.connection.shared.settings.runtime
    }

    /// Returns the peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        remote_of(&self.handle)
    }

    /// Returns this side of the connection.
    pub fn side(&self) -> Side {
        self.handle.connection.peek().engine.side()
    }

    /// Returns the QUIC version; it may change until the handshake is complete.
    pub fn version(&self) -> Version {
        self.handle.connection.peek().engine.version()
    }

    /// Returns whether the handshake is complete and the connection open.
    pub fn is_established(&self) -> bool {
        self.handle.connection.peek().engine.is_established()
    }

    /// Returns the peer's data from the handshake: certificates, application protocol, whether a
    /// session was resumed. Complete once the handshake is.
    pub fn peer_identity(&self) -> PeerIdentity {
        self.handle.connection.peek().engine.identity()
    }

    /// Returns whether the connection began without a handshake (`docs/known-peers.md`). That of a
    /// client ends if the server refuses it.
    pub fn is_known_peer(&self) -> bool {
        self.handle.connection.peek().engine.is_known_peer()
    }

    /// Returns whether the server rejected this client's early data.
    pub fn early_data_rejected(&self) -> bool {
        self.handle.connection.peek().early_data_rejected
    }

    /// Writes keying material bound to this connection (RFC 8446, section 7.5) to `output`; returns
    /// `false` before the handshake is complete.
    pub fn export_keying_material(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        let state = self.handle.connection.peek();
        state.engine.export_keying_material(output, label, context)
    }

    /// Returns statistics of the connection and of each of its paths.
    pub fn stats(&self) -> ConnectionStats {
        self.handle.connection.peek().engine.stats()
    }

    /// Replaces the congestion controller, which starts afresh.
    pub fn set_controller(&self, controller: Box<dyn Controller>) {
        self.handle
            .connection
            .lock()
            .engine
            .set_controller(controller);
    }

    /// Sets the size and the deadline of the remaining data for the congestion controller (D2TCP);
    /// `None` removes them.
    pub fn set_deadline(&self, deadline: Option<Deadline>) {
        self.handle.connection.lock().engine.set_deadline(deadline);
    }

    fn both(&self, opened: OpenedStream) -> (SendStream, RecvStream) {
        (
            SendStream::new(self.handle.clone(), opened),
            RecvStream::new(self.handle.clone(), opened),
        )
    }

    fn poll_open(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        early: bool,
    ) -> Poll<Result<OpenedStream, ConnectionError>> {
        let mut state = self.handle.connection.lock();
        state.check_not_draining()?;
        match state.open(direction, early) {
            Some(opened) => Poll::Ready(Ok(opened)),
            None => {
                wait(state.waiting.opening(direction), cx.waker());
                Poll::Pending
            }
        }
    }

    pub(crate) fn poll_accept(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.handle.connection.lock();
        // Streams that arrived before the connection ended can still be read.
        if let Some(id) = state.engine.accept(direction) {
            return Poll::Ready(Ok(id));
        }
        state.check_open()?;
        wait(state.waiting.accepting(direction), cx.waker());
        Poll::Pending
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("remote", &self.remote_address())
            .finish_non_exhaustive()
    }
}

/// Returns the peer's address, as an IPv4 address where it is one.
pub(crate) fn remote_of(handle: &Handle) -> SocketAddr {
    let remote = handle.connection.peek().engine.remote();
    SocketAddr::new(remote.ip().to_canonical(), remote.port())
}
