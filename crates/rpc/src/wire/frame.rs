//! Frames: type, length, payload. The reader takes a stream in any pieces.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};
use weir_quic::codec::{Reader, Truncated, put_varint};
use weir_units::ByteSize;

use super::{Limits, WireError};

/// The longest encoding of a type and a length.
const LONGEST_HEAD: usize = 16;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// A request's header.
    Header,
    /// A message of a request or a response.
    Message,
    /// A response's status.
    Status,
    /// An extension, which is ignored.
    Unknown(u64),
}

impl FrameType {
    const fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Header,
            1 => Self::Message,
            2 => Self::Status,
            other => Self::Unknown(other),
        }
    }

    const fn code(self) -> u64 {
        match self {
            Self::Header => 0,
            Self::Message => 1,
            Self::Status => 2,
            Self::Unknown(code) => code,
        }
    }

    const fn limit(self, limits: &Limits) -> ByteSize {
        match self {
            Self::Message => limits.message,
            Self::Header | Self::Status | Self::Unknown(_) => limits.header,
        }
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("HEADER"),
            Self::Message => f.write_str("MESSAGE"),
            Self::Status => f.write_str("STATUS"),
            Self::Unknown(code) => write!(f, "type {code}"),
        }
    }
}

/// A frame that has arrived in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub frame_type: FrameType,
    /// Its payload.
    pub payload: Bytes,
}

/// Appends a frame's type and length, and its payload.
pub fn put_frame(out: &mut Vec<u8>, frame_type: FrameType, payload: &[u8]) {
    put_head(out, frame_type, payload.len());
    out.extend_from_slice(payload);
}

/// Appends the type and length of a frame whose payload follows.
pub(crate) fn put_head(out: &mut Vec<u8>, frame_type: FrameType, length: usize) {
    put_varint(out, frame_type.code());
    put_varint(out, length as u64);
}

/// Finds the frames in a stream that arrives in pieces. A message that lies in one piece is not
/// copied, and no memory is reserved for what a frame only announces.
#[derive(Clone, Debug)]
pub struct FrameReader {
    limits: Limits,
    input: Bytes,
    /// Type and length as far as they have arrived.
    head: Vec<u8>,
    payload: Option<PartialPayload>,
}

#[derive(Clone, Debug)]
struct PartialPayload {
    frame_type: FrameType,
    /// Bytes that are missing.
    missing: usize,
    arrived: BytesMut,
}

