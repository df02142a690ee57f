//! A client's TLS connection, which ends when the client's certificate is not accepted any more.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::peer::Peer;

/// A connection whose client was accepted.
#[derive(Debug)]
pub(super) struct ClientConnection {
    tls: TlsStream<TcpStream>,
    peer: Peer,
    /// Completes when the certificate is not accepted any more; `None` then.
    ended: Option<oneshot::Receiver<Infallible>>,
}

impl ClientConnection {
    pub(super) fn new(
        tls: TlsStream<TcpStream>,
        peer: Peer,
        ended: oneshot::Receiver<Infallible>,
    ) -> Self {
        Self {
            tls,
            peer,
            ended: Some(ended),
        }
    }

    /// Returns whether the connection has ended; the task wakes up when it does.
    fn poll_ended(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(ended) = &mut self.ended
            && Pin::new(ended).poll(context).is_ready()
        {
            self.ended = None;
        }
        self.ended.is_none()
    }
}

impl Connected for ClientConnection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for ClientConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.poll_ended(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.tls).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}
