//! The application's hold on a connection.

use std::sync::Arc;

use crate::dcquic::Link;

/// Shared by a connection's handles, streams and calls; the last one to go closes the connection.
pub(crate) struct Handle {
    pub(crate) link: Arc<Link>,
}

impl Handle {
    pub(crate) fn new(link: Arc<Link>) -> Arc<Self> {
        Arc::new(Self { link })
    }

    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        self.link.lock().close(code, reason);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close(0, b"");
    }
}
