//! What the server sends.

use super::{FrameHeader, ProtocolError, finish, take};
use crate::Sha256Digest;

/// What the server has of a file already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Nothing.
    Nothing,
    /// The first `length` bytes of an interrupted copy, with this SHA-256.
    Partial {
        /// At most the file's size.
        length: u64,
        /// Their digest.
        digest: Sha256Digest,
    },
    /// A file of this name and size, with this SHA-256.
    Complete(Sha256Digest),
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// 1: the directory is accepted.
    Ready,
    /// 2: what is there of the file.
    Offer(Offer),
    /// 3: the file is complete, verified and under its name.
    Done,
    /// 4: the copy ends, for this reason.
    Refused(String),
}

/// The most bytes of a reason.
const LONGEST_REASON: usize = 1000;

impl Response {
    /// Decodes the contents of a frame of type `kind`.
    ///
    /// # Errors
    /// [`ProtocolError`].
    pub fn decode(kind: u8, contents: &[u8]) -> Result<Self, ProtocolError> {
        let mut rest = contents;
        match kind {
            1 => finish(rest, "a ready").map(|()| Self::Ready),
            2 => {
                let [kind] = take(&mut rest, "an offer")?;
                let length = u64::from_be_bytes(take(&mut rest, "an offer")?);
                let digest = Sha256Digest(take(&mut rest, "an offer")?);
                finish(rest, "an offer")?;
                let is_zero = length == 0 && digest.0 == [0; 32];
                Ok(Self::Offer(match kind {
                    0 if is_zero => Offer::Nothing,
                    1 if length > 0 => Offer::Partial { length, digest },
                    2 if length == 0 => Offer::Complete(digest),
                    _ => return Err(ProtocolError::Contents("an offer")),
                }))
            }
            3 => finish(rest, "a done").map(|()| Self::Done),
            4 => {
                let reason = std::str::from_utf8(rest);
                let reason = reason.map_err(|_| ProtocolError::Contents("a refusal"))?;
                let is_text = reason.len() <= LONGEST_REASON && !reason.contains(char::is_control);
                let reason = is_text.then(|| reason.to_owned());
                reason
                    .map(Self::Refused)
                    .ok_or(ProtocolError::Contents("a refusal"))
            }
            other => Err(ProtocolError::UnknownType(other)),
        }
    }

    /// Appends the frame to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Ready => FrameHeader::frame(1, buffer, |_| {}),
            Self::Offer(offer) => FrameHeader::frame(2, buffer, |buffer| {
                let (kind, length, digest) = match offer {
                    Offer::Nothing => (0, 0, Sha256Digest([0; 32])),
                    Offer::Partial { length, digest } => (1, *length, *digest),
                    Offer::Complete(digest) => (2, 0, *digest),
                };
                buffer.push(kind);
                buffer.extend_from_slice(&length.to_be_bytes());
                buffer.extend_from_slice(&digest.0);
            }),
            Self::Done => FrameHeader::frame(3, buffer, |_| {}),
            Self::Refused(reason) => FrameHeader::frame(4, buffer, |buffer| {
                buffer.extend_from_slice(reason.as_bytes());
            }),
        }
    }

    /// Returns a refusal for a reason of any kind: control characters are left out, and a long text is
    /// cut.
    pub(crate) fn refused(reason: impl std::fmt::Display) -> Self {
        let text = reason.to_string();
        let mut kept = String::new();
        for letter in text.chars().filter(|letter| !letter.is_control()) {
            if kept.len() + letter.len_utf8() > LONGEST_REASON {
                break;
            }
            kept.push(letter);
        }
        Self::Refused(kept)
    }
}
