//! Binding of the Python package `weir`: the module `weir._weir`.
//!
//! It passes data on and converts types, and contains no logic. The user API is in
//! `python/python/weir`:
//!
//! | file | contents |
//! |---|---|
//! | `run` | simulation of a scenario and its variants |
//! | `congestion` | congestion controls as Python classes |
//! | `scenario` | scenarios as files and as texts |
//! | `sweep` | sweeps: plan, local runs, or tasks for other machines |
//! | `table` | tables as Arrow data, for data frames without a copy |
//! | `watch` | work without the GIL, interruptible by Ctrl-C |
//! | `errors` | the libraries' errors, as Python exceptions |

mod congestion;
mod errors;
mod run;
mod scenario;
mod sweep;
mod table;
mod watch;

use pyo3::prelude::*;

/// The native part of the package `weir`.
#[pymodule]
fn _weir(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    congestion::register(module)?;
    module.add("CODE_VERSION", weir_sweep::Code::own().to_string())?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::OpenSweep>()?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::parameters, module)?)?;
    module.add_function(wrap_pyfunction!(run::scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(run::mean_interval, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::base_units, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::differing_code, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::carry_out_task, module)?)
}
