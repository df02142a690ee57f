//! Follows the frames of a stream as they pass (RFC 9114, section 7), without keeping them.
//!
//! The `h3` crate (0.0.8) buffers a frame that is no DATA frame until it is complete, however long its
//! header says it is, and takes the end of a stream within a DATA frame, or an empty DATA frame, for
//! the end of the body. It also reads ahead: twice for every DATA frame, whatever it has still to
//! decode, so that small frames with a slow reader would fill the memory. So it gets a stream in pieces
//! of which it decodes each before it asks for the next one, and no empty DATA frames.

/// Frame types that are told apart (RFC 9114, section 7.2).
const DATA: u64 = 0x0;
const HEADERS: u64 = 0x1;
const GOAWAY: u64 = 0x7;
/// The type of a control stream (RFC 9114, section 6.2.1).
const CONTROL_STREAM: u64 = 0x0;

/// The longest frame that is neither DATA nor HEADERS, in bytes: SETTINGS, GOAWAY, and frames of
/// unknown types, which are ignored.
const MAX_OTHER_FRAME: u64 = 16 * 1024;

/// The frames of one stream.
#[derive(Debug)]
pub(crate) struct FrameBounds {
    state: State,
    /// The longest HEADERS frame in bytes.
    max_headers: u64,
    go_away: Option<u64>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The type of a unidirectional stream.
    StreamType(Integer),
    FrameType(Integer),
    Length {
        frame_type: u64,
        length: Integer,
    },
    Payload {
        left: u64,
    },
    /// The identifier in a GOAWAY frame.
    GoAway {
        left: u64,
        identifier: Integer,
    },
    /// A stream without frames: QPACK, or one of an unknown type.
    Unframed,
}

/// A variable-length integer (RFC 9000, section 16) that arrives byte by byte.
#[derive(Clone, Copy, Debug, Default)]
struct Integer {
    value: u64,
    /// How many bytes are missing, after the first one.
    missing: u8,
    has_begun: bool,
}

/// The next bytes of a stream, up to the end of a frame, or of the header of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// So many bytes are to be passed on, after those that were held back.
    Whole(usize),
    /// So many bytes are part of a frame's header, and are held back.
    Held(usize),
    /// So many bytes, and those that were held back, are an empty DATA frame.
    Empty(usize),
}

/// What a stream may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("a frame of type {frame_type:#x} with {length} bytes, where {limit} are allowed")]
    TooLong {
        frame_type: u64,
        length: u64,
        limit: u64,
    },
    #[error("the stream ended within a frame")]
    Truncated,
}

impl Integer {
    /// Adds a byte; returns the value with the last one.
    fn push(&mut self, byte: u8) -> Option<u64> {
        if self.has_begun {
            self.value = self.value << 8 | u64::from(byte);
            self.missing -= 1;
        } else {
            self.value = u64::from(byte & 0x3f);
            self.missing = (1 << (byte >> 6)) - 1;
            self.has_begun = true;
        }
        (self.missing == 0).then_some(self.value)
    }
}

impl FrameBounds {
    /// The frames of a request stream.
    pub(crate) fn of_request(max_headers: u64) -> Self {
        Self {
            state: State::FrameType(Integer::default()),
            max_headers,
            go_away: None,
        }
    }

    /// The frames of a unidirectional stream, if its type has frames.
    pub(crate) fn of_unidirectional() -> Self {
        Self {
            state: State::StreamType(Integer::default()),
            max_headers: MAX_OTHER_FRAME,
            go_away: None,
        }
    }

