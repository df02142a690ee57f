//! Certificates, keys and lists that are read from their files again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Instant;

use weir_units::Duration;

use super::TlsError;
use crate::RepeatedWarning;

/// What reading the files again has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Their contents are those in use.
    Unchanged,
    /// Handshakes from now on use the new contents.
    Changed,
}

/// How often credentials were read from their files again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadCounters {
    /// With new contents, which are in use since.
    pub changes: u64,
    /// Without success: what was in use before still is.
    pub failures: u64,
}

impl std::ops::Add for ReloadCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            changes: self.changes + other.changes,
            failures: self.failures + other.failures,
        }
    }
}

/// Counts reloads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    changes: AtomicU64,
    failures: AtomicU64,
    /// Of the failures since the files could last be read.
    warning: Mutex<Option<RepeatedWarning>>,
}

impl Counters {
    pub(super) fn get(&self) -> ReloadCounters {
        ReloadCounters {
            changes: self.changes.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }

    /// Counts and logs a result.
    pub(super) fn note(&self, result: &Result<Reload, TlsError>) {
        let mut warning = self.warning.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(reload) => {
                *warning = None;
                if *reload == Reload::Changed {
                    self.changes.fetch_add(1, Ordering::Relaxed);
                    tracing::info!("TLS credentials were read again, with new contents");
                }
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                let now = Instant::now();
                let warning = warning.get_or_insert_with(|| RepeatedWarning::new(now));
                if let Some(left_out) = warning.take(now, &error.to_string()) {
                    tracing::warn!(%error, left_out, "TLS credentials cannot be read again: the old ones stay");
                }
            }
        }
    }
}

/// Credentials that can be read again.
pub(super) trait Reloadable: Send + Sync + 'static {
    /// Reads the files again; counts and logs the result.
    fn reload(&self) -> Result<Reload, TlsError>;
}

/// Reloads credentials at this interval in a thread of their own, for as long as they exist.
pub(super) fn reload_every<T: Reloadable>(
    credentials: &Arc<T>,
    interval: Duration,
) -> Result<(), TlsError> {
    let credentials: Weak<T> = Arc::downgrade(credentials);
    let reloading = move || {
        loop {
            thread::sleep(interval.into());
            let Some(credentials) = credentials.upgrade() else {
                return;
            };
            // Counted and logged: the next round may succeed.
            let _ = credentials.reload();
        }
    };
    let thread = thread::Builder::new().name("weir-tls-reload".to_owned());
    thread.spawn(reloading).map_err(TlsError::Thread)?;
    Ok(())
}
