//! What a transport has to offer to carry a test.

use std::future::Future;
use std::io;

use bytes::Bytes;

/// The sending end of a stream.
pub(crate) trait Sink: Send + 'static {
    /// Hands data to the transport, waiting until it takes some; how many bytes it took.
    fn send(&mut self, data: Bytes) -> impl Future<Output = io::Result<usize>> + Send;

    /// Tells the other side that this was all.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// The receiving end of a stream.
pub(crate) trait Source: Send + 'static {
    /// Waits for data and drops them; how many bytes they were, or 0 at the end of the stream.
    fn receive(&mut self) -> impl Future<Output = io::Result<usize>> + Send;
}
