//! The order of a client's messages.

use super::{FileHeader, Offer, ProtocolError, Request};
use crate::Sha256Digest;
use crate::path::RelativePath;

/// What a server does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Enter the directory, and answer that it is ready.
    Enter(RelativePath),
    /// Look for the file, tell [`Upload::offered`], and send the offer.
    Look(FileHeader),
    /// Continue the partial file at this byte; 0 empties it.
    Start(u64),
    /// Append to the partial file.
    Append(&'a [u8]),
    /// Verify the partial file, rename it, and answer that it is done.
    Finish(Sha256Digest),
    /// Leave the existing file, and answer that it is done.
    Keep,
}

/// The state of a client's upload, as its server sees it.
#[derive(Clone, Debug, Default)]
pub struct Upload {
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// Before the hello.
    #[default]
    Greeting,
    /// Between two files.
    Ready,
    /// The server looks for a file of this size.
    Looking(u64),
    /// The offer is on its way.
    Offered { size: u64, offer: Offer },
    /// So many bytes are missing.
    Receiving(u64),
}

impl Upload {
    /// Returns an upload that waits for the hello.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the client may end the connection now.
    #[must_use]
    pub fn may_end(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Handles a message. Returns what to do.
    ///
    /// # Errors
    /// [`ProtocolError`], where the message does not fit the state; the connection is to be closed.
    pub fn handle<'a>(&mut self, request: Request<'a>) -> Result<Step<'a>, ProtocolError> {
        let message = request.name();
        let (state, step) = match (self.state, request) {
            (State::Greeting, Request::Hello(directory)) => (State::Ready, Step::Enter(directory)),
            (State::Ready, Request::File(file)) => (State::Looking(file.size), Step::Look(file)),
            (State::Offered { size, offer }, Request::Start(offset)) => {
                let is_offered = matches!(offer, Offer::Partial { length, .. } if length == offset);
                if offset != 0 && !is_offered {
                    return Err(ProtocolError::Start(offset));
                }
                (State::Receiving(size - offset), Step::Start(offset))
            }
            (
                State::Offered {
                    offer: Offer::Complete(_),
                    ..
                },
                Request::Keep,
            ) => (State::Ready, Step::Keep),
            (State::Receiving(missing), Request::Data(data)) => {
                let left = missing.checked_sub(data.len() as u64);
                let left = left.ok_or(ProtocolError::TooMuchData)?;
                (State::Receiving(left), Step::Append(data))
            }
            (State::Receiving(0), Request::End(digest)) => (State::Ready, Step::Finish(digest)),
            (State::Receiving(missing), Request::End(_)) => {
                return Err(ProtocolError::TooLittleData(missing));
            }
            (state, _) => {
                let when = state.describe();
                return Err(ProtocolError::Order { message, when });
            }
        };
        self.state = state;
        Ok(step)
    }

    /// Records the offer that answers [`Step::Look`].
    ///
    /// # Errors
    /// [`ProtocolError::Start`], where it offers more than the file has.
    pub fn offered(&mut self, offer: Offer) -> Result<(), ProtocolError> {
        let State::Looking(size) = self.state else {
            return Err(ProtocolError::Order {
                message: "an offer",
                when: self.state.describe(),
            });
        };
        if let Offer::Partial { length, .. } = offer
            && length > size
        {
            return Err(ProtocolError::Start(length));
        }
        self.state = State::Offered { size, offer };
        Ok(())
    }
}

impl State {
    fn describe(self) -> &'static str {
        match self {
            Self::Greeting => "before the hello",
            Self::Ready => "between two files",
            Self::Looking(_) => "before the offer",
            Self::Offered { .. } => "after the offer",
            Self::Receiving(_) => "within a file",
        }
    }
}
