//! Follows the frames of a stream as they pass (RFC 9114, section 7), and lets through those that `h3`
//! shall see.
//!
//! The `h3` crate (0.0.8) buffers a frame that is no DATA frame until it is complete, however long its
//! header says it is; takes the end of a stream within a DATA frame, and an empty DATA frame, for the
//! end of the body; reads a frame of type 0x41 as the begin of a WebTransport stream, which no other
//! frame may follow; takes the header of an interim response for that of the final one; and forgets
//! which fields of a section came twice, or late. All that is noticed here, before it sees the bytes.

mod control;
mod field_section;
mod header;
mod integer;
mod message;
mod violation;

use bytes::{Buf, Bytes, BytesMut};

use control::Control;
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

    /// Follows bytes that arrived; returns the next ones that pass, and `None` once all are used up.
    pub(crate) fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Violation> {
        // So many bytes at the begin of the input pass.
        let mut passing = 0;
        loop {
            let coming = &input[passing..];
            match &mut self.state {
                State::Pass { left } => {
                    let length = (*left).min(coming.len() as u64);
                    *left -= length;
                    passing += length as usize;
                    if *left > 0 {
                        return Ok(take(input, passing));
                    }
                    self.state = State::Header(Header::default());
                }
                State::Skip { .. } | State::Collect { .. } if passing > 0 => {
                    return Ok(take(input, passing));
                }
                State::Skip { left } => {
                    let length = (*left).min(coming.len() as u64);
                    *left -= length;
                    input.advance(length as usize);
                    if *left > 0 {
                        return Ok(None);
                    }
                    self.state = State::Header(Header::default());
                }
                State::Collect {
                    frame_type,
                    frame,
                    payload,
                    left,
                } => {
                    let length = (*left).min(coming.len());
                    frame.extend_from_slice(&input.split_to(length));
                    *left -= length;
                    if *left > 0 {
                        return Ok(None);
                    }
                    let passes = self.rules.complete(*frame_type, &frame[*payload..])?;
                    let frame = frame.split().freeze();
                    self.state = State::Header(Header::default());
                    if passes {
                        return Ok(Some(frame));
                    }
                }
                State::Header(_) if coming.is_empty() => return Ok(take(input, passing)),
                State::Header(header) => {
                    let has_begun = !header.bytes().is_empty();
                    let used = header.push(coming);
                    let Some((frame_type, length)) = header.complete() else {
                        // Kept until the rest arrives.
                        let passed = take(input, passing);
                        input.clear();
                        return Ok(passed);
                    };
                    match self.rules.begin(frame_type, length)? {
                        Way::Pass => {
                            let begin = has_begun.then(|| Bytes::copy_from_slice(header.bytes()));
                            self.state = State::Pass { left: length };
                            if begin.is_some() {
                                input.advance(used);
                                return Ok(begin);
                            }
                            passing += used;
                        }
                        Way::Skip => {
                            let passed = take(input, passing);
                            input.advance(used);
                            self.state = State::Skip { left: length };
                            if passed.is_some() {
                                return Ok(passed);
                            }
                            passing = 0;
                        }
                        Way::Collect => {
                            // The rules allow no frame as long as that.
                            let length = usize::try_from(length).unwrap_or(usize::MAX);
                            let whole = coming[used..].get(..length);
                            if let (Some(payload), false) = (whole, has_begun) {
                                let passes = self.rules.complete(frame_type, payload)?;
                                self.state = State::Header(Header::default());
                                if passes {
                                    passing += used + length;
                                    continue;
                                }
                                let passed = take(input, passing);
                                input.advance(used + length);
                                if passed.is_some() {
                                    return Ok(passed);
                                }
                                passing = 0;
                                continue;
                            }
                            let frame = BytesMut::from(header.bytes());
                            let passed = take(input, passing);
                            input.advance(used);
                            self.state = State::Collect {
                                frame_type,
                                payload: frame.len(),
                                frame,
                                left: length,
                            };
                            if passed.is_some() {
                                return Ok(passed);
                            }
                            passing = 0;
                        }
                    }
                }
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

/// Takes bytes from the begin, if any.
fn take(input: &mut Bytes, length: usize) -> Option<Bytes> {
    (length > 0).then(|| input.split_to(length))
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
