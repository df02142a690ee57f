//! Ctrl-C.
//!
//! Most commands end at once, and what they started ends with them: worker processes die with their
//! parent, sockets close with theirs, nothing has to be saved ([`end_on_signals`]). A simulation stops and
//! writes what there is ([`Stop`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// What a shell reports for a program that a signal ended: 128 and the signal's number.
const INTERRUPTED: u8 = 128 + 2;
const TERMINATED: u8 = 128 + 15;

/// From now on SIGINT and SIGTERM end the program with the exit codes that shells know.
///
/// # Errors
/// Where the system gives no thread or no signals.
pub(crate) fn end_on_signals() -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    watch(move || {
        let code = signals.next();
        eprintln!("interrupted");
        std::process::exit(code.into());
    })
}

/// Whether those who work are to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Work goes on.
    const NO: u8 = 0;
    /// Some of the work has failed: the rest is in vain.
    const FAILED: u8 = 1;

    /// From now on the first SIGINT or SIGTERM says stop, and the second ends the program.
    ///
    /// # Errors
    /// As [`end_on_signals`].
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let mut signals = Signals::new()?;
        let stop = Self::default();
        let told = stop.clone();
        watch(move || {
            told.say(signals.next());
            std::process::exit(signals.next().into());
        })?;
        Ok(stop)
    }

    /// Whether to go on no longer.
    pub(crate) fn is_said(&self) -> bool {
        self.0.load(Ordering::Relaxed) != Self::NO
    }

    /// The exit code if a signal said so.
    pub(crate) fn by_signal(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            Self::NO | Self::FAILED => None,
            code => Some(code),
        }
    }

    /// Some of the work has failed.
    pub(crate) fn fail(&self) {
        self.say(Self::FAILED);
    }

    /// The first reason holds.
    fn say(&self, reason: u8) {
        let _ = (self.0).compare_exchange(Self::NO, reason, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Whether somebody has sent SIGHUP since the last time one asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangup(Arc<AtomicU8>);

impl Hangup {
    /// From now on SIGHUP does not end the program.
    ///
    /// # Errors
    /// As [`end_on_signals`].
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(Failure::of)?;
        let entered = runtime.enter();
        let mut signals = signal(SignalKind::hangup()).map_err(Failure::of)?;
        drop(entered);
        let hangup = Self::default();
        let told = hangup.clone();
        watch(move || {
            while runtime.block_on(signals.recv()).is_some() {
                told.0.store(1, Ordering::Relaxed);
            }
        })?;
        Ok(hangup)
    }

    /// Whether there was one.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) != 0
    }
}

/// The signals that end programs.
struct Signals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(Failure::of)?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt()).map_err(Failure::of)?;
        let terminate = signal(SignalKind::terminate()).map_err(Failure::of)?;
        drop(entered);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
        })
    }

    /// Waits for one, and gives its exit code.
    fn next(&mut self) -> u8 {
        let Self {
            runtime,
            interrupt,
            terminate,
        } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => INTERRUPTED,
                _ = terminate.recv() => TERMINATED,
            }
        })
    }
}

fn watch(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(work).map_err(Failure::of)?;
    Ok(())
}
