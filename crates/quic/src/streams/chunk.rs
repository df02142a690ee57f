//! Pieces of memory that hold stream data, and the pool that recycles them.

use std::collections::VecDeque;

use bytes::BytesMut;

/// The capacity in bytes of a full-size chunk.
pub(super) const CHUNK_SIZE: usize = 64 * 1024;

/// Memory for stream data. Full-size chunks come from a [`ChunkPool`] and go back to it.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The data that are in it.
    pub(super) data: BytesMut,
    pooled: bool,
}

impl Chunk {
    /// A chunk that is not full-size and belongs to no pool.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            data: BytesMut::with_capacity(capacity),
            pooled: false,
        }
    }

    /// How many bytes can be appended without moving what is there.
    pub(super) fn room(&self) -> usize {
        self.data.capacity() - self.data.len()
    }

    /// Whether this is a full-size chunk, which goes back to the pool.
    pub(super) const fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// Whether this is a full-size chunk that neither holds data nor has any that are held.
    pub(super) fn is_idle(&mut self) -> bool {
        self.pooled && self.data.is_empty() && self.data.try_reclaim(CHUNK_SIZE)
    }
}

/// Spare full-size chunks.
///
/// An allocator that gets 64 KiB back at the top of its heap returns the pages to the kernel and
/// faults them in again for the next chunk, which costs more than filling it. The pool keeps at
/// most one chunk more than are in use, so that an idle connection holds a single one.
#[derive(Debug, Default)]
pub(super) struct ChunkPool {
    spare: VecDeque<BytesMut>,
    in_use: usize,
}

impl ChunkPool {
    /// A chunk of at least `capacity` bytes; from half of [`CHUNK_SIZE`] on, a full-size one.
    pub(super) fn take(&mut self, capacity: usize) -> Chunk {
        if capacity < CHUNK_SIZE / 2 {
            return Chunk::with_capacity(capacity);
        }
        self.in_use += 1;
        // The application may still hold data that were read from a spare chunk. The oldest is the
        // likeliest to be free; one that is not is left to the application.
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

    /// Takes a chunk back whose data are no longer needed.
    pub(super) fn give(&mut self, mut chunk: Chunk) {
        if !chunk.pooled {
            return;
        }
        self.in_use -= 1;
        chunk.data.clear();
        self.spare.push_back(chunk.data);
        while self.spare.len() > self.in_use + 1 {
            self.spare.pop_front();
        }
    }
}

#[cfg(test)]
impl ChunkPool {
    /// How many full-size chunks are out.
    pub(super) const fn in_use(&self) -> usize {
        self.in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_comes_back_once_the_application_let_go_of_it() {
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
    fn an_idle_pool_holds_one_chunk() {
        let mut pool = ChunkPool::default();
        let chunks: Vec<_> = (0..10).map(|_| pool.take(CHUNK_SIZE)).collect();
        for chunk in chunks {
            pool.give(chunk);
        }
        assert_eq!((pool.spare.len(), pool.in_use), (1, 0));
        pool.give(Chunk::with_capacity(10));
        assert_eq!(pool.spare.len(), 1);
    }
}
