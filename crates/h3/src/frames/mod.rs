//! Follows the frames of a stream as they pass (RFC 9114, section 7), and lets through those that `h3`
//! shall see.
//!
//! The `h3` crate (0.0.8) buffers a frame that is no DATA frame until it is complete, however long its
//! header says it is; takes the end of a stream within a DATA frame, and an empty DATA frame, for the
//! end of the body; reads ahead, twice for every DATA frame, whatever it has still to decode, so that
//! small frames with a slow reader would fill the memory; reads a frame of type 0x41 as the begin of a WebTransport stream, which no other
//! frame may follow; takes the header of an interim response for that of the final one; and forgets
//! which fields of a section came twice, or late. All that is noticed here, before it sees the bytes,
//! which it gets in pieces that it decodes one by one.

mod control;
mod cursor;
mod field_section;
mod header;
mod integer;
mod message;
mod violation;

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};

use control::Control;
use cursor::Cursor;
use header::Header;
pub(crate) use integer::Integer;
use message::Message;
pub(crate) use violation::{Scope, Violation};

/// Frame types that are told apart (RFC 9114, section 7.2).
mod frame_type {
    pub(super) const DATA: u64 = 0x0;
    pub(super) const HEADERS: u64 = 0x1;
    pub(super) const CANCEL_PUSH: u64 = 0x3;
    pub(super) const SETTINGS: u64 = 0x4;
    pub(super) const PUSH_PROMISE: u64 = 0x5;
    pub(super) const GOAWAY: u64 = 0x7;
    pub(super) const MAX_PUSH_ID: u64 = 0xd;
    /// Types of HTTP/2 that HTTP/3 forbids.
    pub(super) const OF_HTTP2: [u64; 4] = [0x2, 0x6, 0x8, 0x9];
}

/// The frames of one stream.
#[derive(Debug)]
pub(crate) struct Frames {
    rules: Rules,
    state: State,
}

#[derive(Debug)]
enum Rules {
    Message(Message),
    Control(Control),
}

/// What the next byte belongs to.
#[derive(Debug)]
enum State {
    /// The type and length of a frame.
    Header(Header),
    /// A payload that passes as it comes.
    Pass { left: u64 },
    /// A payload that nobody sees.
    Skip { left: u64 },
    /// A frame that did not come at once, and is looked at as a whole.
    Collect {
        frame_type: u64,
        /// Its type and length, and what has come of its payload.
        frame: BytesMut,
        /// Where the payload begins.
        payload: usize,
        left: usize,
    },
}

/// Whether to go on, or to return what passes.
type Step = Result<ControlFlow<Option<Bytes>>, Violation>;

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Pass,
    Skip,
    /// It is looked at once it is complete.
    Collect,
}

impl Frames {
    /// The frames of a request, with HEADERS frames of up to so many bytes.
    pub(crate) fn of_request(max_headers: u64) -> Self {
        Self::new(Rules::Message(Message::request(max_headers)))
    }

    /// The frames of a response, likewise.
    pub(crate) fn of_response(max_headers: u64) -> Self {
        Self::new(Rules::Message(Message::response(max_headers)))
    }

    /// The frames of a client's control stream, from behind the stream's type.
    pub(crate) fn of_client_control() -> Self {
        Self::new(Rules::Control(Control::of_client()))
    }

    /// The frames of a server's control stream, likewise.
    pub(crate) fn of_server_control() -> Self {
        Self::new(Rules::Control(Control::of_server()))
    }

    fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: State::Header(Header::default()),
        }
    }

    /// Follows bytes that arrived; returns the next ones that pass, up to the end of a frame or of a DATA
    /// frame's header, and `None` once all are used up.
    pub(crate) fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Violation> {
        let mut cursor = Cursor::new(input);
        loop {
            if let ControlFlow::Break(passed) = self.step(&mut cursor)? {
                return Ok(passed);
            }
        }
    }

    /// Follows a part of a frame.
    fn step(&mut self, cursor: &mut Cursor<'_>) -> Step {
        match &mut self.state {
            State::Header(header) => {
                let header = std::mem::take(header);
                return self.begin(header, cursor);
            }
            State::Pass { left } => {
                *left -= cursor.pass(*left);
                if *left == 0 {
                    self.state = State::Header(Header::default());
                }
                return Ok(ControlFlow::Break(cursor.passed()));
            }
            State::Skip { left } => {
                let length = (*left).min(cursor.coming().len() as u64);
                *left -= length;
                cursor.cut(length as usize);
                if *left > 0 {
                    return Ok(ControlFlow::Break(None));
                }
            }
            State::Collect {
                frame_type,
                frame,
                payload,
                left,
            } => {
                let coming = cursor.coming();
                let length = (*left).min(coming.len());
                frame.extend_from_slice(&coming[..length]);
                *left -= length;
                cursor.cut(length);
                if *left > 0 {
                    return Ok(ControlFlow::Break(None));
                }
                let passes = self.rules.complete(*frame_type, &frame[*payload..])?;
                let frame = passes.then(|| frame.split().freeze());
                self.state = State::Header(Header::default());
                return Ok(unless_none(frame));
            }
        }
        self.state = State::Header(Header::default());
        Ok(ControlFlow::Continue(()))
    }

    /// Follows the type and length of a frame, of which bytes may have come before.
    fn begin(&mut self, mut header: Header, cursor: &mut Cursor<'_>) -> Step {
        let has_begun = !header.bytes().is_empty();
        let used = header.push(cursor.coming());
        let Some((frame_type, length)) = header.complete() else {
            self.state = State::Header(header);
            return Ok(ControlFlow::Break(cursor.cut(used)));
        };
        match self.rules.begin(frame_type, length)? {
            Way::Pass => {
                self.state = State::Pass { left: length };
                if has_begun {
                    cursor.cut(used);
                    let begin = Bytes::copy_from_slice(header.bytes());
                    return Ok(ControlFlow::Break(Some(begin)));
                }
                cursor.pass(used as u64);
                Ok(ControlFlow::Break(cursor.passed()))
            }
            Way::Skip => {
                self.state = State::Skip { left: length };
                Ok(unless_none(cursor.cut(used)))
            }
            Way::Collect => {
                // The rules allow no frame as long as that.
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let payload = cursor.coming()[used..].get(..length);
                if let (Some(payload), false) = (payload, has_begun) {
                    // All of it is there, so that nothing need be copied.
                    let passes = self.rules.complete(frame_type, payload)?;
                    if passes {
                        cursor.pass((used + length) as u64);
                        return Ok(ControlFlow::Break(cursor.passed()));
                    }
                    return Ok(unless_none(cursor.cut(used + length)));
                }
                let frame = BytesMut::from(header.bytes());
                self.state = State::Collect {
                    frame_type,
                    payload: frame.len(),
                    frame,
                    left: length,
                };
                Ok(unless_none(cursor.cut(used)))
            }
        }
    }

    /// The stream ends.
    pub(crate) fn end(&self) -> Result<(), Violation> {
        match &self.state {
            State::Header(header) if header.bytes().is_empty() => self.rules.end(),
            _ => Err(Violation::Truncated),
        }
    }

    /// Returns the identifier of a GOAWAY frame that has passed since the last call.
    pub(crate) fn take_go_away(&mut self) -> Option<u64> {
        match &mut self.rules {
            Rules::Message(_) => None,
            Rules::Control(control) => control.take_go_away(),
        }
    }
}

/// Goes on where nothing has passed.
fn unless_none(passed: Option<Bytes>) -> ControlFlow<Option<Bytes>> {
    match passed {
        Some(_) => ControlFlow::Break(passed),
        None => ControlFlow::Continue(()),
    }
}

impl Rules {
    /// A frame begins.
    fn begin(&self, frame_type: u64, length: u64) -> Result<Way, Violation> {
        match self {
            Self::Message(message) => message.begin(frame_type, length),
            Self::Control(control) => control.begin(frame_type, length),
        }
    }

    /// A frame that was collected is complete; returns whether it passes.
    fn complete(&mut self, frame_type: u64, payload: &[u8]) -> Result<bool, Violation> {
        match self {
            Self::Message(message) => message.complete(payload),
            Self::Control(control) => control.complete(frame_type, payload).map(|()| true),
        }
    }

    fn end(&self) -> Result<(), Violation> {
        match self {
            Self::Message(message) => message.end(),
            // `h3` notices it.
            Self::Control(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
