//! An instance of a module, with its limits.

use wasmi::{Linker, Store, StoreLimits, StoreLimitsBuilder, TypedFunc, WasmParams, WasmResults};

use crate::error::{CallFailure, PluginError};
use crate::exports::Exports;
use crate::module::Compiled;

/// The largest number of instructions of a call, about a hundredth of a second.
pub const MOST_INSTRUCTIONS: u64 = 1_000_000;
/// The largest memory of an instance in bytes. Each connection has an instance.
pub const MOST_MEMORY: usize = 4 << 20;
/// The largest table of an instance. Compilers make one for indirect calls.
const MOST_TABLE_ELEMENTS: usize = 10_000;

/// An instance: the state of one connection's controller.
pub(crate) struct Instance {
    pub(crate) exports: Exports,
    handle: wasmi::Instance,
    store: Store<StoreLimits>,
}

impl Instance {
    /// Creates an instance, and executes the module's start function, if it has one.
    pub(crate) fn new(module: &Compiled) -> Result<Self, PluginError> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MOST_MEMORY)
            .table_elements(MOST_TABLE_ELEMENTS)
            .memories(1)
            .tables(1)
            .instances(1)
            .build();
        let mut store = Store::new(&module.engine, limits);
        store.limiter(|limits| limits);
        let started = |error: wasmi::Error| match error.as_trap_code() {
            None => PluginError::Invalid(error.to_string()),
            Some(_) => PluginError::Call {
                function: "start".to_owned(),
                failure: error.into(),
            },
        };
        store.set_fuel(MOST_INSTRUCTIONS).map_err(started)?;
        let linker = Linker::new(&module.engine);
        let instance = linker.instantiate_and_start(&mut store, &module.module);
        let instance = instance.map_err(started)?;
        let exports = Exports::find(&instance, &store)?;
        Ok(Self {
            exports,
            handle: instance,
            store,
        })
    }

    /// Calls a function, with the instructions that each call has.
    pub(crate) fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        function: TypedFunc<P, R>,
        parameters: P,
    ) -> Result<R, CallFailure> {
        self.store.set_fuel(MOST_INSTRUCTIONS)?;
        Ok(function.call(&mut self.store, parameters)?)
    }

    /// Sets a parameter of the module: calls `set_NAME`.
    pub(crate) fn set(&mut self, name: &str, value: f64) -> Result<(), PluginError> {
        let function = format!("set_{name}");
        let found = self
            .handle
            .get_typed_func::<f64, ()>(&self.store, &function);
        let Ok(found) = found else {
            return Err(PluginError::UnknownParameter {
                name: name.to_owned(),
                known: self.parameters(),
            });
        };
        let called = self.call(found, value);
        called.map_err(|failure| PluginError::Call { function, failure })
    }

    /// Returns the names of the module's parameters, for messages.
    fn parameters(&self) -> String {
        let exports = self.handle.exports(&self.store);
        let names = exports.filter_map(|export| {
            let name = export.name().strip_prefix("set_")?;
            Some(format!("`{name}`"))
        });
        let names: Vec<_> = names.collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }
}
