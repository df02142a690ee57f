//! A connection over one stream of bytes in each direction: TCP, TLS over it, DCUDP.

use std::future::{Future, ready};
use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::Error;
use crate::probe::Probe;
use crate::transport::{Connection, Ends, StreamKind};

/// What carries the bytes, with what one transport does in another way than the others.
pub trait Carrier: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {
    /// Its addresses.
    ///
    /// # Errors
    /// What the system says.
    fn ends(&self) -> io::Result<Ends>;

    /// As [`Connection::congestion`].
    fn congestion(&self) -> Option<String>;

    /// As [`Connection::probe`].
    ///
    /// # Errors
    /// When no descriptor is left for it.
    fn probe(&self) -> io::Result<Probe>;

    /// As [`Connection::abort`].
    fn abort(&self);

    /// As [`Connection::delivered`]: nothing is known where the transport does not tell.
    fn delivered(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        ready(Ok(()))
    }

    /// Whether the server took early data.
    fn early_data_accepted(&self) -> bool {
        false
    }

    /// Waits for a session ticket, where tickets are kept.
    fn ticket(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }

    /// Ends this side after the peer has ended its own, where dropping would not.
    fn end_after_peer(&mut self) {}
}

/// A connection whose messages follow one another.
#[derive(Debug)]
pub struct ByteStream<C> {
    carrier: C,
    /// Read into; grows with what is read at once.
    buffer: Vec<u8>,
}

impl<C> ByteStream<C> {
    /// A connection over `carrier`.
    pub fn new(carrier: C) -> Self {
        Self {
            carrier,
            buffer: Vec::new(),
        }
    }
}

impl<C: Carrier> ByteStream<C> {
    /// Whether the peer's data end here; waits for that.
    async fn read_end(&mut self) -> io::Result<bool> {
        Ok(self.carrier.read(&mut [0]).await? == 0)
    }
}

impl<C: Carrier> Connection for ByteStream<C> {
    fn ends(&self) -> io::Result<Ends> {
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
        self.carrier.write(&data).await
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
        if self.buffer.len() < most {
            self.buffer = vec![0; most];
        }
        let buffer = self.buffer.get_mut(..most).unwrap_or_default();
        let count = self.carrier.read(buffer).await?;
        take(buffer.get(..count).unwrap_or_default());
        Ok(count)
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

    async fn depart(&mut self) -> io::Result<()> {
        if !self.read_end().await? {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.carrier.end_after_peer();
        Ok(())
    }

    async fn release(&mut self) -> io::Result<()> {
        self.carrier.shutdown().await
    }

    fn abort(&self) {
        self.carrier.abort();
    }
}
