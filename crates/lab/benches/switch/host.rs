//! A thread in its own network namespace.

use std::io;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};

use crate::Failure;

/// A network namespace. Sockets and interfaces created by its jobs stay in it, wherever they are
/// used.
pub(crate) struct Namespace {
    jobs: Sender<Box<dyn FnOnce() + Send>>,
}

/// Checks that namespaces and interfaces can be created; returns the reason if not.
pub(crate) fn possible() -> Result<(), String> {
    Namespace::new()
        .and_then(|namespace| namespace.run(|| weir_enforce::port::Tap::create("bench0"))?)
        .map_err(|error| error.to_string())?;
    match Command::new("ip").arg("-V").output() {
        Ok(_) => Ok(()),
        Err(_) => Err("there is no `ip` (apt-get install iproute2)".to_owned()),
    }
}

impl Namespace {
    pub(crate) fn new() -> Result<Self, Failure> {
        let (jobs, orders) = channel::<Box<dyn FnOnce() + Send>>();
        let (answer, made) = channel();
        std::thread::spawn(move || {
            // SAFETY: the call takes a number, and changes only this thread.
            let result = match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            };
            let gone = answer.send(result).is_err();
            while let (false, Ok(job)) = (gone, orders.recv()) {
                job();
            }
        });
        made.recv()?
            .map_err(|error| format!("a network namespace: {error}"))?;
        Ok(Self { jobs })
    }

    /// Runs a job in the namespace.
    pub(crate) fn run<T: Send + 'static, E: Into<Failure> + Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<Result<T, Failure>, Failure> {
        let (answer, result) = channel();
        let job = move || {
            // The caller waits for it.
            let _ = answer.send(job().map_err(Into::into));
        };
        self.jobs
            .send(Box::new(job))
            .map_err(|_| "the namespace is gone")?;
        Ok(result.recv()?)
    }

    /// Runs `ip` with these arguments.
    pub(crate) fn ip(&self, words: &str) -> Result<(), Failure> {
        let words = words.to_owned();
        self.run(move || {
            let output = Command::new("ip").args(words.split(' ')).output()?;
            if output.status.success() {
                Ok(())
            } else {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(io::Error::other(format!("ip {words}: {said}")))
            }
        })?
    }
}
