//! A module: read from a file, compiled, and tried.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use wasmi::{Config, Engine, Module};
use weir_congestion::{Context, Controller, FirstFailure, Plugin, PluginFailure, PluginReference};
use weir_units::ByteSize;

use crate::controller::WasmController;
use crate::error::PluginError;

/// The largest file.
const LARGEST_FILE: u64 = 16 << 20;

/// A module as a congestion control, with values of its parameters.
#[derive(Debug)]
pub struct WasmPlugin {
    path: String,
    sha256: String,
    shared: Arc<Shared>,
}

/// What the controllers of a plug-in share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) module: Compiled,
    pub(crate) parameters: Vec<(String, f64)>,
    pub(crate) failure: FirstFailure,
}

/// A compiled module.
pub(crate) struct Compiled {
    pub(crate) engine: Engine,
    pub(crate) module: Module,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

impl WasmPlugin {
    /// Reads a file: a module in WebAssembly's binary or text format. `name` is what scenarios call the file; `expected`
    /// is the SHA-256 digest that it must have, if it is known, in hexadecimal.
    ///
    /// # Errors
    /// The file cannot be read or has another digest; it is no congestion control, or lacks a parameter; a controller
    /// cannot be built.
    pub fn load(
        path: &Path,
        name: &str,
        parameters: Vec<(String, f64)>,
        expected: Option<&str>,
    ) -> Result<Self, PluginError> {
        let contents = read(path)?;
        let digest = Sha256::digest(&contents);
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        match expected {
            Some(expected) if expected != sha256 => Err(PluginError::Changed {
                expected: expected.to_owned(),
                found: sha256,
            }),
            _ => Self::new(&contents, name, sha256, parameters),
        }
    }

    fn new(
        contents: &[u8],
        name: &str,
        sha256: String,
        parameters: Vec<(String, f64)>,
    ) -> Result<Self, PluginError> {
        let mut config = Config::default();
        config.consume_fuel(true);
        let engine = Engine::new(&config);
        let module = Module::new(&engine, contents);
        let module = module.map_err(|error| PluginError::Invalid(error.to_string()))?;
        if let Some(import) = module.imports().next() {
            return Err(PluginError::Import {
                module: import.module().to_owned(),
                name: import.name().to_owned(),
            });
        }
        let shared = Arc::new(Shared {
            module: Compiled { engine, module },
            parameters,
            failure: FirstFailure::default(),
        });
        // Mistakes show when the scenario is read.
        let context = Context {
            packet_size: ByteSize::from_bytes(1460),
            seed: 0,
            is_paced: false,
        };
        WasmController::try_new(&shared, &context)?;
        Ok(Self {
            path: name.to_owned(),
            sha256,
            shared,
        })
    }
}

/// Reads a file up to the largest size.
fn read(path: &Path) -> Result<Vec<u8>, PluginError> {
    let unreadable = |source| PluginError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut contents = Vec::new();
    let mut limited = file.take(LARGEST_FILE + 1);
    limited.read_to_end(&mut contents).map_err(unreadable)?;
    if contents.len() as u64 > LARGEST_FILE {
        return Err(PluginError::TooLarge {
            path: path.to_owned(),
            most: LARGEST_FILE,
        });
    }
    Ok(contents)
}

impl Plugin for WasmPlugin {
    fn reference(&self) -> PluginReference {
        PluginReference::File {
            path: self.path.clone(),
            sha256: self.sha256.clone(),
            parameters: self.shared.parameters.clone(),
        }
    }

    fn build(&self, context: &Context) -> Box<dyn Controller> {
        Box::new(WasmController::new(&self.shared, context))
    }

    fn failure(&self) -> Option<&PluginFailure> {
        self.shared.failure.get()
    }
}
