//! The API for datagrams (RFC 9221) and key updates.

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use weir_quic::UpdateKeysError;

use crate::connection::Connection;
use crate::error::{ConnectionError, DatagramError};
use crate::waiters::wait;

impl Connection {
    /// Sends a datagram: at most once, in no order, before stream data. It leaves when the task
    /// yields or a batch is full, and when congestion control allows it. Where more than
    /// [`DatagramConfig::send_buffer`](crate::DatagramConfig::send_buffer) are queued, the oldest
    /// are dropped; [`ConnectionStats::datagrams`](crate::ConnectionStats::datagrams) counts them.
    ///
    /// # Errors
    /// [`DatagramError`]; nothing is sent then.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), DatagramError> {
        let mut state = self.handle.connection.lock();
        state.check_open()?;
        let size = data.len();
        state
            .engine
            .send_datagram(data)
            .map_err(DatagramError::from)?;
        state.on_written(size);
        Ok(())
    }

    /// Returns the peer's next datagram, in the order of arrival.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over and all received datagrams have been read.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        poll_fn(|cx| self.poll_datagram(cx)).await
    }

    /// Returns the largest datagram in bytes that can be sent now; `None` where the peer accepts
    /// none, or where they are disabled here. It changes with the path's packet size.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.handle.connection.peek().engine.max_datagram_size()
    }

    /// Starts a key update with the peer. Key updates also happen automatically before the cipher's
    /// limits are reached.
    ///
    /// # Errors
    /// [`UpdateKeysError`] where RFC 9001, section 6, forbids it for now.
    pub fn update_keys(&self) -> Result<(), UpdateKeysError> {
        let mut state = self.handle.connection.lock();
        let now = state.now();
        let begun = state.engine.update_keys(now);
        state.send();
        begun
    }

    fn poll_datagram(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        let mut state = self.handle.connection.lock();
        if let Some(data) = state.engine.read_datagram() {
            return Poll::Ready(Ok(data));
        }
        state.check_open()?;
        wait(&mut state.waiting.datagrams, cx.waker());
        Poll::Pending
    }
}
