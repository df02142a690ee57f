//! What an application has written to a stream and no packet carries yet.
//!
//! Chunks hold whole packets' payloads, so that a packet is a part of a chunk and nothing is moved
//! between writing and sending. They are no larger than allocators keep at hand.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The largest chunk in bytes.
const LARGEST: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct StreamQueue {
    /// None but the last one is empty.
    chunks: VecDeque<BytesMut>,
    length: usize,
}

impl StreamQueue {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Takes `data`, to go in packets with this payload.
    pub(crate) fn write(&mut self, mut data: &[u8], payload: usize) {
        self.length += data.len();
        while !data.is_empty() {
            let chunk = match self.chunks.back_mut() {
                Some(chunk) if chunk.capacity() > chunk.len() => chunk,
                _ => self.add(data.len(), payload),
            };
            let room = chunk.capacity() - chunk.len();
            let (now, later) = data.split_at(data.len().min(room));
            chunk.extend_from_slice(now);
            data = later;
        }
    }

    /// A chunk for so much, up to the largest.
    fn add(&mut self, wanted: usize, payload: usize) -> &mut BytesMut {
        if self.chunks.back().is_some_and(BytesMut::is_empty) {
            self.chunks.pop_back();
        }
        let payload = payload.max(1);
        let packets = wanted.div_ceil(payload).min(LARGEST / payload).max(1);
        self.chunks
            .push_back(BytesMut::with_capacity(packets * payload));
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }

    /// The payload of the next packet, in bytes.
    pub(crate) fn next_size(&self, payload: usize) -> usize {
        self.chunks
            .front()
            .map_or(0, |chunk| chunk.len().min(payload))
    }

    /// The payload of the next packet; empty where nothing is left.
    pub(crate) fn cut(&mut self, payload: usize) -> Bytes {
        let size = self.next_size(payload);
        let Some(chunk) = self.chunks.front_mut() else {
            return Bytes::new();
        };
        let cut = chunk.split_to(size).freeze();
        if chunk.is_empty() && (chunk.capacity() == 0 || self.chunks.len() > 1) {
            self.chunks.pop_front();
        }
        self.length -= size;
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_cut(
            steps in prop::collection::vec((0..200_000_usize, 0..30_usize), 1..20),
            payload in 1..9000_usize,
        ) {
            let (mut queue, mut written, mut cut) = (StreamQueue::default(), Vec::new(), Vec::new());
            for (length, packets) in steps {
                let data: Vec<u8> = (0..length).map(|at| (written.len() + at) as u8).collect();
                queue.write(&data, payload);
                written.extend(data);
                for _ in 0..packets {
                    let size = queue.next_size(payload);
                    let packet = queue.cut(payload);
                    prop_assert_eq!(packet.len(), size);
                    prop_assert_eq!(size == 0, cut.len() == written.len());
                    cut.extend(packet);
                }
                prop_assert_eq!(queue.len(), written.len() - cut.len());
            }
            while !queue.is_empty() {
                cut.extend(queue.cut(payload));
            }
            prop_assert!(cut == written);
        }
    }

    #[test]
    fn packets_are_full_but_for_the_last_one() {
        let mut queue = StreamQueue::default();
        for _ in 0..1000 {
            queue.write(&[7; 777], 1436);
        }
        let packets: Vec<usize> = std::iter::from_fn(|| {
            let size = queue.cut(1436).len();
            (size > 0).then_some(size)
        })
        .collect();
        let (last, full) = packets.split_last().unwrap();
        assert!(full.iter().all(|size| *size == 1436));
        assert_eq!(full.len() * 1436 + last, 777_000);
    }
}
