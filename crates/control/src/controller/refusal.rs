//! Reasons for refusing a request.

use tonic::{Code, Status};
use weir_sed::DemandError;

use crate::leader_epoch::LeaderEpoch;
use crate::translate::DecodeError;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Demand(#[from] DemandError),
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    #[error("the switch obeys another controller ({} with term {}), whose orders have not expired", .0.name, .0.term)]
    Governed(LeaderEpoch),
    #[error("the switch has obeyed a later controller of this one's name, with term {0}")]
    Superseded(u64),
    #[error("a switch has {most} ports at most, not {count}")]
    Ports { count: usize, most: usize },
    #[error("there are {0} switches, which is the limit")]
    Switches(usize),
    #[error("the certificate is not one for {0}")]
    Role(String),
    #[error("the first message is a hello, and there is one only")]
    Hello,
    #[error("nothing was heard for too long")]
    Silent,
    #[error("a sender has {0} flows at most")]
    Flows(usize),
    #[error("the controller is ending")]
    Ending,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::Demand(DemandError::NotOwner { .. }) | Refusal::Role(_) => {
                Code::PermissionDenied
            }
            Refusal::Demand(DemandError::TooMany { .. } | DemandError::Full(_))
            | Refusal::Ports { .. }
            | Refusal::Flows(_)
            | Refusal::Switches(_) => Code::ResourceExhausted,
            Refusal::Demand(_) | Refusal::Malformed(_) | Refusal::Hello => Code::InvalidArgument,
            Refusal::Governed(_) | Refusal::Superseded(_) => Code::FailedPrecondition,
            Refusal::Silent => Code::DeadlineExceeded,
            Refusal::Ending => Code::Unavailable,
        };
        Self::new(code, refusal.to_string())
    }
}
