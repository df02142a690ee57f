//! Connections over one byte stream in each direction: TCP, TLS over TCP, DCUDP.

use std::future::{Future, ready};
use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::Error;
use crate::probe::Probe;
use crate::transport::{Connection, ConnectionAddresses, StreamKind};

/// The underlying stream of such a connection, with the operations that differ between transports.
pub trait Carrier: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {
    /// Returns both addresses.
    ///
    /// # Errors
    /// The error of the operating system.
    fn ends(&self) -> io::Result<ConnectionAddresses>;

    /// See [`Connection::congestion`].
    fn congestion(&self) -> Option<String>;

    /// See [`Connection::probe`].
    ///
    /// # Errors
    /// No file descriptor is available for it.
    fn probe(&self) -> io::Result<Probe>;

    /// See [`Connection::abort`].
    fn abort(&self);

    /// See [`Connection::send`].
    fn send(&mut self, data: Bytes) -> impl Future<Output = io::Result<usize>> + Send {
        async move { self.write(&data).await }
    }

    /// See [`Connection::receive`]. `buffer` is kept for the next call.
    fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> impl Future<Output = io::Result<usize>> + Send {
        async move {
            if buffer.len() < most {
                *buffer = vec![0; most];
            }
            let buffer = buffer.get_mut(..most).unwrap_or_default();
            let count = self.read(buffer).await?;
            take(buffer.get(..count).unwrap_or_default());
            Ok(count)
        }
    }

    /// See [`Connection::delivered`]. Returns at once if the transport cannot tell.
    fn delivered(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        ready(Ok(()))
    }

    /// Returns whether the server accepted early data.
    fn early_data_accepted(&self) -> bool {
        false
    }

    /// Waits for a session ticket, if tickets are stored.
    fn ticket(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }

    /// Ends this side after the peer has ended its own, if dropping would not.
    fn end_after_peer(&mut self) {}
}

/// A connection whose messages follow one another on one stream.
#[derive(Debug)]
pub struct ByteStream<C> {
    carrier: C,
    /// The receive buffer; it grows to the largest read.
    buffer: Vec<u8>,
}

impl<C> ByteStream<C> {
    /// Returns a connection over `carrier`.
    pub fn new(carrier: C) -> Self {
        Self {
            carrier,
            buffer: Vec::new(),
        }
    }
}

impl<C: Carrier> ByteStream<C> {
    /// Waits for more data; returns whether the peer's stream ends here instead.
    async fn read_end(&mut self) -> io::Result<bool> {
        Ok(self.carrier.read(&mut [0]).await? == 0)
    }
}

impl<C: Carrier> Connection for ByteStream<C> {
    fn ends(&self) -> io::Result<ConnectionAddresses> {
        self.carrier.ends()
    }

    fn congestion(&self) -> Option<String> {
        self.carrier.congestion()
    }

    fn probe(&self) -> io::Result<Probe> {
        self.carrier.probe()
    }

    async fn open(&mut self, _kind: StreamKind) -> io::Result<()> {
        Ok(())
    }

    async fn accept(&mut self, _kind: StreamKind) -> io::Result<bool> {
        Ok(true)
    }

    async fn send(&mut self, data: Bytes) -> io::Result<usize> {
        self.carrier.send(data).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.carrier.flush().await
    }

    async fn end_message(&mut self, last: Bytes) -> io::Result<()> {
        self.carrier.write_all(&last).await?;
        self.carrier.flush().await
    }

    async fn receive(
        &mut self,
        most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> io::Result<usize> {
        self.carrier.receive(&mut self.buffer, most, take).await
    }

    async fn message_ended(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.carrier.shutdown().await
    }

    async fn delivered(&mut self) -> io::Result<()> {
        self.carrier.delivered().await
    }

    async fn closed_by_peer(&mut self) -> io::Result<bool> {
        self.read_end().await
    }

    async fn early_data_accepted(&mut self) -> Result<bool, Error> {
        Ok(self.carrier.early_data_accepted())
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.carrier.ticket().await?;
        let closed = self.carrier.shutdown().await;
        closed.map_err(Error::failed("closing the connection"))
    }

    async fn close_as_client(&mut self) -> io::Result<()> {
        if !self.read_end().await? {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.carrier.end_after_peer();
        Ok(())
    }

    async fn close_as_server(&mut self) -> io::Result<()> {
        self.carrier.shutdown().await
    }

    fn abort(&self) {
        self.carrier.abort();
    }
}
