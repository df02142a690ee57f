//! The frames of a control stream (RFC 9114, sections 6.2.1 and 7.2).

use super::frame_type::{
    CANCEL_PUSH, DATA, GOAWAY, HEADERS, MAX_PUSH_ID, OF_HTTP2, PUSH_PROMISE, SETTINGS,
};
use super::{Integer, Violation, Way};

/// The longest frame that is looked at, in bytes.
const MAX_FRAME: u64 = 16 * 1024;

/// The frames of a control stream. `h3` acts on those that pass.
#[derive(Debug)]
pub(super) struct Control {
    is_client: bool,
    has_settings: bool,
    max_push_id: Option<u64>,
    /// The identifier of the last GOAWAY, and whether it is new since it was taken.
    go_away: Option<(u64, bool)>,
}

impl Control {
    /// The stream that a client opened.
    pub(super) fn of_client() -> Self {
        Self {
            is_client: true,
            has_settings: false,
            max_push_id: None,
            go_away: None,
        }
    }

    /// The stream that a server opened.
    pub(super) fn of_server() -> Self {
        Self {
            is_client: false,
            ..Self::of_client()
        }
    }

    pub(super) fn begin(&self, frame_type: u64, length: u64) -> Result<Way, Violation> {
        if !self.has_settings && frame_type != SETTINGS {
            return Err(Violation::MissingSettings);
        }
        match frame_type {
            MAX_PUSH_ID if !self.is_client => Err(Violation::Unexpected(frame_type)),
            DATA | HEADERS | PUSH_PROMISE => Err(Violation::Unexpected(frame_type)),
            _ if OF_HTTP2.contains(&frame_type) => Err(Violation::Unexpected(frame_type)),
            SETTINGS | GOAWAY | CANCEL_PUSH | MAX_PUSH_ID if length > MAX_FRAME => {
                Err(Violation::LongFrame {
                    frame_type,
                    length,
                    limit: MAX_FRAME,
                })
            }
            SETTINGS | GOAWAY | CANCEL_PUSH | MAX_PUSH_ID => Ok(Way::Collect),
            _ => Ok(Way::Skip),
        }
    }

    pub(super) fn complete(&mut self, frame_type: u64, payload: &[u8]) -> Result<(), Violation> {
        match frame_type {
            SETTINGS => {
                self.has_settings = true;
                are_settings(payload)
                    .then_some(())
                    .ok_or(Violation::Payload(frame_type))
            }
            GOAWAY => {
                let least = identifier(frame_type, payload)?;
                let earlier = self.go_away.replace((least, true));
                if earlier.is_some_and(|(earlier, _)| least > earlier) {
                    return Err(Violation::GoAway);
                }
                Ok(())
            }
            MAX_PUSH_ID => {
                let push = identifier(frame_type, payload)?;
                let earlier = self.max_push_id.replace(push);
                if earlier.is_some_and(|earlier| push < earlier) {
                    return Err(Violation::Push);
                }
                Ok(())
            }
            // We promise no push, and allow none.
            _ => identifier(frame_type, payload).and(Err(Violation::Push)),
        }
    }

    /// Returns the identifier of a GOAWAY frame since the last call.
    pub(super) fn take_go_away(&mut self) -> Option<u64> {
        let (identifier, is_new) = self.go_away.as_mut()?;
        std::mem::take(is_new).then_some(*identifier)
    }
}

/// Reads a payload that is one integer.
fn identifier(frame_type: u64, mut payload: &[u8]) -> Result<u64, Violation> {
    let value = Integer::take(&mut payload);
    let value = value.filter(|_| payload.is_empty());
    value.ok_or(Violation::Payload(frame_type))
}

/// Whether a payload is pairs of integers.
fn are_settings(mut payload: &[u8]) -> bool {
    while !payload.is_empty() {
        let name = Integer::take(&mut payload);
        if name.is_none() || Integer::take(&mut payload).is_none() {
            return false;
        }
    }
    true
}
