//! Work without Python's lock, on another thread, while this one listens for Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often Python's signal handlers have their turn.
const LOOK: Duration = Duration::from_millis(50);

/// Whether work is to end before its time.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// Whether to go on.
    pub(crate) fn goes_on(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does the work while other Python threads go on. `look` is called now and then with Python's lock; when
/// it or a signal handler raises, `stop` is said, and the exception comes out when the work has ended.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> T + Send,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = thread::current();
        let worker = scope.spawn(|| {
            // Whoever waits is told of a panic too.
            let told = Told(&over, waiting);
            let done = work();
            drop(told);
            done
        });
        let mut raised = None;
        while !over.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(LOOK));
            if raised.is_none()
                && let Err(error) = py.check_signals().and_then(|()| look(py))
            {
                stop.say();
                raised = Some(error);
            }
        }
        let done = py.detach(|| worker.join());
        match (raised, done) {
            (Some(error), _) => Err(error),
            (None, Ok(done)) => Ok(done),
            (None, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}

/// Tells that work is over when it is dropped.
struct Told<'o>(&'o AtomicBool, thread::Thread);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}
