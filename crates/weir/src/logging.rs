//! Logging to standard error.

use std::io::stderr;

use tracing_subscriber::EnvFilter;

/// Logs warnings, and more if the user requests it.
pub(crate) fn start(verbose: u8) {
    let filter = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(stderr)
        .with_target(verbose > 0)
        .init();
}
