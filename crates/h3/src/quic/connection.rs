//! A connection: what opens streams, and accepts them.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, OpenStreams, StreamErrorIncoming};
use weir_net::Side;

use super::errors;
use super::exchange::Exchange;
use super::peer::PeerState;
use super::streams::{BidiStream, RecvStream, SendStream};
use super::unidirectional::Unidirectional;
use crate::frames::Frames;

/// A connection for `h3`.
pub(crate) struct Quic {
    opener: Opener,
    unidirectional: Unidirectional,
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
            connection: connection.clone(),
            max_headers,
        };
        Self {
            opener,
            unidirectional: Unidirectional::new(connection, peer),
        }
    }
}

impl Opener {
    /// Wraps a stream that carries a request; returns what its halves share, too.
    pub(crate) fn request_stream(
        &self,
        (send, recv): (weir_net::SendStream, weir_net::RecvStream),
    ) -> (BidiStream, Arc<Exchange>) {
        // A server that has answered need not read the rest of the request; whoever gives a request up
        // says so (RFC 9114, section 4.1.1).
        let (reset_code, stop_code, frames) = match self.connection.side() {
            Side::Client => (
                Code::H3_REQUEST_CANCELLED,
                Code::H3_REQUEST_CANCELLED,
                Frames::of_response(self.max_headers),
            ),
            Side::Server => (
                Code::H3_INTERNAL_ERROR,
                Code::H3_NO_ERROR,
                Frames::of_request(self.max_headers),
            ),
        };
        BidiStream::new(
            SendStream::new(send, reset_code),
            RecvStream::new(recv, self.connection.clone(), frames, stop_code),
        )
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
        Poll::Ready(Ok(self.request_stream(stream).0))
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

    /// Only control streams: `h3` ignores all others.
    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        self.unidirectional.poll_control(cx)
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
        Poll::Ready(Ok(self.opener.request_stream(stream).0))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}
