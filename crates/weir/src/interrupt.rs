//! Ctrl-C: the program ends at once, and what it started ends with it.
//!
//! Worker processes die with their parent, sockets close with theirs; nothing has to be saved.

use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// What a shell reports for a program that a signal ended: 128 and the signal's number.
const INTERRUPTED: i32 = 128 + 2;
const TERMINATED: i32 = 128 + 15;

/// From now on SIGINT and SIGTERM end the program with the exit codes that shells know.
///
/// # Errors
/// Where the system gives no thread or no signals.
pub(crate) fn end_on_signals() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(Failure::of)?;
    let entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::of)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::of)?;
    drop(entered);
    let wait = move || {
        let code = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => INTERRUPTED,
                _ = terminate.recv() => TERMINATED,
            }
        });
        eprintln!("interrupted");
        std::process::exit(code);
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .map_err(Failure::of)?;
    Ok(())
}
