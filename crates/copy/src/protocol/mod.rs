//! The messages of a copy and their order, without I/O.
//!
//! A frame is a type (8 bits), the length of its contents (32 bits, big-endian) and the contents. The
//! client sends [`Request`]s and the server answers with [`Response`]s:
//!
//! | client | server |
//! |---|---|
//! | hello: version, directory | ready |
//! | file: size, mode, path | offer: what is there already |
//! | start: at which byte | |
//! | data … | |
//! | end: SHA-256 | done |
//!
//! Where the server has the complete file, the client answers the offer with *keep*, and the server
//! with *done*. Instead of any answer, and at any time, the server may send a refusal, which ends the
//! copy.

mod frame;
mod request;
mod response;
mod upload;

pub use frame::{FrameHeader, LARGEST_CONTENTS};
pub use request::{FileHeader, Request};
pub use response::{Offer, Response};
pub use upload::{Step, Upload};

use crate::path::PathError;

/// The version of the protocol.
pub const VERSION: u16 = 1;

/// Why a peer's bytes are not the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A frame exceeds the limit.
    #[error("a frame of {0} bytes exceeds the limit of {LARGEST_CONTENTS}")]
    TooLong(u64),
    /// The type of a frame is unknown.
    #[error("there is no frame of type {0}")]
    UnknownType(u8),
    /// The contents of a frame do not fit its type.
    #[error("the contents of {0} are not valid")]
    Contents(&'static str),
    /// A path is refused.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The peer has another version.
    #[error("the other end has version {0} of the protocol, this one {VERSION}")]
    Version(u16),
    /// A message came at the wrong time.
    #[error("{message} came {when}")]
    Order {
        /// The message.
        message: &'static str,
        /// The state of the exchange.
        when: &'static str,
    },
    /// More data came than the file has.
    #[error("more data came than the file has")]
    TooMuchData,
    /// The end came before the data.
    #[error("the end of a file came {0} bytes early")]
    TooLittleData(u64),
    /// The client starts at a byte that was not offered.
    #[error("the copy starts at byte {0}, which was not offered")]
    Start(u64),
}

/// Takes the first `N` bytes of `rest`.
fn take<const N: usize>(rest: &mut &[u8], message: &'static str) -> Result<[u8; N], ProtocolError> {
    let (first, others) = rest
        .split_first_chunk()
        .ok_or(ProtocolError::Contents(message))?;
    *rest = others;
    Ok(*first)
}

/// Returns an error unless everything was taken.
fn finish(rest: &[u8], message: &'static str) -> Result<(), ProtocolError> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(ProtocolError::Contents(message))
    }
}
