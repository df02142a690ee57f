//! Congestion controls as WebAssembly modules.
//!
//! A [`WasmPlugin`] is a [`Plugin`](weir_congestion::Plugin): a module whose exported functions are the events of the
//! trait [`Controller`](weir_congestion::Controller). `docs/plugins.md` describes them. Each connection has an instance
//! of its own. A module imports nothing, so that it reads no clock and no file; a call that takes too many instructions
//! ends with an error, and memory is limited.
//!
//! | file | content |
//! |---|---|
//! | `exports` | the functions of a module, found and checked |
//! | `instance` | an instance with its limits |
//! | `module` | a module, read from a file and tried |
//! | `controller` | the controller of one connection |
//! | `error` | errors of modules |

mod controller;
mod error;
mod exports;
mod instance;
mod module;

pub use error::PluginError;
pub use instance::{MOST_INSTRUCTIONS, MOST_MEMORY};
pub use module::WasmPlugin;
