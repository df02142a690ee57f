//! The unidirectional streams that the peer opens (RFC 9114, section 6.2; RFC 9204, section 4.2).
//!
//! `h3` gets the control stream. QPACK's streams are followed here, which it does not: both tables have
//! no entry, so that nearly all instructions are wrong.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::ConnectionErrorIncoming;
use weir_net::{Connection, ReadError, Side};

use super::errors;
use super::peer::PeerState;
use super::streams::{RecvStream, close};
use crate::frames::{Frames, Integer, Violation};
use crate::qpack::Instructions;

/// Types of streams.
const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;
/// The type of a control stream, as it is encoded.
const CONTROL_TYPE: &[u8] = &[0];

/// The most bytes that are taken from a stream at once.
const MAX_CHUNK: usize = 16 * 1024;

/// The peer's unidirectional streams.
pub(super) struct Unidirectional {
    connection: Connection,
    peer: Arc<PeerState>,
    /// Streams whose type has not arrived. QUIC limits how many there can be.
    arriving: Vec<Arriving>,
    has_control: bool,
    encoder: Option<QpackStream>,
    decoder: Option<QpackStream>,
}

/// A stream, and its type as far as it has come.
struct Arriving {
    stream: weir_net::RecvStream,
    stream_type: Integer,
}

/// What there is of a stream that arrives.
enum Arrived {
    Type(u64, Bytes),
    /// It ended before.
    Nothing,
}

struct QpackStream {
    stream: weir_net::RecvStream,
    instructions: Instructions,
    arrived: Bytes,
}

impl Unidirectional {
    pub(super) fn new(connection: Connection, peer: Arc<PeerState>) -> Self {
        Self {
            connection,
            peer,
            arriving: Vec::new(),
            has_control: false,
            encoder: None,
            decoder: None,
        }
    }

    /// Returns the control stream once it arrives, and follows all others.
    pub(super) fn poll_control(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        while let Poll::Ready(stream) = self.connection.poll_accept_uni(cx) {
            let mut stream = stream.map_err(errors::connection)?;
            stream.set_lasting();
            self.arriving.push(Arriving {
                stream,
                stream_type: Integer::default(),
            });
        }
        let mut index = 0;
        while let Some(arriving) = self.arriving.get_mut(index) {
            let Poll::Ready(arrived) = arriving.poll(cx)? else {
                index += 1;
                continue;
            };
            let Arriving { stream, .. } = self.arriving.swap_remove(index);
            let Arrived::Type(stream_type, arrived) = arrived else {
                continue;
            };
            let sorted = self.sort(stream, stream_type, arrived);
            let control = sorted.map_err(|violation| close(&self.connection, violation))?;
            if let Some(control) = control {
                return Poll::Ready(Ok(control));
            }
        }
        for stream in [&mut self.encoder, &mut self.decoder].into_iter().flatten() {
            if let Poll::Ready(violation) = stream.poll(cx)? {
                return Poll::Ready(Err(close(&self.connection, violation)));
            }
        }
        Poll::Pending
    }

    /// Puts a stream where it belongs; returns it where it is the control stream.
    fn sort(
        &mut self,
        mut stream: weir_net::RecvStream,
        stream_type: u64,
        arrived: Bytes,
    ) -> Result<Option<RecvStream>, Violation> {
        let side = self.connection.side();
        let (place, instructions) = match stream_type {
            CONTROL if !self.has_control => {
                self.has_control = true;
                let frames = match side {
                    Side::Client => Frames::of_server_control(),
                    Side::Server => Frames::of_client_control(),
                };
                let connection = self.connection.clone();
                let stream = RecvStream::new(stream, connection, frames, Code::H3_NO_ERROR);
                let peer = self.peer.clone();
                return Ok(Some(stream.control(CONTROL_TYPE, arrived, peer)));
            }
            PUSH if side == Side::Client => return Err(Violation::Push),
            ENCODER => (&mut self.encoder, Instructions::of_encoder()),
            DECODER => (&mut self.decoder, Instructions::of_decoder()),
            CONTROL | PUSH => return Err(Violation::StreamType(stream_type)),
            _ => {
                stream.stop(Code::H3_STREAM_CREATION_ERROR.value());
                return Ok(None);
            }
        };
        if place.is_some() {
            return Err(Violation::StreamType(stream_type));
        }
        *place = Some(QpackStream {
            stream,
            instructions,
            arrived,
        });
        Ok(None)
    }
}

impl Arriving {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Arrived, ConnectionErrorIncoming>> {
        loop {
            let Some(mut chunk) = ready!(poll_chunk(&mut self.stream, cx))? else {
                return Poll::Ready(Ok(Arrived::Nothing));
            };
            while chunk.has_remaining() {
                if let Some(stream_type) = self.stream_type.push(chunk.get_u8()) {
                    return Poll::Ready(Ok(Arrived::Type(stream_type, chunk)));
                }
            }
        }
    }
}

impl QpackStream {
    /// Follows the stream until something is wrong with it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Violation, ConnectionErrorIncoming>> {
        loop {
            let arrived = std::mem::take(&mut self.arrived);
            if let Err(violation) = self.instructions.pass(&arrived) {
                return Poll::Ready(Ok(violation));
            }
            match ready!(poll_chunk(&mut self.stream, cx))? {
                Some(chunk) => self.arrived = chunk,
                None => return Poll::Ready(Ok(Violation::CriticalStream)),
            }
        }
    }
}

/// Reads a stream; `None` where it ended, or was reset.
fn poll_chunk(
    stream: &mut weir_net::RecvStream,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Bytes>, ConnectionErrorIncoming>> {
    let read = ready!(stream.poll_read_chunk(cx, MAX_CHUNK));
    Poll::Ready(match read {
        Ok(chunk) => Ok(chunk),
        Err(ReadError::Connection(error)) => Err(errors::connection(error)),
        Err(_) => Ok(None),
    })
}
