//! Receive buffers for datagrams.

use std::io::IoSliceMut;
use std::mem;

use quinn_udp::RecvMeta;

/// Receive buffers that one system call fills. Each holds what GRO joined, at most 64 KB.
pub(crate) const BATCH: usize = 8;
pub(crate) const BUFFER: usize = 64 * 1024;

/// The buffers of one receive system call.
pub(crate) trait RecvBuffers {
    /// One or several datagrams that were received together.
    type ReceivedBatch<'b>: Message
    where
        Self: 'b;

    /// Returns space for messages of [`BUFFER`] bytes each, and for the kernel's metadata of each.
    fn parts(&mut self) -> ([IoSliceMut<'_>; BATCH], &mut [RecvMeta; BATCH]);

    /// Sets the first message, as if it had been received; what does not fit is cut off.
    fn set_message(&mut self, mut meta: RecvMeta, contents: &[u8]) {
        let ([mut first, ..], [first_meta, ..]) = self.parts();
        meta.len = contents.len().min(first.len());
        first[..meta.len].copy_from_slice(&contents[..meta.len]);
        *first_meta = meta;
    }

    /// Returns the first `count` messages: each holds datagrams of `stride` bytes, the last may be
    /// shorter.
    fn messages(
        &mut self,
        count: usize,
    ) -> impl Iterator<Item = (RecvMeta, Self::ReceivedBatch<'_>)>;
}

/// Consecutive datagrams.
pub(crate) trait Message: AsRef<[u8]> + AsMut<[u8]> {
    /// Takes up to `length` bytes off the front.
    fn take(&mut self, length: usize) -> Self;
}

impl Message for &mut [u8] {
    fn take(&mut self, length: usize) -> Self {
        let whole = mem::take(self);
        let (first, rest) = whole.split_at_mut(length.min(whole.len()));
        *self = rest;
        first
    }
}

/// Buffers that are reused for every batch: the receiver of a datagram copies what it keeps.
pub(crate) struct ReusedBuffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; BATCH],
}

impl Default for ReusedBuffers {
    fn default() -> Self {
        Self {
            bytes: vec![0; BATCH * BUFFER].into_boxed_slice(),
            metas: [RecvMeta::default(); BATCH],
        }
    }
}

impl RecvBuffers for ReusedBuffers {
    type ReceivedBatch<'b> = &'b mut [u8];

    fn parts(&mut self) -> ([IoSliceMut<'_>; BATCH], &mut [RecvMeta; BATCH]) {
        let mut chunks = self.bytes.chunks_exact_mut(BUFFER);
        let slices = std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        (slices, &mut self.metas)
    }

    fn messages(&mut self, count: usize) -> impl Iterator<Item = (RecvMeta, &mut [u8])> {
        let chunks = self.bytes.chunks_exact_mut(BUFFER);
        let messages = self.metas.iter().zip(chunks).take(count);
        messages.filter_map(|(meta, chunk)| Some((*meta, chunk.get_mut(..meta.len)?)))
    }
}
