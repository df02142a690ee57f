//! Congestion controls as Python classes.
//!
//! A class is a plug-in: it is called with a [`Context`](events::Context) for each connection, and the object that it
//! returns gets the events of the trait [`weir_congestion::Controller`]. `docs/python.md` has the reference.

mod controller;
mod events;

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use weir_congestion::{Context, Controller, FirstFailure, Plugin, PluginFailure, PluginReference};
use weir_units::Time;

use controller::PythonController;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<events::Context>()?;
    module.add_class::<events::Ack>()?;
    module.add_class::<events::Loss>()?;
    module.add_class::<events::Sent>()?;
    module.add_class::<events::Deadline>()
}

/// A congestion control that a Python class implements.
#[derive(Debug)]
pub(crate) struct PythonAlgorithm {
    name: String,
    class: Py<PyAny>,
    failure: FirstFailure,
    /// The exception of the first failure, if it is one.
    raised: Mutex<Option<PyErr>>,
}

impl PythonAlgorithm {
    pub(crate) fn new(name: String, class: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self {
            name,
            class,
            failure: FirstFailure::default(),
            raised: Mutex::new(None),
        })
    }

    /// Returns the exception of the first failure, which is raised no more.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.take()
    }

    /// Records an exception.
    fn fail(&self, py: Python<'_>, seed: u64, at: Option<Time>, error: PyErr) {
        if self.failure.get().is_some() {
            return;
        }
        self.failure.record(PluginFailure {
            seed,
            at,
            message: error.to_string(),
        });
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        *raised = Some(error.clone_ref(py));
    }
}

/// A class with the reference to itself that its controllers need.
#[derive(Clone, Debug)]
pub(crate) struct PythonPlugin(pub(crate) Arc<PythonAlgorithm>);

impl Plugin for PythonPlugin {
    fn reference(&self) -> PluginReference {
        PluginReference::Name(self.0.name.clone())
    }

    fn build(&self, context: &Context) -> Box<dyn Controller> {
        Python::attach(|py| Box::new(PythonController::new(py, &self.0, context)))
    }

    fn failure(&self) -> Option<&PluginFailure> {
        self.0.failure.get()
    }
}

/// Returns the exception that ends a run: what a class raised, as the cause of `told`. What is no `Exception`, such as
/// Ctrl-C, is raised as it is.
pub(crate) fn exception(py: Python<'_>, told: PyErr, classes: &[Arc<PythonAlgorithm>]) -> PyErr {
    let raised = classes.iter().find_map(|class| class.take_raised());
    match raised {
        Some(raised) if !raised.is_instance_of::<PyException>(py) => raised,
        raised => {
            told.set_cause(py, raised);
            told
        }
    }
}
