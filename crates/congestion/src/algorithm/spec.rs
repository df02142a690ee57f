//! A validated algorithm specification with its parameters.

use std::fmt;
use std::sync::Arc;

use weir_units::Rate;

use super::parameter::ParameterType;
use super::{Algorithm, Context, MAX_RATE, MAX_WINDOW, Parameter, SpecError, Typed, Value};
use crate::capped::CappedController;
use crate::controller::Controller;
use crate::plugin::Plugin;

/// An algorithm and its parameters. Only existing algorithms and valid values can be expressed.
///
/// As text: `cubic`, `dctcp,g=0.0625,min_window=1`. In serde: `"cubic"` or `{ name = "dctcp", g =
/// 0.0625 }`. The default is CUBIC, as in Linux.
#[derive(Clone, Debug)]
pub struct AlgorithmSpec {
    algorithm: &'static Algorithm,
    /// The values that were set, in that order.
    values: Vec<(&'static Parameter, Value)>,
    /// The plug-in that it is, instead of a registered algorithm.
    plugin: Option<Arc<dyn Plugin>>,
}

impl AlgorithmSpec {
    /// Returns an algorithm with default parameters.
    pub(crate) fn of(algorithm: &'static Algorithm) -> Self {
        Self {
            algorithm,
            values: Vec::new(),
            plugin: None,
        }
    }

    /// Makes it that of a plug-in.
    pub(crate) fn with_plugin(self, plugin: Arc<dyn Plugin>) -> Self {
        Self {
            plugin: Some(plugin),
            ..self
        }
    }

    /// Returns the plug-in, if it is one.
    pub fn plugin(&self) -> Option<&dyn Plugin> {
        self.plugin.as_deref()
    }

    /// Returns the name of the algorithm; `plugin` for all plug-ins.
    pub fn name(&self) -> &'static str {
        self.algorithm.name
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Returns the parameters that were set, by name.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.values
            .iter()
            .map(|(parameter, value)| (parameter.name, *value))
    }

    /// Returns the highest rate (`max_rate`), if one is set.
    pub fn max_rate(&self) -> Option<Rate> {
        let rate = self.get(&MAX_RATE);
        (rate != MAX_RATE.default).then_some(rate)
    }

    /// Builds a controller in its initial state.
    pub fn build(&self, context: &Context) -> Box<dyn Controller> {
        let controller = (self.algorithm.build)(self, context);
        let (window, rate) = (self.get(&MAX_WINDOW), self.max_rate());
        if window == MAX_WINDOW.default && rate.is_none() {
            return controller;
        }
        let mut capped = CappedController::new(controller);
        capped.set_window_cap(Some(window));
        capped.set_rate_cap(rate);
        Box::new(capped)
    }

    /// Returns the value of a parameter.
    pub(crate) fn get<T: ParameterType>(&self, parameter: &Typed<T>) -> T {
        let set = self
            .values
            .iter()
            .find(|(set, _)| set.name == parameter.name);
        set.and_then(|(_, value)| T::from_value(value))
            .unwrap_or(parameter.default)
    }

    /// Returns the description of the parameter `name`.
    pub(crate) fn parameter(&self, name: &str) -> Result<&'static Parameter, SpecError> {
        self.algorithm
            .parameters()
            .find(|parameter| parameter.name == name)
            .ok_or_else(|| SpecError::unknown_parameter(self.algorithm, name))
    }

    /// Sets a parameter from text.
    pub(crate) fn set_text(
        &mut self,
        parameter: &'static Parameter,
        text: &str,
    ) -> Result<(), SpecError> {
        match parameter.default.parse_alike(text) {
            Ok(Some(value)) => self.set(parameter, value),
            Ok(None) => Err(SpecError::wrong_kind(self.algorithm, parameter, text)),
            Err(source) => Err(SpecError::Quantity {
                algorithm: self.algorithm.name,
                parameter: parameter.name,
                source,
            }),
        }
    }

    /// Sets a parameter.
    pub(crate) fn set(
        &mut self,
        parameter: &'static Parameter,
        value: Value,
    ) -> Result<(), SpecError> {
        let algorithm = self.algorithm.name;
        if std::mem::discriminant(&value) != std::mem::discriminant(&parameter.default) {
            return Err(SpecError::wrong_kind(self.algorithm, parameter, value));
        }
        if self
            .values
            .iter()
            .any(|(set, _)| set.name == parameter.name)
        {
            return Err(SpecError::Duplicate {
                algorithm,
                parameter: parameter.name,
            });
        }
        if !parameter.accepts(&value) {
            return Err(SpecError::OutOfRange {
                algorithm,
                parameter: parameter.name,
                min: parameter.min,
                max: parameter.max,
                found: value,
            });
        }
        self.values.push((parameter, value));
        Ok(())
    }
}

impl PartialEq for AlgorithmSpec {
    /// Compares names and set values, in any order.
    fn eq(&self, other: &Self) -> bool {
        let reference = |spec: &Self| spec.plugin().map(Plugin::reference);
        self.name() == other.name()
            && reference(self) == reference(other)
            && self.values.len() == other.values.len()
            && self
                .values()
                .all(|set| other.values().any(|theirs| theirs == set))
    }
}

impl fmt::Display for AlgorithmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.plugin() {
            Some(plugin) => plugin.reference().fmt(f)?,
            None => f.write_str(self.name())?,
        }
        self.values()
            .try_for_each(|(name, value)| write!(f, ",{name}={value}"))
    }
}
