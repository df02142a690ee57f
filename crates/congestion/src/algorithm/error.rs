//! What can be wrong with an algorithm that somebody asked for.

use weir_units::ParseError;

use super::{Algorithm, Parameter, Value};

/// Why a text or a table names no algorithm that can be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// No algorithm of that name.
    #[error("no congestion control is called `{name}`; there are {known}")]
    UnknownAlgorithm {
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The algorithm has no such parameter.
    #[error("`{algorithm}` has no parameter `{parameter}`; it has {known}")]
    UnknownParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter that was given.
        parameter: String,
        /// The parameters that exist.
        known: String,
    },
    /// A parameter was given twice.
    #[error("`{algorithm}`: `{parameter}` is given twice")]
    Duplicate {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// The value is of the wrong kind.
    #[error("`{algorithm}`: `{parameter}` must be {expected}, not `{found}`")]
    WrongKind {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The kind that the parameter has.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// The value is outside the parameter's range.
    #[error("`{algorithm}`: `{parameter}` must lie between {min} and {max}, not at {found}")]
    OutOfRange {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The smallest value accepted.
        min: Value,
        /// The largest value accepted.
        max: Value,
        /// What was given.
        found: Value,
    },
    /// A duration, size or rate does not read as one.
    #[error("`{algorithm}`: `{parameter}`: {source}")]
    Quantity {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What is wrong with it.
        source: ParseError,
    },
    /// A part of the text is no `parameter=value`.
    #[error("`{part}` is no parameter=value; write for example `dctcp,g=0.0625,min_window=1`")]
    Syntax {
        /// The part.
        part: String,
    },
    /// A table without a name.
    #[error("`name` is missing; write for example {{ name = \"dctcp\", g = 0.0625 }}")]
    MissingName,
}

impl SpecError {
    pub(crate) fn unknown_parameter(algorithm: &Algorithm, parameter: &str) -> Self {
        let known = algorithm
            .parameters()
            .map(|known| known.name)
            .collect::<Vec<_>>()
            .join(", ");
        Self::UnknownParameter {
            algorithm: algorithm.name,
            parameter: parameter.to_owned(),
            known,
        }
    }

    pub(crate) fn wrong_kind(
        algorithm: &Algorithm,
        parameter: &Parameter,
        found: impl ToString,
    ) -> Self {
        Self::WrongKind {
            algorithm: algorithm.name,
            parameter: parameter.name,
            expected: parameter.default.kind(),
            found: found.to_string(),
        }
    }
}
