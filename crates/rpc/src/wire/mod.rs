//! The wire format (`docs/rpc.md`): frames, request headers and statuses, as values without I/O.

mod fields;
mod frame;
mod request_header;
mod response_status;

use weir_units::ByteSize;

pub(crate) use frame::put_head;
pub use frame::{Frame, FrameReader, FrameType, put_frame};
pub use request_header::RequestHeader;
pub(crate) use request_header::is_method;
pub use response_status::ResponseStatus;

/// The application protocol (ALPN) of servers and channels.
pub const APPLICATION_PROTOCOL: &[u8] = b"weir-rpc/1";

/// Code with which either side abandons a stream whose bytes are no call.
pub const CALL_MALFORMED: u64 = 0x5745_0006;

/// The longest method name in bytes.
pub const LONGEST_METHOD: usize = 255;

/// How much a receiver takes from its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest header, status or unknown frame; 16 KiB by default.
    pub header: ByteSize,
    /// The largest number of metadata pairs; 64 by default.
    pub metadata_pairs: usize,
    /// The largest message; 4 MiB by default.
    pub message: ByteSize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: ByteSize::from_kib(16),
            metadata_pairs: 64,
            message: ByteSize::from_mib(4),
        }
    }
}

/// What is wrong with received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A frame is larger than the receiver takes.
    #[error("a {frame} frame of {length} is larger than {limit}")]
    TooLarge {
        /// The frame's type.
        frame: FrameType,
        /// Its declared length.
        length: ByteSize,
        /// The receiver's limit.
        limit: ByteSize,
    },
    /// There are more metadata pairs than the receiver takes.
    #[error("{count} metadata pairs are more than {limit}")]
    TooManyPairs {
        /// Their declared number.
        count: u64,
        /// The receiver's limit.
        limit: usize,
    },
    /// A frame, or a field in it, ends early.
    #[error("the data end within a frame or field")]
    Truncated,
    /// A frame is not one that may come here.
    #[error("a {0} frame at the wrong place")]
    Misplaced(FrameType),
    /// The method's name is empty, too long, or has other characters than printable ASCII.
    #[error("the method's name is not 1 to 255 printable ASCII characters")]
    Method,
    /// A name or number in the metadata is none.
    #[error("invalid metadata: {0}")]
    Metadata(#[from] crate::metadata::MetadataError),
    /// A text is not UTF-8.
    #[error("the status text is not UTF-8")]
    Text,
    /// An integer has no meaning in its field.
    #[error("{0} is no value of this field")]
    Value(u64),
}

impl From<weir_quic::codec::Truncated> for WireError {
    fn from(_: weir_quic::codec::Truncated) -> Self {
        Self::Truncated
    }
}
