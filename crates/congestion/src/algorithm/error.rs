//! Errors in the specification of an algorithm.

use weir_units::ParseError;

use super::{Algorithm, Parameter, Value};

/// An error in a text or table that specifies an algorithm.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// No algorithm of that name.
    #[error("no congestion control is called `{name}`; there are {known}")]
    UnknownAlgorithm {
        /// The given name.
        name: String,
        /// The available names.
        known: String,
    },
    /// The algorithm has no such parameter.
    #[error("`{algorithm}` has no parameter `{parameter}`; it has {known}")]
    UnknownParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The given parameter.
        parameter: String,
        /// The available parameters.
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
        /// The parameter's kind.
        expected: &'static str,
        /// The given value.
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
        /// The given value.
        found: Value,
    },
    /// The value is not a valid duration, size or rate.
    #[error("`{algorithm}`: `{parameter}`: {source}")]
    Quantity {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The parse error.
        source: ParseError,
    },
    /// A part of the text is not of the form `parameter=value`.
    #[error("`{part}` is no parameter=value; write for example `dctcp,g=0.0625,min_window=1`")]
    Syntax {
        /// The part.
        part: String,
    },
    /// The table has no name.
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
