//! A TLS server that reads early data and answers it before the handshake is complete (0.5-RTT
//! data), like a QUIC server, for a fair comparison with 0-RTT. tokio-rustls does not expose early
//! data, and answers only after the handshake.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A server's session from the client's first bytes on.
#[derive(Debug)]
pub(super) struct EarlyStream {
    stream: TcpStream,
    tls: ServerConnection,
}

impl EarlyStream {
    pub(super) fn new(stream: TcpStream, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            stream,
            tls: ServerConnection::new(config)?,
        })
    }

    pub(super) fn tcp(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads early data first, then ordinary data.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(count) = self.read(buffer.initialize_unfilled())? {
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
            // The handshake may have to send before more data can arrive. If the socket is full,
            // the task is woken when it is writable.
            let _ = self.transmit(cx)?;
            ready!(self.poll_receive(cx))?;
        }
    }

    /// Reads decrypted data: 0 at the end of the stream, `None` if none is available yet.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if let Some(mut early) = self.tls.early_data() {
            let count = early.read(buffer)?;
            if count > 0 {
                return Ok(Some(count));
            }
        }
        match self.tls.reader().read(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Processes the data received from the socket.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.tls.read_tls(&mut Transfer(&self.stream)) {
                Ok(_) => {
                    let taken = self.tls.process_new_packets();
                    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
                    return Poll::Ready(taken.map(drop).map_err(invalid));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Buffers as much as TLS has room for, and sends as much as the socket accepts.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let taken = self.tls.writer().write(data)?;
            let sent = self.transmit(cx)?;
            if taken > 0 || data.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            ready!(sent);
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transmit(cx)?.map(Ok)
    }

    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tls.send_close_notify();
        ready!(self.transmit(cx)?);
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Sends TLS's pending output; pending while the socket is full.
    fn transmit(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Transfer(&self.stream)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.stream.poll_write_ready(cx) {
                        Poll::Ready(ready) => ready?,
                        Poll::Pending => return Ok(Poll::Pending),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Poll::Ready(()))
    }
}

/// The socket as rustls requires it: non-blocking.
struct Transfer<'a>(&'a TcpStream);

impl Read for Transfer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Transfer<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.try_write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
