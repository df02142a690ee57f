//! The runtimes of an endpoint's engines: the caller's, or a thread of its own for each engine.

use std::future::Future;
use std::io;
use std::num::NonZeroU8;
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

use crate::error::EndpointError;

/// Where an engine's driver runs.
pub(crate) enum EngineRuntime {
    /// On the caller's runtime, with its other tasks.
    Caller(Handle),
    /// On a thread of its own, started by [`Self::run`].
    Thread(OwnedRuntime),
}

/// A runtime for one thread. Dropped where tasks of another runtime run, it must not wait.
pub(crate) struct OwnedRuntime {
    runtime: Option<Runtime>,
    handle: Handle,
    name: String,
}

impl EngineRuntime {
    /// Returns the runtimes of `count` engines: the current one where there is one engine.
    pub(crate) fn of_engines(count: NonZeroU8) -> Result<Vec<Self>, EndpointError> {
        let current = Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
        if count == NonZeroU8::MIN {
            return Ok(vec![Self::Caller(current)]);
        }
        let threads = (0..count.get()).map(|index| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            Ok(Self::Thread(OwnedRuntime {
                handle: runtime.handle().clone(),
                runtime: Some(runtime),
                name: format!("weir-engine-{index}"),
            }))
        });
        threads
            .collect::<io::Result<_>>()
            .map_err(EndpointError::Thread)
    }

    pub(crate) fn handle(&self) -> &Handle {
        match self {
            Self::Caller(handle) => handle,
            Self::Thread(OwnedRuntime { handle, .. }) => handle,
        }
    }

    /// Makes this the current runtime: sockets and timers register with it.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.handle().enter()
    }

    /// Runs the driver until it ends; a thread of its own ends with it.
    pub(crate) fn run(
        self,
        driver: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), EndpointError> {
        match self {
            Self::Caller(handle) => {
                handle.spawn(driver);
                Ok(())
            }
            Self::Thread(owned) => {
                let thread = thread::Builder::new().name(owned.name.clone());
                let started = thread.spawn(move || {
                    if let Some(runtime) = &owned.runtime {
                        runtime.block_on(driver);
                    }
                });
                started.map(drop).map_err(EndpointError::Thread)
            }
        }
    }
}

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
