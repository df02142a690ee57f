//! The application's reference to a connection.

use std::sync::Arc;

use crate::dcquic::SharedDcquicConnection;

/// Shared by a connection's handles, streams and calls; dropping the last one closes the
/// connection.
pub(crate) struct Handle {
    pub(crate) connection: Arc<SharedDcquicConnection>,
}

impl Handle {
    pub(crate) fn new(connection: Arc<SharedDcquicConnection>) -> Arc<Self> {
        Arc::new(Self { connection })
    }

    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        self.connection.lock().close(code, reason);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close(0, b"");
    }
}
