//! The binding of the Python package `weir`: the module `weir._weir`.
//!
//! It hands over and converts, and decides nothing. What users see is in `python/python/weir`:
//!
//! | file | what it does |
//! |---|---|
//! | `run` | a scenario and its variants, simulated |
//! | `sweep` | sweeps: planned, carried out on this machine, or handed out as tasks |
//! | `table` | tables as Arrow data, which data frames take without copying |
//! | `watch` | work without Python's lock, which Ctrl-C ends |
//! | `errors` | what the libraries say, as Python exceptions |

mod errors;
mod run;
mod sweep;
mod table;
mod watch;

use pyo3::prelude::*;

/// The native part of the package `weir`.
#[pymodule]
fn _weir(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    module.add("CODE_VERSION", weir_sweep::CODE_VERSION)?;
    module.add_class::<table::Table>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::OpenSweep>()?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::parameters, module)?)?;
    module.add_function(wrap_pyfunction!(run::scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::base_units, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::carry_out_task, module)?)
}
