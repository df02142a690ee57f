//! Reads frames from a packet's payload.

use std::ops::RangeInclusive;

use super::types;
use super::{
    Ack, AckFrequency, Close, EcnCounts, Frame, NewConnectionId, PathSecret, ResetStream, Stream,
};
use crate::codec::{Reader, Truncated, VARINT_MAX, varint_size};
use crate::{Code, ConnectionId, Direction, StreamId, TransportError};

/// The most streams of a kind (RFC 9000, section 4.6).
pub(crate) const MAX_STREAM_COUNT: u64 = 1 << 60;

/// An iterator over the frames of a packet's payload.
///
/// Each returned frame is well-formed by itself. The caller checks whether it is allowed in this
/// packet ([`Frame::allowed_in`]) and in the connection's state. After an error the iterator ends.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    ended: bool,
}

impl<'a> Frames<'a> {
    /// Creates an iterator over the frames of `payload`, a packet's plaintext.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(payload),
            ended: false,
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, TransportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if self.reader.is_empty() {
            self.ended = true;
            return (self.reader.position() == 0).then(|| Err(no_frames()));
        }
        let frame = read_frame(&mut self.reader);
        self.ended = frame.is_err();
        Some(frame)
    }
}

/// RFC 9000, section 12.4: a packet without any frame is a PROTOCOL_VIOLATION.
fn no_frames() -> TransportError {
    TransportError::new(Code::PROTOCOL_VIOLATION, "packet without frames")
}

fn read_frame<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, TransportError> {
    let frame_type = read_type(reader)?;
    read_fields(reader, frame_type).map_err(|malformed| malformed.in_frame(frame_type))
}

/// RFC 9000, section 12.4: a frame type not in its shortest form may be a PROTOCOL_VIOLATION.
fn read_type(reader: &mut Reader<'_>) -> Result<u64, TransportError> {
    let start = reader.position();
    let frame_type = reader.varint().map_err(Malformed::from)?;
    if reader.position() - start > varint_size(frame_type) {
        let reason = "frame type not in its shortest form";
        return Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason).in_frame(frame_type));
    }
    Ok(frame_type)
}

/// A malformed frame: a FRAME_ENCODING_ERROR.
struct Malformed(&'static str);

impl Malformed {
    fn in_frame(self, frame_type: u64) -> TransportError {
        TransportError::from(self).in_frame(frame_type)
    }
}

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self("frame truncated")
    }
}

impl From<Malformed> for TransportError {
    fn from(Malformed(reason): Malformed) -> Self {
        Self::new(Code::FRAME_ENCODING_ERROR, reason)
    }
}

fn read_fields<'a>(reader: &mut Reader<'a>, frame_type: u64) -> Result<Frame<'a>, Malformed> {
    use Direction::{Bidirectional, Unidirectional};
    Ok(match frame_type {
        types::STREAM..=types::STREAM_LAST => Frame::Stream(read_stream(reader, frame_type)?),
        types::ACK | types::ACK_ECN => Frame::Ack(read_ack(reader, frame_type == types::ACK_ECN)?),
        types::PADDING => {
            skip_padding(reader)?;
            Frame::Padding
        }
        types::PING => Frame::Ping,
        types::RESET_STREAM => Frame::ResetStream(ResetStream {
            id: read_stream_id(reader)?,
            code: reader.varint()?,
            final_size: reader.varint()?,
        }),
        types::STOP_SENDING => Frame::StopSending {
            id: read_stream_id(reader)?,
            code: reader.varint()?,
        },
        types::CRYPTO => {
            let offset = reader.varint()?;
            let data = reader.length_prefixed()?;
            check_end(offset, data)?;
            Frame::Crypto { offset, data }
        }
        types::NEW_TOKEN => match reader.length_prefixed()? {
            [] => return Err(Malformed("empty token")),
            token => Frame::NewToken(token),
        },
        types::MAX_DATA => Frame::MaxData(reader.varint()?),
        types::MAX_STREAM_DATA => Frame::MaxStreamData {
            id: read_stream_id(reader)?,
            limit: reader.varint()?,
        },
        types::MAX_STREAMS_BIDI => max_streams(reader, Bidirectional)?,
        types::MAX_STREAMS_UNI => max_streams(reader, Unidirectional)?,
        types::DATA_BLOCKED => Frame::DataBlocked(reader.varint()?),
        types::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked {
            id: read_stream_id(reader)?,
            limit: reader.varint()?,
        },
        types::STREAMS_BLOCKED_BIDI => streams_blocked(reader, Bidirectional)?,
        types::STREAMS_BLOCKED_UNI => streams_blocked(reader, Unidirectional)?,
        types::NEW_CONNECTION_ID => Frame::NewConnectionId(read_new_connection_id(reader)?),
        types::RETIRE_CONNECTION_ID => Frame::RetireConnectionId(reader.varint()?),
        types::PATH_CHALLENGE => Frame::PathChallenge(reader.array()?),
        types::PATH_RESPONSE => Frame::PathResponse(reader.array()?),
        types::CLOSE_TRANSPORT => Frame::Close(Close::Transport {
            code: Code::from_wire(reader.varint()?),
            frame_type: reader.varint()?,
            reason: reader.length_prefixed()?,
        }),
        types::CLOSE_APPLICATION => Frame::Close(Close::Application {
            code: reader.varint()?,
            reason: reader.length_prefixed()?,
        }),
        types::HANDSHAKE_DONE => Frame::HandshakeDone,
        types::DATAGRAM => Frame::Datagram(reader.bytes(reader.remaining())?),
        types::DATAGRAM_WITH_LENGTH => Frame::Datagram(reader.length_prefixed()?),
        types::ACK_FREQUENCY => Frame::AckFrequency(AckFrequency {
            sequence: reader.varint()?,
            threshold: reader.varint()?,
            max_ack_delay: reader.varint()?,
            reordering_threshold: reader.varint()?,
        }),
        types::IMMEDIATE_ACK => Frame::ImmediateAck,
        types::PATH_SECRET => Frame::PathSecret(read_path_secret(reader)?),
        types::PATH_KEY => Frame::PathKey(reader.array()?),
        types::PATH_KEY_ANSWER => Frame::PathKeyAnswer {
            key: reader.array()?,
            secret: read_path_secret(reader)?,
        },
        types::GO_AWAY => Frame::GoAway(read_stream_count(reader)?),
        _ => return Err(Malformed("unknown frame type")),
    })
}

