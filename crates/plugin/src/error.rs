//! Errors of modules.

use std::io;
use std::path::PathBuf;

use crate::instance::MOST_INSTRUCTIONS;

/// A module that is no congestion control.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is too large.
    #[error("{} has more than {most} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size in bytes.
        most: u64,
    },
    /// The file has other contents than its digest says.
    #[error("the file has the SHA-256 digest {found}, not {expected}: it has changed")]
    Changed {
        /// The digest in the scenario.
        expected: String,
        /// The file's.
        found: String,
    },
    /// It is no valid module, or needs too much memory.
    #[error("this is no module that can be used: {0}")]
    Invalid(String),
    /// It imports something.
    #[error("the module imports `{module}.{name}`: a congestion control imports nothing")]
    Import {
        /// The name of the imported module.
        module: String,
        /// The name in it.
        name: String,
    },
    /// A function is missing, or has other parameters or results.
    #[error("the module must export a function `{name}{signature}`")]
    Function {
        /// Its name.
        name: &'static str,
        /// Its parameters and results.
        signature: &'static str,
    },
    /// It has no such parameter.
    #[error(
        "the module has no parameter `{name}`, which would be an exported function `set_{name}(f64)`; it has {known}"
    )]
    UnknownParameter {
        /// The parameter.
        name: String,
        /// The module's parameters.
        known: String,
    },
    /// A call failed.
    #[error("`{function}`: {failure}")]
    Call {
        /// The function.
        function: String,
        /// What happened.
        failure: CallFailure,
    },
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// It took too long.
    #[error("it has not returned after {MOST_INSTRUCTIONS} instructions")]
    TooLong,
    /// It trapped.
    #[error("{0}")]
    Trap(String),
    /// The window is none.
    #[error("a window of {0} bytes: it must be at least 1")]
    Window(i64),
    /// The rate is none.
    #[error(
        "a rate of {0} bits per second: it must be at least 1, or 0 to leave pacing to the transport"
    )]
    Rate(i64),
}

impl From<wasmi::Error> for CallFailure {
    fn from(error: wasmi::Error) -> Self {
        match error.as_trap_code() {
            Some(wasmi::TrapCode::OutOfFuel) => Self::TooLong,
            _ => Self::Trap(error.to_string()),
        }
    }
}
