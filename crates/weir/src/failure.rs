//! How a command can end other than well.

use std::io;
use std::process::ExitCode;

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// It was tried and did not work.
    #[error("{0}")]
    Failed(String),
    /// The user ended it before its end; what there was has been dealt with.
    #[error("{message}")]
    Interrupted {
        /// What became of what there was.
        message: String,
        /// The exit code that shells know for the signal.
        code: u8,
    },
    /// Nobody reads the output any more: nothing to complain about.
    #[error("the reader of the output is gone")]
    OutputClosed,
}

impl Failure {
    /// A value that an option does not take: which option, what is wrong, what would be right.
    pub(crate) fn option(name: &str, problem: impl std::fmt::Display) -> Self {
        Self::Usage(format!("--{name}: {problem}"))
    }

    /// For `map_err` on errors that say all there is to say.
    pub(crate) fn of(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// For `map_err` on writing results.
    pub(crate) fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }

    /// Tells the user, and the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                eprintln!("error: {message}\n\nFor more information, try '--help'.");
                ExitCode::from(2)
            }
            Self::Failed(message) => {
                eprintln!("error: {message}");
                ExitCode::FAILURE
            }
            Self::Interrupted { message, code } => {
                eprintln!("{message}");
                ExitCode::from(*code)
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}
