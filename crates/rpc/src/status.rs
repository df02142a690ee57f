//! How a call ended, in the words of its handler.

use std::fmt;

use bytes::Bytes;

use crate::metadata::{Metadata, MetadataError};

/// A status code. Numbers and meanings are gRPC's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// The client gave the call up.
    Cancelled = 1,
    /// An error without a better code.
    Unknown = 2,
    /// The request makes no sense, whatever the state of the server.
    InvalidArgument = 3,
    /// The deadline passed.
    DeadlineExceeded = 4,
    /// What the request names does not exist.
    NotFound = 5,
    /// What the request would create exists.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A limit is reached.
    ResourceExhausted = 8,
    /// The server is not in the state that the request needs.
    FailedPrecondition = 9,
    /// The call lost against a concurrent one.
    Aborted = 10,
    /// The request goes beyond the end of something.
    OutOfRange = 11,
    /// The server does not have this method.
    Unimplemented = 12,
    /// The server broke.
    Internal = 13,
    /// The server cannot answer now.
    Unavailable = 14,
    /// Data are lost.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

impl Code {
    const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Returns the code with a number; [`Code::Unknown`] where there is none.
    pub fn from_number(number: u64) -> Self {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        Self::ALL.get(index).copied().unwrap_or(Self::Unknown)
    }

    /// Returns its number.
    pub const fn number(self) -> u64 {
        self as u64
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        };
        f.write_str(name)
    }
}

/// How a call ended. A handler returns it as its error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}{}{text}", if text.is_empty() { "" } else { ": " })]
pub struct Status {
    /// The code.
    pub code: Code,
    /// A text for people.
    pub text: String,
    /// Details for programs, in a format of theirs.
    pub details: Bytes,
    /// Metadata.
    pub metadata: Metadata,
}

impl Status {
    /// Creates a status without details and metadata.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            details: Bytes::new(),
            metadata: Metadata::new(),
        }
    }

    /// Sets the details.
    pub fn with_details(mut self, details: impl Into<Bytes>) -> Self {
        self.details = details.into();
        self
    }

    /// Adds metadata.
    ///
    /// # Errors
    /// [`MetadataError`] where the name is none.
    pub fn with_metadata(
        mut self,
        name: &str,
        value: impl Into<Bytes>,
    ) -> Result<Self, MetadataError> {
        self.metadata.add(name, value)?;
        Ok(self)
    }
}
