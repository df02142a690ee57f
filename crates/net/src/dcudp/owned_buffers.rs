//! Receive buffers that the application reads from directly: nothing is copied.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem;

use bytes::BytesMut;
use quinn_udp::RecvMeta;

use crate::buffers::{BATCH, BUFFER, Message, RecvBuffers};

/// Shorter messages are copied to memory of their own size. A message that is read late would
/// otherwise keep a whole buffer in use for a few bytes.
const SMALL: usize = BUFFER / 4;

/// As many buffers as the default receive window can pin, and some in flight.
const MAX_SPARE: usize = 64;

/// Buffers handed to the application, and the kernel's metadata of each.
pub(crate) struct OwnedBuffers {
    chunks: [BytesMut; BATCH],
    metas: [RecvMeta; BATCH],
    spare: SpareBuffers,
}

impl Default for OwnedBuffers {
    fn default() -> Self {
        Self {
            chunks: std::array::from_fn(|_| BytesMut::zeroed(BUFFER)),
            metas: [RecvMeta::default(); BATCH],
            spare: SpareBuffers::default(),
        }
    }
}

impl Message for BytesMut {
    fn take(&mut self, length: usize) -> Self {
        self.split_to(length.min(self.len()))
    }
}

impl RecvBuffers for OwnedBuffers {
    type ReceivedBatch<'b> = BytesMut;

    fn parts(&mut self) -> ([IoSliceMut<'_>; BATCH], &mut [RecvMeta; BATCH]) {
        let slices = self.chunks.each_mut().map(|chunk| IoSliceMut::new(chunk));
        (slices, &mut self.metas)
    }

    fn messages(&mut self, count: usize) -> impl Iterator<Item = (RecvMeta, BytesMut)> {
        let Self {
            chunks,
            metas,
            spare: lent,
        } = self;
        let messages = metas.iter().zip(chunks).take(count);
        messages.map(|(meta, chunk)| {
            let length = meta.len.min(chunk.len());
            if length < SMALL {
                return (*meta, BytesMut::from(&chunk[..length]));
            }
            let message = chunk.split_to(length);
            lent.exchange(chunk);
            (*meta, message)
        })
    }
}

/// Buffers whose contents are still to be read, the oldest first: zeroing a new one costs a third
/// of the kernel's time to fill it.
#[derive(Default)]
struct SpareBuffers(VecDeque<BytesMut>);

impl SpareBuffers {
    /// Replaces `rest`, the remainder of a buffer whose beginning was handed out, by a whole
    /// buffer.
    fn exchange(&mut self, rest: &mut BytesMut) {
        let returned = self.0.front_mut().and_then(whole);
        if returned.is_some() {
            self.0.pop_front();
        }
        let fresh = returned.unwrap_or_else(|| BytesMut::zeroed(BUFFER));
        let rest = mem::replace(rest, fresh);
        if self.0.len() == MAX_SPARE {
            // A part of it is still unread: the memory is freed after that.
            self.0.pop_front();
        }
        self.0.push_back(rest);
    }
}

/// Returns the whole buffer that ends with `rest`, if no other part of it is in use any more.
fn whole(rest: &mut BytesMut) -> Option<BytesMut> {
    rest.clear();
    if !rest.try_reclaim(BUFFER) {
        return None;
    }
    // SAFETY: every buffer begins as one of `BUFFER` zeroed bytes and is never made larger, so that all bytes of
    // the allocation that was reclaimed are initialized, and it is as long.
    unsafe { rest.set_len(BUFFER) };
    Some(mem::take(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives a message of this length in the first buffer.
    fn receive(buffers: &mut OwnedBuffers, value: u8, length: usize) -> BytesMut {
        let (slices, metas) = buffers.parts();
        for mut slice in slices {
            assert_eq!(slice.len(), BUFFER);
            slice.fill(value);
        }
        metas[0].len = length;
        let (_, message) = buffers.messages(1).next().unwrap();
        assert!(message.len() == length && message.iter().all(|byte| *byte == value));
        message
    }

    #[test]
    fn only_released_buffers_are_reused() {
        let mut buffers = OwnedBuffers::default();
        let first = receive(&mut buffers, 1, BUFFER);
        let mut second = receive(&mut buffers, 2, BUFFER - 1);
        let beginning = first.as_ptr();
        drop(first);
        let third = receive(&mut buffers, 3, SMALL);
        // The first buffer came back after the third had been allocated.
        let part = second.split_to(100);
        drop(second);
        let fourth = receive(&mut buffers, 4, BUFFER);
        assert_eq!(fourth.as_ptr(), beginning);
        assert_eq!(spare_buffers_after_receive(&mut buffers, 5), 4);
        assert!(part.iter().all(|byte| *byte == 2) && third.iter().all(|byte| *byte == 3));
    }

    fn spare_buffers_after_receive(buffers: &mut OwnedBuffers, value: u8) -> usize {
        receive(buffers, value, SMALL);
        buffers.spare.0.len()
    }

    #[test]
    fn spare_buffers_are_limited() {
        let mut buffers = OwnedBuffers::default();
        let kept: Vec<BytesMut> = (0..100)
            .map(|value| receive(&mut buffers, value, BUFFER))
            .collect();
        assert_eq!(buffers.spare.0.len(), MAX_SPARE);
        for (value, message) in kept.iter().enumerate() {
            assert!(message.iter().all(|byte| usize::from(*byte) == value));
        }
        drop(kept);
        for value in 0..100 {
            receive(&mut buffers, value, BUFFER);
        }
        assert_eq!(buffers.spare.0.len(), MAX_SPARE);
    }
}
