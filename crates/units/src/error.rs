//! Errors in the text of a quantity.

/// Why a text is no duration, rate or size. The message names the invalid part and the accepted
/// forms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is empty.
    #[error("empty text where {expected} belongs: write a number and a unit ({accepted})")]
    Empty {
        /// The quantity, with its article.
        expected: &'static str,
        /// The accepted units.
        accepted: &'static str,
    },
    /// The number is invalid: no digits, a sign, an exponent, two points …
    #[error(
        "`{number}` is not a number for {expected}: write digits, if needed with a decimal point, \
         and a unit ({accepted})"
    )]
    Number {
        /// The text in place of the number.
        number: String,
        /// The quantity, with its article.
        expected: &'static str,
        /// The accepted units.
        accepted: &'static str,
    },
    /// A number without a unit.
    #[error("`{text}` has no unit: {expected} takes one of {accepted}")]
    MissingUnit {
        /// The whole text.
        text: String,
        /// The quantity, with its article.
        expected: &'static str,
        /// The accepted units.
        accepted: &'static str,
    },
    /// A unit that the quantity does not have.
    #[error("`{unit}` is not a unit of {expected}: it takes one of {accepted}")]
    UnknownUnit {
        /// The text in place of the unit.
        unit: String,
        /// The quantity, with its article.
        expected: &'static str,
        /// The accepted units.
        accepted: &'static str,
    },
    /// Not a whole number of base units.
    #[error("`{text}` is finer than {expected} can be: it must be a whole number of {base}")]
    TooFine {
        /// The whole text.
        text: String,
        /// The quantity, with its article.
        expected: &'static str,
        /// The base unit.
        base: &'static str,
    },
    /// More than 2⁶⁴ − 1 base units.
    #[error("`{text}` is larger than {expected} can be")]
    TooLarge {
        /// The whole text.
        text: String,
        /// The quantity, with its article.
        expected: &'static str,
    },
}
