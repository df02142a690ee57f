//! Plug-ins: algorithms from outside of the registry, such as a WebAssembly module or a Python class.

use std::fmt;
use std::sync::OnceLock;

use weir_units::Time;

use crate::algorithm::{Algorithm, AlgorithmSpec, Context};
use crate::controller::Controller;

/// What stands for every plug-in where a registered algorithm would stand. It is not in the registry.
static PLUGIN: Algorithm = Algorithm {
    name: "plugin",
    summary: "an algorithm from outside of the registry",
    own_parameters: &[],
    build: |spec, context| match spec.plugin() {
        Some(plugin) => plugin.build(context),
        // Only a plug-in's specification names it.
        None => AlgorithmSpec::default().build(context),
    },
};

/// An algorithm from outside of the registry.
pub trait Plugin: fmt::Debug + Send + Sync {
    /// Returns what a scenario calls it.
    fn reference(&self) -> PluginReference;

    /// Builds a controller in its initial state. One that cannot be built sets [`Self::failure`].
    fn build(&self, context: &Context) -> Box<dyn Controller>;

    /// Returns the first failure of its controllers, if one has failed. A controller that has failed keeps its last
    /// window and rate.
    fn failure(&self) -> Option<&PluginFailure>;
}

/// What a scenario calls a plug-in.
#[derive(Clone, Debug, PartialEq)]
pub enum PluginReference {
    /// A name that is given together with the plug-in.
    Name(String),
    /// A file.
    File {
        /// Its path, as the scenario has it.
        path: String,
        /// The SHA-256 digest of its contents, in hexadecimal.
        sha256: String,
        /// The values of its parameters.
        parameters: Vec<(String, f64)>,
    },
}

impl fmt::Display for PluginReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::File {
                path, parameters, ..
            } => {
                f.write_str(path)?;
                parameters
                    .iter()
                    .try_for_each(|(name, value)| write!(f, ",{name}={value}"))
            }
        }
    }
}

/// A failure of a plug-in's controller: an exception, a trap, or a window that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFailure {
    /// The seed of its [`Context`], which tells controllers apart.
    pub seed: u64,
    /// When it failed; `None` if it could not be built, or at an event without a time.
    pub at: Option<Time>,
    /// What happened.
    pub message: String,
}

/// The place of a plug-in's first failure.
#[derive(Debug, Default)]
pub struct FirstFailure(OnceLock<PluginFailure>);

impl FirstFailure {
    /// Records a failure, unless there is an earlier one.
    pub fn record(&self, failure: PluginFailure) {
        self.0.get_or_init(|| failure);
    }

    /// Returns the first failure, if there is one.
    pub fn get(&self) -> Option<&PluginFailure> {
        self.0.get()
    }
}

impl AlgorithmSpec {
    /// Returns a plug-in as an algorithm. It has the parameters of every algorithm, `max_window` and `max_rate`; its own
    /// belong to the plug-in.
    pub fn of_plugin(plugin: std::sync::Arc<dyn Plugin>) -> Self {
        Self::of(&PLUGIN).with_plugin(plugin)
    }
}
