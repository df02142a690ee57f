//! What a peer did wrong, and the error that this is.

use h3::error::Code;

/// A rule that the peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("a header of {length} bytes, where {limit} are allowed")]
    LongHeader { length: u64, limit: u64 },
    #[error("a frame of type {frame_type:#x} with {length} bytes, where {limit} are allowed")]
    LongFrame {
        frame_type: u64,
        length: u64,
        limit: u64,
    },
    #[error("the stream ended within a frame")]
    Truncated,
    #[error("a frame of type {0:#x}, which must not be there")]
    Unexpected(u64),
    #[error("the payload of a frame of type {0:#x} is longer or shorter than its fields")]
    Payload(u64),
    #[error("a control stream that does not begin with settings")]
    MissingSettings,
    #[error("a push that was not allowed")]
    Push,
    #[error("a GOAWAY that names more than the last one")]
    GoAway,
    #[error("a wrong field section: {0}")]
    FieldSection(&'static str),
    #[error("a malformed message: {0}")]
    Malformed(&'static str),
    #[error("a second stream of type {0:#x}, or one that must not be there")]
    StreamType(u64),
    #[error("a stream that lasts as long as the connection ended")]
    CriticalStream,
    #[error("an instruction on the QPACK encoder's stream, where no table is allowed")]
    EncoderStream,
    #[error("an instruction on the QPACK decoder's stream, where no table is used")]
    DecoderStream,
}

/// What ends with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Stream,
    Connection,
}

impl Violation {
    /// The error code (RFC 9114, section 8.1; RFC 9204, section 8.3).
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::LongHeader { .. } | Self::LongFrame { .. } => Code::H3_EXCESSIVE_LOAD,
            Self::Truncated | Self::Payload(_) => Code::H3_FRAME_ERROR,
            Self::Unexpected(_) => Code::H3_FRAME_UNEXPECTED,
            Self::MissingSettings => Code::H3_MISSING_SETTINGS,
            Self::Push | Self::GoAway => Code::H3_ID_ERROR,
            Self::FieldSection(_) => Code::QPACK_DECOMPRESSION_FAILED,
            Self::Malformed(_) => Code::H3_MESSAGE_ERROR,
            Self::StreamType(_) => Code::H3_STREAM_CREATION_ERROR,
            Self::CriticalStream => Code::H3_CLOSED_CRITICAL_STREAM,
            Self::EncoderStream => Code::QPACK_ENCODER_STREAM_ERROR,
            Self::DecoderStream => Code::QPACK_DECODER_STREAM_ERROR,
        }
    }

    /// A message that is malformed or too large concerns nothing else.
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::LongHeader { .. } | Self::Malformed(_) => Scope::Stream,
            _ => Scope::Connection,
        }
    }
}
