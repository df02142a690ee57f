//! A connection: what opens streams, and accepts them.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, OpenStreams, StreamErrorIncoming};
use weir_net::Side;

use super::errors;
use super::peer::PeerState;
use super::streams::{BidiStream, RecvStream, SendStream};
use crate::frame_bounds::FrameBounds;

/// A connection for `h3`.
pub(crate) struct Quic {
    opener: Opener,
    peer: Arc<PeerState>,
}

/// Opens streams on a connection.
#[derive(Clone)]
pub(crate) struct Opener {
    connection: weir_net::Connection,
    /// The longest HEADERS frame, in bytes, that the peer may send.
    max_headers: u64,
}

impl Quic {
    pub(crate) fn new(
        connection: weir_net::Connection,
        max_headers: u64,
        peer: Arc<PeerState>,
    ) -> Self {
        let opener = Opener {
            connection,
            max_headers,
        };
        Self { opener, peer }
    }
}

impl Opener {
    /// Wraps a stream that carries a request.
    pub(crate) fn request_stream(
        &self,
        (send, recv): (weir_net::SendStream, weir_net::RecvStream),
    ) -> BidiStream {
        // A server that has answered need not read the rest of the request; whoever gives a request up
        // says so (RFC 9114, section 4.1.1).
        let (reset_code, stop_code) = match self.connection.side() {
            Side::Client => (Code::H3_REQUEST_CANCELLED, Code::H3_REQUEST_CANCELLED),
            Side::Server => (Code::H3_INTERNAL_ERROR, Code::H3_NO_ERROR),
        };
        let bounds = FrameBounds::of_request(self.max_headers);
        BidiStream {
            send: SendStream::new(send, reset_code),
            recv: RecvStream::new(recv, self.connection.clone(), bounds, stop_code),
        }
    }
}

impl OpenStreams<Bytes> for Opener {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let stream = ready!(self.connection.poll_open_bi(cx)).map_err(errors::stream)?;
        Poll::Ready(Ok(self.request_stream(stream)))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        let mut stream = ready!(self.connection.poll_open_uni(cx)).map_err(errors::stream)?;
        stream.set_lasting();
        Poll::Ready(Ok(SendStream::new(stream, Code::H3_NO_ERROR)))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(code.value(), reason);
    }
}

impl OpenStreams<Bytes> for Quic {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.close(code, reason);
    }
}

impl h3::quic::Connection<Bytes> for Quic {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        let mut stream = ready!(connection.poll_accept_uni(cx)).map_err(errors::connection)?;
        stream.set_lasting();
        let bounds = FrameBounds::of_unidirectional();
        let stream = RecvStream::new(stream, connection.clone(), bounds, Code::H3_NO_ERROR);
        Poll::Ready(Ok(stream.telling(self.peer.clone())))
    }

    /// The streams that a client gets. A server accepts requests itself: `h3` would remember each one
    /// that is reset before its header has arrived, and names a request that it has accepted as the
    /// first one that it does not serve.
    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        if connection.side() == Side::Server {
            return Poll::Pending;
        }
        let stream = ready!(connection.poll_accept_bi(cx)).map_err(errors::connection)?;
        Poll::Ready(Ok(self.opener.request_stream(stream)))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}
