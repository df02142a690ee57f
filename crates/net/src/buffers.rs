//! Where received datagrams are put.

use std::io::IoSliceMut;
use std::mem;

use quinn_udp::RecvMeta;

/// How many receive buffers one system call fills. Each holds what GRO joined, at most 64 KB.
pub(crate) const BATCH: usize = 8;
pub(crate) const BUFFER: usize = 64 * 1024;

/// Where one system call puts what it receives.
pub(crate) trait RecvBuffers {
    /// One or several datagrams that came together.
    type ReceivedBatch<'b>: Message
    where
        Self: 'b;

    /// Room for messages, of [`BUFFER`] bytes each, and for what the kernel tells about each.
    fn parts(&mut self) -> ([IoSliceMut<'_>; BATCH], &mut [RecvMeta; BATCH]);

    /// The first `count` messages: each holds datagrams of `stride` bytes, the last one maybe less.
    fn messages(
        &mut self,
        count: usize,
    ) -> impl Iterator<Item = (RecvMeta, Self::ReceivedBatch<'_>)>;
}

/// Datagrams one behind the other.
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

/// Buffers that are filled again and again: whoever handles a datagram copies what it keeps.
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
