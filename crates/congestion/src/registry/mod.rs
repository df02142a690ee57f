//! The registry of algorithms by name. A new algorithm needs a file that declares an [`Algorithm`]
//! and a line in the list in `lib.rs`.
//!
//! ```
//! use weir_congestion::{AlgorithmSpec, Context};
//! use weir_units::ByteSize;
//!
//! let spec: AlgorithmSpec = "dctcp,g=0.125,min_window=1".parse()?;
//! let context = Context {
//!     packet_size: ByteSize::from_bytes(1452),
//!     seed: 1,
//!     is_paced: false,
//! };
//! let controller = spec.build(&context);
//! assert_eq!(controller.name(), "dctcp");
//! assert_eq!(controller.window(), ByteSize::from_bytes(14_520));
//! # Ok::<(), weir_congestion::SpecError>(())
//! ```

mod serialized;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use crate::algorithm::{Algorithm, AlgorithmSpec, SpecError, Value};
use crate::{ALGORITHMS, cubic};

/// Returns all registered algorithms.
pub fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().copied()
}

impl AlgorithmSpec {
    /// Returns the algorithm `name` with default parameters.
    ///
    /// # Errors
    /// [`SpecError::UnknownAlgorithm`], which lists the algorithms.
    pub fn new(name: &str) -> Result<Self, SpecError> {
        let algorithm = algorithms().find(|algorithm| algorithm.name == name);
        algorithm.map(Self::of).ok_or_else(|| unknown(name))
    }

    /// Returns the specification with one more parameter set.
    ///
    /// # Errors
    /// The parameter does not exist, is set already, or does not accept this value.
    pub fn with(mut self, parameter: &str, value: Value) -> Result<Self, SpecError> {
        let parameter = self.parameter(parameter)?;
        self.set(parameter, value)?;
        Ok(self)
    }
}

impl AlgorithmSpec {
    /// Returns the specification with one more parameter set, from text.
    ///
    /// # Errors
    /// The parameter does not exist, is set already, or does not accept this value.
    pub fn with_text(mut self, parameter: &str, text: &str) -> Result<Self, SpecError> {
        let parameter = self.parameter(parameter)?;
        self.set_text(parameter, text)?;
        Ok(self)
    }
}

fn unknown(name: &str) -> SpecError {
    let known: Vec<_> = algorithms().map(|algorithm| algorithm.name).collect();
    SpecError::UnknownAlgorithm {
        name: name.to_owned(),
        known: known.join(", "),
    }
}

impl Default for AlgorithmSpec {
    fn default() -> Self {
        Self::of(&cubic::ALGORITHM)
    }
}

impl FromStr for AlgorithmSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split(',').map(str::trim);
        let mut spec = Self::new(parts.next().unwrap_or_default())?;
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| SpecError::Syntax {
                part: part.to_owned(),
            })?;
            let parameter = spec.parameter(name.trim())?;
            spec.set_text(parameter, value.trim())?;
        }
        Ok(spec)
    }
}
