//! Whether a failed call is made again.

use weir_channel::Retry;

use super::error::CallError;
use crate::executed::Executed;
use crate::status::Code;

/// Returns what a failure says about making the call again.
pub(super) fn retry(error: &CallError, is_idempotent: bool) -> Retry {
    match error {
        CallError::NotBegun(_) => Retry::NotSent,
        CallError::Status { status, executed } => match (executed, status.code) {
            (Executed::No, Code::Unavailable) => Retry::Moved,
            (Executed::No, Code::ResourceExhausted) => Retry::Costs,
            (_, Code::Unavailable) if is_idempotent => Retry::Costs,
            _ => Retry::Never,
        },
        CallError::Connection { .. } | CallError::Reset(_) if error.executed() == Executed::No => {
            Retry::Moved
        }
        CallError::Connection { .. } | CallError::Reset(_) if is_idempotent => Retry::Costs,
        _ => Retry::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    fn refused(code: Code, executed: Executed) -> CallError {
        CallError::Status {
            status: Status::new(code, ""),
            executed,
        }
    }

    fn lost(executed: Executed) -> CallError {
        CallError::Connection {
            error: weir_net::ConnectionError::EndpointGone,
            executed,
        }
    }

    #[test]
    fn only_safe_calls_are_made_again() {
        let not_sent = CallError::NotBegun(weir_net::ConnectionError::EndpointGone);
        assert_eq!(retry(&not_sent, false), Retry::NotSent);
        let draining = refused(Code::Unavailable, Executed::No);
        assert_eq!(retry(&draining, false), Retry::Moved);
        let overload = refused(Code::ResourceExhausted, Executed::No);
        assert_eq!(retry(&overload, false), Retry::Costs);
        assert_eq!(retry(&lost(Executed::No), false), Retry::Moved);
        let late = CallError::Reset(weir_net::SHUT_DOWN);
        assert_eq!(retry(&late, false), Retry::Moved);
        for unsafe_error in [
            refused(Code::Unavailable, Executed::Yes),
            lost(Executed::Maybe),
            CallError::Reset(1),
        ] {
            assert_eq!(retry(&unsafe_error, false), Retry::Never, "{unsafe_error}");
            assert_eq!(retry(&unsafe_error, true), Retry::Costs, "{unsafe_error}");
        }
        for useless in [
            refused(Code::NotFound, Executed::Yes),
            refused(Code::Unimplemented, Executed::No),
            refused(Code::ResourceExhausted, Executed::Yes),
            CallError::DeadlinePassed {
                after: weir_units::Duration::ZERO,
                executed: Executed::No,
            },
        ] {
            assert_eq!(retry(&useless, true), Retry::Never, "{useless}");
        }
    }
}