    /// Follows the next piece of bytes that arrived.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Piece, Violation> {
        let mut length = 0;
        while let Some(byte) = bytes.get(length) {
            match &mut self.state {
                State::Unframed => return Ok(Piece::Whole(bytes.len())),
                State::Payload { left } => {
                    let passed = (*left).min((bytes.len() - length) as u64);
                    *left -= passed;
                    length += passed as usize;
                    if *left == 0 {
                        self.state = State::FrameType(Integer::default());
                    }
                    return Ok(Piece::Whole(length));
                }
                _ => {
                    length += 1;
                    if let Some(begun) = self.push(*byte)? {
                        return Ok(begun.piece(length));
                    }
                }
            }
        }
        Ok(match self.state {
            State::FrameType(_) | State::Length { .. } => Piece::Held(length),
            _ => Piece::Whole(length),
        })
    }

    /// The stream ends.
    pub(crate) fn end(&self) -> Result<(), Violation> {
        match self.state {
            State::FrameType(Integer {
                has_begun: false, ..
            })
            | State::StreamType(_)
            | State::Unframed => Ok(()),
            _ => Err(Violation::Truncated),
        }
    }

    /// Returns the identifier of a GOAWAY frame that has passed since the last call.
    pub(crate) fn take_go_away(&mut self) -> Option<u64> {
        self.go_away.take()
    }

    /// Follows a byte outside of a plain payload; returns what ends with it.
    fn push(&mut self, byte: u8) -> Result<Option<Boundary>, Violation> {
        match &mut self.state {
            State::StreamType(stream_type) => {
                if let Some(stream_type) = stream_type.push(byte) {
                    self.state = match stream_type {
                        CONTROL_STREAM => State::FrameType(Integer::default()),
                        _ => State::Unframed,
                    };
                }
            }
            State::FrameType(frame_type) => {
                if let Some(frame_type) = frame_type.push(byte) {
                    let length = Integer::default();
                    self.state = State::Length { frame_type, length };
                }
            }
            State::Length { frame_type, length } => {
                let frame_type = *frame_type;
                if let Some(length) = length.push(byte) {
                    return self.begin(frame_type, length);
                }
            }
            State::GoAway { left, identifier } => {
                *left -= 1;
                let left = *left;
                if let Some(identifier) = identifier.push(byte) {
                    self.go_away = Some(identifier);
                    self.state = State::Payload { left };
                }
                if left == 0 {
                    self.state = State::FrameType(Integer::default());
                    return Ok(Some(Boundary::Frame));
                }
            }
            State::Payload { .. } | State::Unframed => {}
        }
        Ok(None)
    }

    /// Begins the payload of a frame.
    fn begin(&mut self, frame_type: u64, length: u64) -> Result<Option<Boundary>, Violation> {
        let limit = match frame_type {
            DATA => u64::MAX,
            HEADERS => self.max_headers,
            _ => MAX_OTHER_FRAME,
        };
        if length > limit {
            return Err(Violation::TooLong {
                frame_type,
                length,
                limit,
            });
        }
        self.state = match frame_type {
            GOAWAY if length > 0 => State::GoAway {
                left: length,
                identifier: Integer::default(),
            },
            _ if length == 0 => State::FrameType(Integer::default()),
            _ => State::Payload { left: length },
        };
        Ok(match (frame_type, length) {
            (DATA, 0) => Some(Boundary::EmptyData),
            (DATA, _) | (_, 0) => Some(Boundary::Frame),
            _ => None,
        })
    }
}

/// What ends with a byte.
#[derive(Clone, Copy, Debug)]
enum Boundary {
    /// A frame, or the header of a DATA frame.
    Frame,
    /// An empty DATA frame.
    EmptyData,
}

