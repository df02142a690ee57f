//! A connection of TLS over TCP.
//!
//! The end of a direction is TLS's close_notify (RFC 8446, section 6.1), and a TCP connection that ends
//! without it is a reset. The server's first byte is 0, or the code of a [`Refusal`], after which nothing
//! follows.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;
use tokio_util::io::poll_read_buf;
use weir_net::{RecvStream, SendStream};

use super::{Broken, Carrier, CarrierKind};
use crate::refusal::Refusal;

/// The largest record (RFC 8446, section 5.1).
const RECORD: usize = 16 * 1024;

/// A TLS connection that carries one TCP connection.
#[derive(Debug)]
pub(crate) struct TlsCarrier {
    stream: TlsStream<TcpStream>,
    /// Whether the server's first byte is still to come.
    awaits_answer: bool,
}

impl TlsCarrier {
    /// The client's side, which the server answers.
    pub(crate) fn client(stream: TlsStream<TcpStream>) -> Self {
        Self {
            stream,
            awaits_answer: true,
        }
    }

    /// The server's side.
    pub(crate) fn server(stream: TlsStream<TcpStream>) -> Self {
        Self {
            stream,
            awaits_answer: false,
        }
    }

    /// Takes the server's answer off the first chunk.
    fn take_answer(&mut self, chunk: &mut BytesMut) -> Result<(), Broken> {
        self.awaits_answer = false;
        match chunk.get_u8() {
            0 => Ok(()),
            code => Err(Broken::ByPeer(Refusal::of_code(code.into()))),
        }
    }

    fn break_off(&self) {
        let (tcp, _) = self.stream.get_ref();
        // The socket closes with a reset; where that fails the peer still misses the close_notify.
        let _ = SockRef::from(tcp).set_linger(Some(std::time::Duration::ZERO));
    }
}

impl Carrier for TlsCarrier {
    const ANSWERS: bool = true;
    const KIND: CarrierKind = CarrierKind::Tls;

    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Broken>> {
        while !data.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data));
            data.advance(written.map_err(|_| Broken::Lost)?);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let shut = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
        // A peer that has everything may be gone already.
        Poll::Ready(match shut {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(Broken::Lost),
            _ => Ok(()),
        })
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(flushed.map_err(|_| Broken::Lost))
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        enough: usize,
        chunks: &mut VecDeque<Bytes>,
    ) -> Poll<Result<bool, Broken>> {
        loop {
            let mut chunk = BytesMut::with_capacity(RECORD.min(enough));
            let read = ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut chunk));
            match read.map_err(|_| Broken::Lost)? {
                // The server ends before it has answered.
                0 if self.awaits_answer => return Poll::Ready(Err(Broken::Lost)),
                0 => return Poll::Ready(Ok(false)),
                _ if self.awaits_answer => self.take_answer(&mut chunk)?,
                _ => {}
            }
            if !chunk.is_empty() {
                chunks.push_back(chunk.freeze());
                return Poll::Ready(Ok(true));
            }
        }
    }

    fn into_flow(self) -> Result<(SendStream, RecvStream), Self> {
        Err(self)
    }

    fn reset(&mut self, _refusal: Refusal) {
        self.break_off();
    }
}
