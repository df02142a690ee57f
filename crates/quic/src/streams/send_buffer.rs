//! The send buffer: data written by the application and not acknowledged by the peer.
//!
//! Data stays where the application's write stored it until it is acknowledged: copied to the end
//! of the last chunk, or as the application's own [`Bytes`]. Frames copy from here. Reads mostly
//! continue where the last one ended, and ACKs mostly arrive in order; both take constant time
//! then.

use std::ops::Range;

use bytes::Bytes;

use super::chunk::{CHUNK_SIZE, Chunk, ChunkPool};
use crate::inline_queue::InlineQueue;
use crate::ranges::RangeSet;

/// The smallest chunk in bytes.
const MIN_CHUNK: usize = 1024;
/// Shorter [`Bytes`] are copied: a piece of their own would cost more.
const COPY_BELOW: usize = 256;

/// The send side's buffer of one stream.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    pieces: InlineQueue<Piece>,
    /// All data below this offset is acknowledged.
    acked: u64,
    /// Acknowledged ranges beyond `acked`.
    acked_ahead: RangeSet,
    /// The end offset of written data.
    pub(super) end: u64,
    /// The piece in which the last read ended.
    cursor: usize,
}

#[derive(Debug)]
struct Piece {
    /// The offset of its first byte.
    start: u64,
    memory: BufferMemory,
}

#[derive(Debug)]
enum BufferMemory {
    Own(Chunk),
    Given(Bytes),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match &self.memory {
            BufferMemory::Own(chunk) => &chunk.data,
            BufferMemory::Given(bytes) => bytes,
        }
    }

    fn end(&self) -> u64 {
        self.start + self.bytes().len() as u64
    }
}

impl SendBuffer {
    /// Returns the held bytes, by offsets: from the first unacknowledged one to the end.
    pub(super) const fn held(&self) -> u64 {
        self.end - self.acked
    }

    /// Whether all written data is acknowledged.
    pub(super) const fn is_empty(&self) -> bool {
        self.acked == self.end
    }

    /// Copies `data` to the end.
    pub(super) fn write(&mut self, mut data: &[u8], pool: &mut ChunkPool) {
        while !data.is_empty() {
            let room = self.last_chunk().map_or(0, |chunk| chunk.room());
            if room == 0 {
                // As large as the held data: short streams stay small.
                let held = self.held().min(CHUNK_SIZE as u64) as usize;
                let capacity = data.len().max(held).clamp(MIN_CHUNK, CHUNK_SIZE);
                self.pieces.push_back(Piece {
                    start: self.end,
                    memory: BufferMemory::Own(pool.take(capacity)),
                });
                continue;
            }
            let (fits, rest) = data.split_at(room.min(data.len()));
            if let Some(chunk) = self.last_chunk() {
                chunk.data.extend_from_slice(fits);
            }
            self.end += fits.len() as u64;
            data = rest;
        }
    }

    /// Moves `data` to the end.
    pub(super) fn give(&mut self, data: Bytes, pool: &mut ChunkPool) {
        if data.len() < COPY_BELOW {
            return self.write(&data, pool);
        }
        let start = self.end;
        self.end += data.len() as u64;
        self.pieces.push_back(Piece {
            start,
            memory: BufferMemory::Given(data),
        });
    }

    /// Appends `length` bytes from `offset` to `out`. They must be held.
    pub(super) fn copy(&mut self, offset: u64, length: usize, out: &mut Vec<u8>) {
        let mut offset = offset;
        let mut left = length;
        let mut index = self.piece_at(offset);
        while left > 0 {
            let Some(piece) = self.pieces.get(index) else {
                debug_assert!(false, "reading {left} bytes beyond the end");
                return;
            };
            let from = &piece.bytes()[(offset - piece.start) as usize..];
            let part = &from[..left.min(from.len())];
            out.extend_from_slice(part);
            offset += part.len() as u64;
            left -= part.len();
            self.cursor = index;
            index += 1;
        }
    }

    /// Acknowledges `length` bytes from `offset`; frees pieces without a gap before them.
    pub(super) fn acknowledge(&mut self, offset: u64, length: u64, pool: &mut ChunkPool) {
        let end = (offset + length).min(self.end);
        if offset > self.acked {
            self.acked_ahead.insert(offset..end);
            return;
        }
        self.acked = self.acked.max(end);
        while let Some(range) = self.acked_ahead.first()
            && range.start <= self.acked
        {
            self.acked = self.acked.max(range.end);
            self.acked_ahead.pop_front();
        }
        self.free(pool);
    }

    /// Adds the unacknowledged bytes of the range to `lost`.
    pub(super) fn collect_unacked(&self, range: Range<u64>, lost: &mut RangeSet) {
        let range = range.start.max(self.acked)..range.end.min(self.end);
        lost.insert(range.clone());
        for acked in self.acked_ahead.overlapping(range) {
            lost.remove(acked);
        }
    }

    /// Drops all held data.
    pub(super) fn discard(&mut self, pool: &mut ChunkPool) {
        self.acked = self.end;
        self.acked_ahead.clear();
        self.cursor = 0;
        for piece in self.pieces.drain() {
            if let BufferMemory::Own(chunk) = piece.memory {
                pool.give(chunk);
            }
        }
    }

    fn last_chunk(&mut self) -> Option<&mut Chunk> {
        match &mut self.pieces.back_mut()?.memory {
            BufferMemory::Own(chunk) => Some(chunk),
            BufferMemory::Given(_) => None,
        }
    }

    /// Returns the index of the piece with the byte at `offset`.
    fn piece_at(&self, offset: u64) -> usize {
        let holds = |index: &usize| {
            self.pieces
                .get(*index)
                .is_some_and(|piece| piece.start <= offset && offset < piece.end())
        };
        [self.cursor, self.cursor + 1]
            .into_iter()
            .find(holds)
            .unwrap_or_else(|| self.pieces.partition_point(|piece| piece.end() <= offset))
    }

    fn free(&mut self, pool: &mut ChunkPool) {
        while self
            .pieces
            .front()
            .is_some_and(|front| front.end() <= self.acked)
        {
            if self.pieces.len() == 1
                && let Some(chunk) = self.last_chunk().filter(|chunk| !chunk.is_pooled())
            {
                // A stream of small messages continues in its small chunk.
                chunk.data.clear();
                if let Some(front) = self.pieces.front_mut() {
                    front.start = self.end;
                }
                return;
            }
            self.cursor = self.cursor.saturating_sub(1);
            if let Some(Piece {
                memory: BufferMemory::Own(chunk),
                ..
            }) = self.pieces.pop_front()
            {
                pool.give(chunk);
            }
        }
    }
}
