//! Where datagrams are received, and from where the application reads them: nothing is copied in
//! between.

use std::io::IoSliceMut;
use std::mem;

use bytes::BytesMut;
use quinn_udp::RecvMeta;

use crate::socket::{BATCH, BUFFER, Landing};

/// What is shorter than this is moved to memory of its own size, as what is read late would otherwise
/// keep a whole buffer in use for a few bytes.
const SMALL: usize = BUFFER / 4;

/// Buffers that go on to the application, and what the kernel tells about each.
pub(super) struct OwnedBuffers {
    chunks: [BytesMut; BATCH],
    metas: [RecvMeta; BATCH],
}

impl OwnedBuffers {
    pub(super) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| BytesMut::zeroed(BUFFER)),
            metas: [RecvMeta::default(); BATCH],
        }
    }

    /// The first `count` messages: each holds datagrams of `stride` bytes, the last one maybe less.
    pub(super) fn take(&mut self, count: usize) -> impl Iterator<Item = (RecvMeta, BytesMut)> {
        let messages = self.metas.iter().zip(&mut self.chunks).take(count);
        messages.map(|(meta, chunk)| {
            let length = meta.len.min(chunk.len());
            if length < SMALL {
                return (*meta, BytesMut::from(&chunk[..length]));
            }
            let mut message = mem::replace(chunk, BytesMut::zeroed(BUFFER));
            message.truncate(length);
            (*meta, message)
        })
    }
}

impl Landing for OwnedBuffers {
    fn parts(&mut self) -> ([IoSliceMut<'_>; BATCH], &mut [RecvMeta; BATCH]) {
        let slices = self.chunks.each_mut().map(|chunk| IoSliceMut::new(chunk));
        (slices, &mut self.metas)
    }
}
