//! The failures of a command, with their exit codes.

use std::io;
use std::process::ExitCode;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The command failed.
    #[error("{0}")]
    Failed(String),
    /// The user interrupted the command; partial results have been handled.
    #[error("{message}")]
    Interrupted {
        /// The message about partial results.
        message: String,
        /// The exit code that shells use for the signal.
        code: u8,
    },
    /// A long-running command failed, and its log tells why.
    #[error("{0}")]
    Logged(String),
    /// The reader of the output is gone: exit without a message.
    #[error("the reader of the output is gone")]
    OutputClosed,
}

impl Failure {
    /// Reports an invalid value of an option: the option, the problem, and what would be valid.
    pub(crate) fn option(name: &str, problem: impl std::fmt::Display) -> Self {
        Self::Usage(format!("--{name}: {problem}"))
    }

    /// For `map_err` on errors with complete messages.
    pub(crate) fn of(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// For `map_err` on errors of a long-running command that has begun its work: they are logged.
    pub(crate) fn logged(error: impl std::fmt::Display) -> Self {
        let message = error.to_string();
        tracing::error!("{message}");
        Self::Logged(message)
    }

    /// For `map_err` on writing results.
    pub(crate) fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }

    /// Prints the message and returns the exit code.
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
            Self::Logged(_) => ExitCode::FAILURE,
            Self::Interrupted { message, code } => {
                eprintln!("{message}");
                ExitCode::from(*code)
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}
