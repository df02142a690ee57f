//! Who looks at the page. A run goes on for whoever looks; when everybody has left, it ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Studio;

/// How long a run goes on without a viewer: a reload of the page takes less.
const UNWATCHED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);

/// The open pages.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    count: AtomicUsize,
    /// When the last one left; none before there was one, and after its runs were ended.
    left: Mutex<Option<Instant>>,
}

/// An open page.
#[derive(Debug)]
pub(super) struct Viewer(Arc<Studio>);

impl Viewer {
    pub(super) fn new(studio: Arc<Studio>) -> Self {
        studio.viewers.count.fetch_add(1, Ordering::SeqCst);
        Self(studio)
    }

    pub(super) fn studio(&self) -> &Arc<Studio> {
        &self.0
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let viewers = &self.0.viewers;
        if viewers.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            viewers.set_left(Some(Instant::now()));
        }
    }
}

impl Viewers {
    fn set_left(&self, at: Option<Instant>) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Whether nobody has looked for so long, after somebody did.
    fn have_left(&self, now: Instant) -> bool {
        let left = *self.left.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.load(Ordering::SeqCst) == 0
            && left.is_some_and(|left| now.duration_since(left) >= UNWATCHED)
    }
}

/// Ends the runs that nobody looks at; the next viewer finds a new one.
pub(super) async fn end_unwatched(studio: &Studio) {
    loop {
        tokio::time::sleep(LOOK).await;
        if studio.viewers.have_left(Instant::now()) {
            studio.viewers.set_left(None);
            match studio.session.begin() {
                Ok(()) => tracing::info!("nobody looks any more: the runs have ended"),
                Err(error) => tracing::error!("cannot begin a new run: {error}"),
            }
        }
    }
}