fn read_path_secret(reader: &mut Reader<'_>) -> Result<PathSecret, Truncated> {
    Ok(PathSecret {
        lifetime: reader.varint()?,
        refusal_token: reader.array()?,
    })
}

fn skip_padding(reader: &mut Reader<'_>) -> Result<(), Truncated> {
    let rest = reader.rest();
    let run = rest
        .iter()
        .position(|byte| *byte != 0)
        .unwrap_or(rest.len());
    reader.bytes(run).map(|_| ())
}

fn read_stream_id(reader: &mut Reader<'_>) -> Result<StreamId, Truncated> {
    reader.varint().map(StreamId::from_wire)
}

fn read_stream<'a>(reader: &mut Reader<'a>, frame_type: u64) -> Result<Stream<'a>, Malformed> {
    let id = read_stream_id(reader)?;
    let offset = match frame_type & types::STREAM_OFFSET {
        0 => 0,
        _ => reader.varint()?,
    };
    let data = match frame_type & types::STREAM_LENGTH {
        0 => reader.bytes(reader.remaining())?,
        _ => reader.length_prefixed()?,
    };
    check_end(offset, data)?;
    Ok(Stream {
        id,
        offset,
        fin: frame_type & types::STREAM_FIN != 0,
        data,
    })
}

/// No byte of a stream is beyond offset 2^62 - 1 (RFC 9000, sections 19.6 and 19.8).
fn check_end(offset: u64, data: &[u8]) -> Result<(), Malformed> {
    if data.len() as u64 > VARINT_MAX - offset {
        return Err(Malformed("data beyond the largest offset"));
    }
    Ok(())
}

fn max_streams<'a>(reader: &mut Reader<'_>, direction: Direction) -> Result<Frame<'a>, Malformed> {
    let limit = read_stream_count(reader)?;
    Ok(Frame::MaxStreams { direction, limit })
}

fn streams_blocked<'a>(
    reader: &mut Reader<'_>,
    direction: Direction,
) -> Result<Frame<'a>, Malformed> {
    let limit = read_stream_count(reader)?;
    Ok(Frame::StreamsBlocked { direction, limit })
}

fn read_stream_count(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    match reader.varint()? {
        count @ 0..=MAX_STREAM_COUNT => Ok(count),
        _ => Err(Malformed("more streams than can exist")),
    }
}

fn read_new_connection_id(reader: &mut Reader<'_>) -> Result<NewConnectionId, Malformed> {
    let sequence = reader.varint()?;
    let retire_prior_to = reader.varint()?;
    if retire_prior_to > sequence {
        return Err(Malformed("connection ID that retires itself"));
    }
    let length = reader.u8()?;
    let id = ConnectionId::new(reader.bytes(usize::from(length))?)
        .filter(|id| !id.is_empty())
        .ok_or(Malformed("connection ID not of 1 to 20 bytes"))?;
    Ok(NewConnectionId {
        sequence,
        retire_prior_to,
        id,
        reset_token: reader.array()?,
    })
}

#[inline(always)]
fn read_ack<'a>(reader: &mut Reader<'a>, with_ecn: bool) -> Result<Ack<'a>, Malformed> {
    const BELOW_ZERO: Malformed = Malformed("ACK range below packet number zero");
    let largest = reader.varint()?;
    let delay = reader.varint()?;
    let range_count = reader.varint()?;
    let first_range = reader.varint()?;
    let mut smallest = largest.checked_sub(first_range).ok_or(BELOW_ZERO)?;

    let from_ranges = reader.rest();
    let start = reader.position();
    for _ in 0..range_count {
        let next = next_range(smallest, reader.varint()?, reader.varint()?).ok_or(BELOW_ZERO)?;
        smallest = *next.start();
    }
    let (encoded_ranges, _) = from_ranges
        .split_at_checked(reader.position() - start)
        .ok_or(Truncated)?;

    let ecn = if with_ecn {
        Some(EcnCounts {
            ect0: reader.varint()?,
            ect1: reader.varint()?,
            ce: reader.varint()?,
        })
    } else {
        None
    };
    Ok(Ack {
        largest,
        delay,
        encoded_ranges,
        first_range,
        ecn,
    })
}

/// Returns the next range of an ACK below `smallest` (RFC 9000, section 19.3.1); `None` below zero.
fn next_range(smallest: u64, gap: u64, length: u64) -> Option<RangeInclusive<u64>> {
    let largest = smallest.checked_sub(gap.checked_add(2)?)?;
    Some(largest.checked_sub(length)?..=largest)
}

impl<'a> Ack<'a> {
    /// Returns the acknowledged packet numbers: ranges from the largest downwards, with at least
    /// one missing number between any two.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> + use<'a> {
        let first = self.largest.saturating_sub(self.first_range)..=self.largest;
        let mut reader = Reader::new(self.encoded_ranges);
        std::iter::successors(Some(first), move |above| {
            let gap = reader.varint().ok()?;
            let length = reader.varint().ok()?;
            next_range(*above.start(), gap, length)
        })
    }
}
