//! A validated algorithm specification with its parameters.

use std::fmt;
use std::sync::Arc;

use weir_units::{ByteSize, Rate};

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
        if !self.has_caps() {
            return controller;
        }
        let (window, rate) = self.caps();
        let mut capped = CappedController::new(controller);
        capped.set_window_cap(window);
        capped.set_rate_cap(rate);
        Box::new(capped)
    }

    /// Whether a cap is set, be it `unbounded`: then it can change while a flow runs.
    fn has_caps(&self) -> bool {
        let mut names = self.values.iter().map(|(parameter, _)| parameter.name);
        names.any(|name| name == MAX_WINDOW.name || name == MAX_RATE.name)
    }

    /// Returns the largest window and the highest rate, if they are bounded.
    pub(crate) fn caps(&self) -> (Option<ByteSize>, Option<Rate>) {
        let window = self.get(&MAX_WINDOW);
        let window = (window != MAX_WINDOW.default).then_some(window);
        (window, self.max_rate())
    }

    /// Returns the names of the parameters that can change while a flow runs: see
    /// [`Controller::set_parameters`].
    pub fn adjustable(&self) -> Vec<&'static str> {
        let controller = (self.algorithm.build)(
            self,
            &Context {
                packet_size: ByteSize::from_bytes(1),
                seed: 0,
                is_paced: false,
            },
        );
        let names = controller.adjustable().iter().copied();
        names.chain([MAX_WINDOW.name, MAX_RATE.name]).collect()
    }

    /// Returns the specification for flows whose parameters change while they run to these values, before the
    /// first change. It behaves as this one.
    #[must_use]
    pub fn prepared_for(&self, changes: &[(&'static str, Value)]) -> Self {
        let mut prepared = self.clone();
        let caps = [MAX_WINDOW.parameter(), MAX_RATE.parameter()];
        for (name, _) in changes {
            let cap = caps.iter().find(|cap| cap.name == *name);
            if let (Some(cap), Ok(parameter)) = (cap, self.parameter(name))
                && !self.values.iter().any(|(set, _)| set.name == *name)
            {
                prepared.values.push((parameter, cap.default));
            }
        }
        prepared
    }

    /// Returns the specification with these values in place of its own.
    ///
    /// # Errors
    /// A parameter does not exist, or does not accept its value.
    pub fn with_changed(&self, changes: &[(&'static str, Value)]) -> Result<Self, SpecError> {
        let mut changed = self.clone();
        for (name, value) in changes {
            let parameter = changed.parameter(name)?;
            changed.values.retain(|(set, _)| set.name != *name);
            changed.set(parameter, *value)?;
        }
        Ok(changed)
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
