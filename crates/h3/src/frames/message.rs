//! The frames of a request or a response (RFC 9114, section 4.1).

use super::field_section::{Section, check};
use super::frame_type::{
    CANCEL_PUSH, DATA, GOAWAY, HEADERS, MAX_PUSH_ID, OF_HTTP2, PUSH_PROMISE, SETTINGS,
};
use super::{Violation, Way};

/// The frames of a message.
#[derive(Debug)]
pub(super) struct Message {
    is_response: bool,
    part: Part,
    /// The longest HEADERS frame in bytes.
    max_headers: u64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    /// DATA frames, and trailers.
    Body,
    End,
}

impl Message {
    pub(super) fn request(max_headers: u64) -> Self {
        Self {
            is_response: false,
            part: Part::Header,
            max_headers,
        }
    }

    pub(super) fn response(max_headers: u64) -> Self {
        Self {
            is_response: true,
            ..Self::request(max_headers)
        }
    }

    pub(super) fn begin(&self, frame_type: u64, length: u64) -> Result<Way, Violation> {
        match frame_type {
            DATA if self.part != Part::Body => Err(Violation::Unexpected(frame_type)),
            DATA if length == 0 => Ok(Way::Skip),
            DATA => Ok(Way::Pass),
            HEADERS if self.part == Part::End => Err(Violation::Unexpected(frame_type)),
            HEADERS if length > self.max_headers => Err(Violation::LongHeader {
                length,
                limit: self.max_headers,
            }),
            HEADERS => Ok(Way::Collect),
            PUSH_PROMISE if self.is_response => Err(Violation::Push),
            PUSH_PROMISE | CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID => {
                Err(Violation::Unexpected(frame_type))
            }
            _ if OF_HTTP2.contains(&frame_type) => Err(Violation::Unexpected(frame_type)),
            _ => Ok(Way::Skip),
        }
    }

    /// A HEADERS frame is complete; an interim response does not pass.
    pub(super) fn complete(&mut self, payload: &[u8]) -> Result<bool, Violation> {
        let (section, next) = match self.part {
            Part::Header if self.is_response => (Section::Response, Part::Body),
            Part::Header => (Section::Request, Part::Body),
            Part::Body | Part::End => (Section::Trailers, Part::End),
        };
        let is_interim = check(section, payload)?;
        if !is_interim {
            self.part = next;
        }
        Ok(!is_interim)
    }

    /// The stream ends. `h3` resets a request without a header, but closes a connection with a response
    /// without one.
    pub(super) fn end(&self) -> Result<(), Violation> {
        if self.is_response && self.part == Part::Header {
            return Err(Violation::Malformed("a response without a header"));
        }
        Ok(())
    }
}
