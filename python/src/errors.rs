//! The libraries' errors, as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(weir, WeirError, PyException, "Anything that Weir reports.");
create_exception!(
    weir,
    ScenarioError,
    WeirError,
    "A scenario that cannot be read or has mistakes: file, line, key, and what would be right."
);
create_exception!(
    weir,
    SweepError,
    WeirError,
    "A sweep that cannot be read, begun or gone on with."
);
create_exception!(
    weir,
    SimulationError,
    WeirError,
    "A scenario that cannot be simulated."
);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("WeirError", py.get_type::<WeirError>())?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("SweepError", py.get_type::<SweepError>())?;
    module.add("SimulationError", py.get_type::<SimulationError>())
}

/// For `map_err`.
pub(crate) fn sweep(error: impl std::fmt::Display) -> PyErr {
    SweepError::new_err(error.to_string())
}

/// For `map_err`.
pub(crate) fn scenario(error: impl std::fmt::Display) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// For `map_err`.
pub(crate) fn simulation(error: impl std::fmt::Display) -> PyErr {
    SimulationError::new_err(error.to_string())
}
