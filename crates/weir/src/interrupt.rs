//! Handlers of SIGINT, SIGTERM and SIGHUP.
//!
//! Most commands end at once, and so do their child processes and sockets: worker processes die
//! with their parent, and there is nothing to save ([`end_on_signals`]). A simulation stops and
//! writes its partial results ([`Stop`]). A server ends what has begun ([`terminated`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The exit code that a shell reports for SIGINT: 128 and the signal's number.
const INTERRUPTED: u8 = 128 + 2;
const TERMINATED: u8 = 128 + 15;

/// From now on SIGINT and SIGTERM end the program with the exit codes that shells use.
///
/// # Errors
/// The system cannot start a thread or register signals.
pub(crate) fn end_on_signals() -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    watch(move || {
        let code = signals.next();
        eprintln!("interrupted");
        std::process::exit(code.into());
    })
}

/// From now on SIGINT ends the program, and so does SIGTERM when it comes a second time. Returns what
/// waits for the first SIGTERM; it is called within a tokio runtime.
///
/// # Errors
/// See [`end_on_signals`].
pub(crate) fn terminated() -> Result<impl Future<Output = ()> + Send, Failure> {
    let mut told = signal(SignalKind::terminate()).map_err(Failure::of)?;
    let mut signals = Signals::new()?;
    watch(move || {
        let code = match signals.next() {
            TERMINATED => signals.next(),
            code => code,
        };
        eprintln!("interrupted");
        std::process::exit(code.into());
    })?;
    Ok(async move {
        told.recv().await;
    })
}

/// A flag that asks the workers to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Continue.
    const NO: u8 = 0;
    /// Some of the work has failed, so the rest is useless.
    const FAILED: u8 = 1;
    /// The work that could be stopped is done: the next signal ends the program.
    const DONE: u8 = 2;

    /// From now on the first SIGINT or SIGTERM sets the flag, and the second ends the program.
    ///
    /// # Errors
    /// See [`end_on_signals`].
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let mut signals = Signals::new()?;
        let stop = Self::default();
        let told = stop.clone();
        watch(move || {
            let first = signals.next();
            let code = match told.set_reason(first) {
                Self::DONE => first,
                _ => signals.next(),
            };
            std::process::exit(code.into());
        })?;
        Ok(stop)
    }

    /// Returns whether to stop.
    pub(crate) fn should_stop(&self) -> bool {
        !matches!(self.0.load(Ordering::Relaxed), Self::NO | Self::DONE)
    }

    /// Notes that the work that could be stopped is done: from now on each signal ends the program.
    ///
    /// # Errors
    /// The exit code of a signal that has come before.
    pub(crate) fn done(&self) -> Result<(), u8> {
        match self.set_reason(Self::DONE) {
            Self::NO | Self::FAILED | Self::DONE => Ok(()),
            code => Err(code),
        }
    }

    /// Returns the exit code if a signal set the flag.
    pub(crate) fn signal_exit_code(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            Self::NO | Self::FAILED | Self::DONE => None,
            code => Some(code),
        }
    }

    /// Sets the flag because some of the work has failed.
    pub(crate) fn fail(&self) {
        self.set_reason(Self::FAILED);
    }

    /// Sets the reason, and returns the one before; the first one wins.
    fn set_reason(&self, reason: u8) -> u8 {
        let set = (self.0).compare_exchange(Self::NO, reason, Ordering::Relaxed, Ordering::Relaxed);
        set.unwrap_or_else(|first| first)
    }
}

/// A flag that SIGHUP sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangup(Arc<AtomicU8>);

impl Hangup {
    /// From now on SIGHUP sets the flag and does not end the program.
    ///
    /// # Errors
    /// See [`end_on_signals`].
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

    /// Returns whether SIGHUP arrived since the last call, and clears the flag.
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

    /// Waits for a signal and returns its exit code.
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
