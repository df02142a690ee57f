//! Work on another thread without the GIL, while this thread checks for Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often Python's signal handlers run.
const LOOK: Duration = Duration::from_millis(50);

/// Whether work is to end early.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// Returns whether to go on.
    pub(crate) fn goes_on(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the work while other Python threads go on. `look` is called periodically with the GIL; when
/// it or a signal handler raises, `stop` is set, and the exception is returned when the work has
/// ended.
pub(crate) fn run_interruptible<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> T + Send,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = thread::current();
        let worker = scope.spawn(|| {
            // The waiting thread is notified of a panic too.
            let told = NotifyOnDrop(&over, waiting);
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

/// Notifies the waiting thread on drop that the work is over.
struct NotifyOnDrop<'o>(&'o AtomicBool, thread::Thread);

impl Drop for NotifyOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}