impl Boundary {
    fn piece(self, length: usize) -> Piece {
        match self {
            Self::Frame => Piece::Whole(length),
            Self::EmptyData => Piece::Empty(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 1000;

    impl FrameBounds {
        /// Follows bytes; returns what is passed on.
        fn pass(
            &mut self,
            mut bytes: &[u8],
            held: &mut Vec<u8>,
        ) -> Result<Vec<Vec<u8>>, Violation> {
            let mut passed = Vec::new();
            while !bytes.is_empty() {
                let (length, is_whole) = match self.next(bytes)? {
                    Piece::Whole(length) => (length, true),
                    Piece::Held(length) => (length, false),
                    Piece::Empty(length) => {
                        held.clear();
                        bytes = &bytes[length..];
                        continue;
                    }
                };
                assert!(length > 0);
                held.extend(&bytes[..length]);
                bytes = &bytes[length..];
                if is_whole {
                    passed.push(std::mem::take(held));
                }
            }
            Ok(passed)
        }

        fn follow(&mut self, bytes: &[u8]) -> Result<(), Violation> {
            self.pass(bytes, &mut Vec::new()).map(|_| ())
        }
    }

    /// Encodes a variable-length integer with as few bytes as hold it.
    fn integer(value: u64) -> Vec<u8> {
        match value {
            0..0x40 => vec![value as u8],
            0x40..0x4000 => (0x4000 | value as u16).to_be_bytes().to_vec(),
            0x4000..0x4000_0000 => (0x8000_0000 | value as u32).to_be_bytes().to_vec(),
            _ => (0xc000_0000_0000_0000 | value).to_be_bytes().to_vec(),
        }
    }

    fn frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
        [
            integer(frame_type),
            integer(payload.len() as u64),
            payload.to_vec(),
        ]
        .concat()
    }

    #[test]
    fn a_long_headers_frame_is_noticed_at_its_length() {
        let mut bounds = FrameBounds::of_request(LIMIT);
        let begin = [integer(HEADERS), integer(LIMIT + 1)].concat();
        let violation = Violation::TooLong {
            frame_type: HEADERS,
            length: LIMIT + 1,
            limit: LIMIT,
        };
        assert_eq!(bounds.follow(&begin), Err(violation));
    }

    #[test]
    fn data_may_be_as_long_as_they_like() {
        let mut bounds = FrameBounds::of_request(LIMIT);
        let begin = [integer(DATA), integer(1 << 61)].concat();
        assert_eq!(bounds.follow(&begin), Ok(()));
        assert_eq!(bounds.follow(&[0; 5000]), Ok(()));
        assert_eq!(bounds.end(), Err(Violation::Truncated));
    }

    #[test]
    fn unknown_frames_are_bounded() {
        let mut bounds = FrameBounds::of_request(LIMIT);
        assert_eq!(bounds.follow(&frame(0x21, &[0; 100])), Ok(()));
        let begin = [integer(0x21), integer(MAX_OTHER_FRAME + 1)].concat();
        assert!(bounds.follow(&begin).is_err());
    }

    #[test]
    fn a_go_away_is_read_on_a_control_stream() {
        let mut bounds = FrameBounds::of_unidirectional();
        let stream = [
            integer(CONTROL_STREAM),
            frame(0x4, &[]),
            frame(GOAWAY, &integer(400)),
        ]
        .concat();
        for byte in stream {
            assert_eq!(bounds.take_go_away(), None);
            assert_eq!(bounds.follow(&[byte]), Ok(()));
        }
        assert_eq!(bounds.take_go_away(), Some(400));
        assert_eq!(bounds.follow(&frame(GOAWAY, &[])), Ok(()));
        assert_eq!(bounds.take_go_away(), None);
        assert_eq!(bounds.follow(&frame(GOAWAY, &[0x40])), Ok(()));
        assert_eq!(bounds.take_go_away(), None);
        assert_eq!(bounds.end(), Ok(()));
    }

    #[test]
    fn other_unidirectional_streams_have_no_frames() {
        let mut bounds = FrameBounds::of_unidirectional();
        assert_eq!(bounds.follow(&integer(0x2)), Ok(()));
        assert_eq!(bounds.follow(&[0xff; 100]), Ok(()));
        assert_eq!(bounds.end(), Ok(()));
    }

    proptest! {
        #[test]
        fn frames_end_where_they_end(
            frames in prop::collection::vec(
                (prop_oneof![Just(DATA), Just(HEADERS), Just(GOAWAY), 0x8u64..1 << 62], 0usize..900),
                0..8,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut stream = Vec::new();
            let mut ends = vec![0];
            for (frame_type, length) in frames {
                stream.extend(frame(frame_type, &vec![7; length]));
                ends.push(stream.len());
            }
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.push(stream.len());
            cuts.sort_unstable();
            let mut bounds = FrameBounds::of_request(LIMIT);
            let mut passed = 0;
            for cut in cuts {
                prop_assert_eq!(bounds.follow(&stream[passed..cut]), Ok(()));
                passed = cut;
                prop_assert_eq!(bounds.end().is_ok(), ends.contains(&passed));
            }
        }

        #[test]
        fn pieces_are_what_h3_decodes_at_once(
            frames in prop::collection::vec(
                (prop_oneof![Just(DATA), Just(HEADERS), Just(GOAWAY), 0x8u64..1 << 62], 0usize..90),
                0..8,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let frames: Vec<_> = frames
                .into_iter()
                .map(|(frame_type, length)| (frame_type, frame(frame_type, &vec![7; length]), length))
                .collect();
            let stream: Vec<_> = frames.iter().flat_map(|(_, frame, _)| frame.clone()).collect();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.push(stream.len());
            cuts.sort_unstable();
            let mut bounds = FrameBounds::of_request(LIMIT);
            let (mut held, mut pieces, mut passed) = (Vec::new(), Vec::new(), 0);
            for cut in cuts {
                pieces.extend(bounds.pass(&stream[passed..cut], &mut held).unwrap());
                passed = cut;
            }
            prop_assert!(held.is_empty());
            // No piece has bytes of two frames, or of a DATA frame's header and payload.
            let mut pieces = pieces.into_iter();
            for (frame_type, frame, length) in frames {
                let parts = match (frame_type, length) {
                    (DATA, 0) => continue,
                    (DATA, length) => vec![&frame[..frame.len() - length], &frame[frame.len() - length..]],
                    _ => vec![&frame[..]],
                };
                for part in parts {
                    let mut found = Vec::new();
                    while found.len() < part.len() {
                        found.extend(pieces.next().unwrap());
                    }
                    prop_assert_eq!(&found, part);
                }
            }
            prop_assert!(pieces.next().is_none());
        }

        #[test]
        fn any_bytes_are_followed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut request = FrameBounds::of_request(LIMIT);
            let mut unidirectional = FrameBounds::of_unidirectional();
            let _ = request.follow(&bytes);
            let _ = unidirectional.follow(&bytes);
        }
    }
}