impl FrameReader {
    /// Creates a reader at the start of a stream.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            input: Bytes::new(),
            head: Vec::new(),
            payload: None,
        }
    }

    /// Adds the stream's next bytes.
    pub fn push(&mut self, piece: Bytes) {
        if self.input.is_empty() {
            self.input = piece;
        } else {
            let mut joined = BytesMut::from(&self.input[..]);
            joined.extend_from_slice(&piece);
            self.input = joined.freeze();
        }
    }

    /// Returns the next known frame, or `None` where more bytes are needed.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] as soon as a frame announces more than the limit.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        loop {
            if self.payload.is_none() {
                let Some((frame_type, length)) = self.read_head() else {
                    return Ok(None);
                };
                self.payload = Some(self.begin(frame_type, length)?);
            }
            let Some(payload) = self.read_payload() else {
                return Ok(None);
            };
            let frame_type = payload.0;
            if !matches!(frame_type, FrameType::Unknown(_)) {
                return Ok(Some(Frame {
                    frame_type,
                    payload: payload.1,
                }));
            }
        }
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// [`WireError::Truncated`] within a frame.
    pub fn finish(&self) -> Result<(), WireError> {
        let is_between = self.input.is_empty() && self.head.is_empty() && self.payload.is_none();
        is_between.then_some(()).ok_or(WireError::Truncated)
    }

    fn read_head(&mut self) -> Option<(FrameType, u64)> {
        while !self.input.is_empty() && self.head.len() < LONGEST_HEAD {
            self.head.push(self.input.get_u8());
            let mut reader = Reader::new(&self.head);
            let head = reader
                .varint()
                .and_then(|code| Ok::<_, Truncated>((code, reader.varint()?)));
            if let Ok((code, length)) = head {
                self.head.clear();
                return Some((FrameType::from_code(code), length));
            }
        }
        None
    }

    fn begin(&self, frame_type: FrameType, length: u64) -> Result<PartialPayload, WireError> {
        let limit = frame_type.limit(&self.limits);
        let too_large = WireError::TooLarge {
            frame: frame_type,
            length: ByteSize::from_bytes(length),
            limit,
        };
        if length > limit.bytes() {
            return Err(too_large);
        }
        Ok(PartialPayload {
            frame_type,
            missing: usize::try_from(length).map_err(|_| too_large)?,
            arrived: BytesMut::new(),
        })
    }

    fn read_payload(&mut self) -> Option<(FrameType, Bytes)> {
        let mut payload = self.payload.take()?;
        let piece = self.input.split_to(payload.missing.min(self.input.len()));
        payload.missing -= piece.len();
        let is_skipped = matches!(payload.frame_type, FrameType::Unknown(_));
        if payload.missing == 0 && payload.arrived.is_empty() {
            return Some((payload.frame_type, piece));
        }
        if !is_skipped {
            payload.arrived.extend_from_slice(&piece);
        }
        if payload.missing > 0 {
            self.payload = Some(payload);
            return None;
        }
        Some((payload.frame_type, payload.arrived.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(limits: Limits, pieces: impl IntoIterator<Item = Bytes>) -> Vec<Frame> {
        let mut reader = FrameReader::new(limits);
        let mut frames = Vec::new();
        for piece in pieces {
            reader.push(piece);
            while let Some(frame) = reader.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        reader.finish().unwrap();
        frames
    }

    #[test]
    fn a_message_in_one_piece_is_not_copied() {
        let mut stream = Vec::new();
        put_frame(&mut stream, FrameType::Message, &[7; 1000]);
        let stream = Bytes::from(stream);
        let frames = read(Limits::default(), [stream.clone()]);
        assert_eq!(frames[0].payload.as_ptr(), stream[3..].as_ptr());
    }

    #[test]
    fn a_frame_above_its_limit_is_an_error_before_its_payload_arrives() {
        let limits = Limits {
            message: ByteSize::from_bytes(10),
            ..Limits::default()
        };
        let mut head = Vec::new();
        put_head(&mut head, FrameType::Message, 11);
        let mut reader = FrameReader::new(limits);
        reader.push(head.into());
        let expected = WireError::TooLarge {
            frame: FrameType::Message,
            length: ByteSize::from_bytes(11),
            limit: ByteSize::from_bytes(10),
        };
        assert_eq!(reader.next_frame(), Err(expected));
    }

    #[test]
    fn an_announced_length_reserves_no_memory() {
        let mut head = Vec::new();
        put_head(&mut head, FrameType::Message, 4 << 20);
        let mut reader = FrameReader::new(Limits::default());
        reader.push(head.into());
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.payload.as_ref().unwrap().arrived.capacity(), 0);
    }

    #[test]
    fn the_end_within_a_frame_is_an_error() {
        let mut stream = Vec::new();
        put_frame(&mut stream, FrameType::Status, b"status");
        for length in 1..stream.len() {
            let mut reader = FrameReader::new(Limits::default());
            reader.push(Bytes::copy_from_slice(&stream[..length]));
            assert_eq!(reader.next_frame(), Ok(None));
            assert_eq!(reader.finish(), Err(WireError::Truncated));
        }
    }

    fn frame_type() -> impl Strategy<Value = FrameType> {
        (0u64..6).prop_map(FrameType::from_code)
    }

    proptest! {
        #[test]
        fn frames_arrive_in_any_pieces(
            frames in prop::collection::vec(
                (frame_type(), prop::collection::vec(any::<u8>(), 0..300)), 0..6),
            cuts in prop::collection::vec(1usize..80, 1..50),
        ) {
            let mut stream = Vec::new();
            for (frame_type, payload) in &frames {
                put_frame(&mut stream, *frame_type, payload);
            }
            let mut pieces = Vec::new();
            let mut rest = Bytes::from(stream);
            for cut in cuts {
                pieces.push(rest.split_to(cut.min(rest.len())));
            }
            pieces.push(rest);
            let known = frames.into_iter().filter_map(|(frame_type, payload)| {
                let is_known = !matches!(frame_type, FrameType::Unknown(_));
                is_known.then(|| Frame { frame_type, payload: payload.into() })
            });
            prop_assert_eq!(read(Limits::default(), pieces), known.collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut reader = FrameReader::new(Limits::default());
            let length = bytes.len();
            reader.push(bytes.into());
            let mut payloads = 0;
            while let Ok(Some(frame)) = reader.next_frame() {
                payloads += frame.payload.len();
            }
            prop_assert!(payloads <= length);
        }
    }
}
