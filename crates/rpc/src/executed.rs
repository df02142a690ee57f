//! Whether a failed call was executed.

use std::fmt;

/// Whether the server has executed a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Executed {
    /// Certainly not: it may be made again.
    No,
    /// Perhaps: make it again only if it may safely happen twice.
    Maybe,
    /// The server says so: its handler began.
    Yes,
}

impl From<weir_net::Executed> for Executed {
    fn from(executed: weir_net::Executed) -> Self {
        match executed {
            weir_net::Executed::No => Self::No,
            weir_net::Executed::Maybe => Self::Maybe,
        }
    }
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "was not executed",
            Self::Maybe => "may have been executed",
            Self::Yes => "was executed",
        })
    }
}
