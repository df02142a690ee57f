//! Memory chunks for stream data, and the pool that recycles them.

use std::collections::VecDeque;

use bytes::BytesMut;

/// The capacity in bytes of a full-size chunk.
pub(super) const CHUNK_SIZE: usize = 64 * 1024;

/// Memory for stream data. Full-size chunks come from a [`ChunkPool`] and return to it.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The stored data.
    pub(super) data: BytesMut,
    pooled: bool,
}

impl Chunk {
    /// Creates a chunk that is not full-size and belongs to no pool.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            data: BytesMut::with_capacity(capacity),
            pooled: false,
        }
    }

    /// Returns how many bytes can be appended without moving the stored data.
    pub(super) fn room(&self) -> usize {
        self.data.capacity() - self.data.len()
    }

    /// Whether the next `length` bytes are all that the chunk holds, and nothing more can be appended
    /// to it, nor is it used again.
    pub(super) fn is_last_part(&self, length: usize) -> bool {
        !self.pooled && self.room() == 0 && length == self.data.len()
    }

    /// Whether this is a full-size chunk, which returns to the pool.
    pub(super) const fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// Whether this is an empty full-size chunk without data in use elsewhere.
    pub(super) fn is_idle(&mut self) -> bool {
        self.pooled && self.data.is_empty() && self.data.try_reclaim(CHUNK_SIZE)
    }
}

/// The most spare chunks in a pool.
const MAX_SPARE: usize = 8;
/// From this many full-size chunks in use on (8 MiB), streams take no more memory than they have
/// data for. Otherwise a single byte could make every stream hold a full chunk.
const PLENTY: usize = 128;

/// Spare full-size chunks.
///
/// An allocator that gets 64 KiB back at the top of its heap returns the pages to the kernel and
/// faults them in again for the next chunk, which costs more than filling it. The pool keeps as
/// many chunks as were recently in use at the same time, at most 512 KiB, and reduces that number
/// by one each time it needs fewer.
#[derive(Debug, Default)]
pub(super) struct ChunkPool {
    spare: VecDeque<BytesMut>,
    /// Full-size chunks in use.
    pub(super) in_use: usize,
    /// The most chunks in use at the same time since none was.
    peak: usize,
    /// The number of spare chunks to keep.
    target: usize,
    /// Gaps in received data, over all streams.
    pub(super) gaps: usize,
}

impl ChunkPool {
    /// Whether so many chunks are in use that none should be taken for future data.
    pub(super) const fn is_scarce(&self) -> bool {
        self.in_use >= PLENTY
    }

    /// Records another gap in received data.
    pub(super) const fn open_gap(&mut self) {
        self.gaps += 1;
    }

    /// Records that this many gaps were closed or dropped.
    pub(super) const fn close_gaps(&mut self, count: usize) {
        self.gaps -= count;
    }

    /// Takes a chunk of at least `capacity` bytes; from half of [`CHUNK_SIZE`] on, a full-size one.
    pub(super) fn take(&mut self, capacity: usize) -> Chunk {
        if capacity < CHUNK_SIZE / 2 {
            return Chunk::with_capacity(capacity);
        }
        self.in_use += 1;
        self.peak = self.peak.max(self.in_use);
        // The application may still hold data read from a spare chunk. The oldest chunk is the most
        // likely to be free; one that is not free is left to the application.
        while let Some(mut data) = self.spare.pop_front() {
            if data.try_reclaim(CHUNK_SIZE) {
                return Chunk { data, pooled: true };
            }
        }
        Chunk {
            data: BytesMut::with_capacity(CHUNK_SIZE),
            pooled: true,
        }
    }

    /// Takes back a chunk whose data is no longer needed.
    pub(super) fn give(&mut self, mut chunk: Chunk) {
        if !chunk.pooled {
            return;
        }
        self.in_use -= 1;
        chunk.data.clear();
        self.spare.push_back(chunk.data);
        if self.in_use == 0 {
            let target = self.peak.max(self.target.saturating_sub(1));
            self.target = target.clamp(1, MAX_SPARE);
            self.peak = 0;
        }
        let keep = self.target.max(self.peak).clamp(1, MAX_SPARE);
        while self.spare.len() > keep {
            self.spare.pop_front();
        }
    }
}

#[cfg(test)]
impl ChunkPool {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_reused_once_the_application_released_it() {
        let mut pool = ChunkPool::default();
        let mut chunk = pool.take(CHUNK_SIZE);
        let address = chunk.data.as_ptr();
        chunk.data.extend_from_slice(&[1; 100]);
        let read = chunk.data.split_to(50).freeze();
        pool.give(chunk);
        drop(read);
        let mut again = pool.take(CHUNK_SIZE);
        assert_eq!(again.data.as_ptr(), address);
        assert!(again.data.is_empty() && again.room() >= CHUNK_SIZE);

        again.data.extend_from_slice(&[2; 100]);
        let held = again.data.split_to(50).freeze();
        pool.give(again);
        let fresh = pool.take(CHUNK_SIZE);
        assert_ne!(fresh.data.as_ptr(), address);
        assert_eq!(held, [2; 50][..]);
    }

    #[test]
    fn the_pool_shrinks_to_recent_demand() {
        let mut pool = ChunkPool::default();
        let use_at_once = |pool: &mut ChunkPool, count: usize| {
            let chunks: Vec<_> = (0..count).map(|_| pool.take(CHUNK_SIZE)).collect();
            for chunk in chunks {
                pool.give(chunk);
            }
            pool.spare.len()
        };
        assert_eq!(use_at_once(&mut pool, 1), 1);
        assert_eq!(use_at_once(&mut pool, 20), MAX_SPARE);
        for kept in (1..MAX_SPARE).rev() {
            assert_eq!(use_at_once(&mut pool, 1), kept);
        }
        assert_eq!(use_at_once(&mut pool, 1), 1);
        pool.give(Chunk::with_capacity(10));
        assert_eq!((pool.spare.len(), pool.in_use), (1, 0));
    }
}
