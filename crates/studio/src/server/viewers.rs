//! Who looks at the page. A run goes on for whoever looks; when everybody has left, it ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;
    use crate::server::access::Access;
    use crate::session::Session;

    const TEXT: &str = include_str!("../../tests/two-flows.toml");

    fn studio() -> Arc<Studio> {
        Arc::new(Studio {
            session: Session::new(Script::of_file("test.toml", TEXT)).unwrap(),
            access: Arc::new(Access::new(([127, 0, 0, 1], 1).into()).unwrap()),
            viewers: Viewers::default(),
            simulations: tokio::sync::Semaphore::new(1),
        })
    }

    /// Whether the first run is replaced within this many seconds.
    async fn is_replaced(studio: &Studio, seconds: u64) -> bool {
        let before = studio.session.run("a").unwrap();
        tokio::select! {
            () = end_unwatched(studio) => {}
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
        }
        !studio.session.run("a").unwrap().is(&before)
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_ends_ten_seconds_after_its_last_viewer_has_left() {
        let studio = studio();
        assert!(!is_replaced(&studio, 100).await, "nobody has looked yet");
        let (first, second) = (
            Viewer::new(Arc::clone(&studio)),
            Viewer::new(Arc::clone(&studio)),
        );
        drop(first);
        assert!(!is_replaced(&studio, 100).await, "one still looks");
        drop(second);
        assert!(!is_replaced(&studio, 9).await);
        // A reload: another viewer comes in time.
        let third = Viewer::new(Arc::clone(&studio));
        assert!(!is_replaced(&studio, 100).await);
        drop(third);
        assert!(is_replaced(&studio, 12).await);
        assert!(!is_replaced(&studio, 100).await, "it is new already");
    }
}
