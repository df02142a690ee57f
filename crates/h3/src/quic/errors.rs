//! `weir-net`'s errors as those of the `h3` crate.

use std::sync::Arc;

use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use weir_net::{ConnectionError, ReadError, WriteError};

pub(super) fn connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match (error.peer_code(), &error) {
        (Some(error_code), _) => ConnectionErrorIncoming::ApplicationClose { error_code },
        (None, ConnectionError::HandshakeTimeout { .. }) => ConnectionErrorIncoming::Timeout,
        (None, _) => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

/// A draining connection refuses a stream, and goes on.
pub(super) fn stream(error: ConnectionError) -> StreamErrorIncoming {
    match error {
        ConnectionError::Draining { .. } => StreamErrorIncoming::StreamTerminated {
            error_code: Code::H3_REQUEST_REJECTED.value(),
        },
        error => StreamErrorIncoming::ConnectionErrorIncoming {
            connection_error: connection(error),
        },
    }
}

pub(super) fn write(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        WriteError::Connection(error) => stream(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

pub(super) fn read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        ReadError::Connection(error) => stream(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
