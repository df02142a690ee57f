//! HTTP/3's errors as statuses of gRPC, as in gRPC's proposal G2 (gRPC over HTTP/3).

use std::sync::Arc;

use tonic::{Code, Status};
use weir_h3::{Error, ErrorCode};

/// Returns the status of a call that failed with this error; it is the status's source, so that
/// [`Error::executed`] can be asked. A body that fails with a status, such as a message above a limit,
/// ends its call with that.
pub fn to_status(error: Error) -> Status {
    let mut status = match &error {
        Error::Body(failure) => failure.downcast_ref::<Status>().cloned(),
        _ => None,
    }
    .unwrap_or_else(|| Status::new(code(&error), error.to_string()));
    status.set_source(Arc::new(error));
    status
}

/// The status with which the body of a request fails. A stream of requests that the client gives up is
/// ABORTED for its handler: tonic takes CANCELLED for the end of the stream, as if all had arrived.
pub(crate) fn of_request(error: Error) -> Status {
    match code(&error) {
        Code::Cancelled => {
            let mut status = Status::aborted(error.to_string());
            status.set_source(Arc::new(error));
            status
        }
        _ => to_status(error),
    }
}

fn code(error: &Error) -> Code {
    match error {
        Error::Stream(ErrorCode::REQUEST_CANCELLED) => Code::Cancelled,
        Error::Stream(ErrorCode::REQUEST_REJECTED) => Code::Unavailable,
        Error::Stream(ErrorCode::EXCESSIVE_LOAD)
        | Error::RequestHeader { .. }
        | Error::HeaderTooLarge { .. } => Code::ResourceExhausted,
        Error::Connection(_) | Error::NoServer(_) | Error::Tcp(_) => Code::Unavailable,
        Error::Body(_) => Code::Cancelled,
        Error::Stream(_) | Error::Protocol(_) | Error::ContentLength { .. } => Code::Internal,
    }
}

/// The status of a call whose deadline has passed.
pub(crate) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline passed")
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use weir_net::Executed;

    use super::*;

    #[test]
    fn codes_are_those_of_the_proposal() {
        for (code, expected) in [
            (0x100, Code::Internal),
            (0x101, Code::Internal),
            (0x102, Code::Internal),
            (0x107, Code::ResourceExhausted),
            (0x10b, Code::Unavailable),
            (0x10c, Code::Cancelled),
            (0x10d, Code::Internal),
            (0x10e, Code::Internal),
        ] {
            let status = to_status(Error::Stream(ErrorCode(code)));
            assert_eq!(status.code(), expected, "{code:#x}");
        }
    }

    #[test]
    fn a_body_that_fails_with_a_status_keeps_it() {
        let failure = Arc::new(Status::out_of_range("too long"));
        let status = to_status(Error::Body(failure));
        assert_eq!(status.code(), Code::OutOfRange);
        assert_eq!(status.message(), "too long");
        let failure = Arc::new(std::io::Error::other("no disk"));
        assert_eq!(to_status(Error::Body(failure)).code(), Code::Cancelled);
    }

    #[test]
    fn a_status_tells_whether_the_call_was_executed() {
        let status = to_status(Error::Stream(ErrorCode::REQUEST_REJECTED));
        let source = status.source().unwrap().downcast_ref::<Error>().unwrap();
        assert_eq!(source.executed(), Executed::No);
    }
}
