//! Reassembly: data arrives in any order, with any cuts and duplicates, and is read in order.
//!
//! Data in order is appended to chunks of up to 64 KiB, with one copy from the packet; reads return
//! parts of these chunks. Data ahead of a gap waits in segments that merge as gaps close. Flow
//! control bounds the bytes. This module bounds the number of gaps, over all streams of the
//! connection, so that single bytes with gaps between them cannot take much memory.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};

use super::chunk::{CHUNK_SIZE, Chunk, ChunkPool};
use crate::inline_queue::InlineQueue;

/// The most gaps over all streams. Data that would create another one is refused, and the peer
/// sends it again once some have closed.
pub(super) const MAX_GAPS: usize = 4096;
/// Smaller neighbors are copied together to limit the overhead per segment.
const MERGE_BELOW: usize = 4096;
/// The size of the first chunk of a potentially long stream, but at most [`HEADROOM`] times the
/// received data: a stream opened with a single byte stays small.
const FIRST_CHUNK: u64 = 16 * 1024;
const HEADROOM: u64 = 16;

/// The result of receiving data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The data is buffered, or was not needed.
    Buffered,
    /// Too many gaps to buffer it: the packet must be treated as not received.
    Refused,
}

/// The receive side's buffer of one stream.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    /// Data in order that has not been read.
    chunks: InlineQueue<Chunk>,
    /// The offset of the next byte to be read.
    read: u64,
    /// The end offset of the data in order.
    pub(super) ordered: u64,
    /// Data behind a gap, by offset: disjoint, and not adjacent or at least [`MERGE_BELOW`] long.
    segments: BTreeMap<u64, Chunk>,
    /// The number of gaps before and between the segments.
    gaps: usize,
}

impl ReceiveBuffer {
    /// Returns how many bytes can be read now.
    pub(super) const fn readable(&self) -> u64 {
        self.ordered - self.read
    }

    /// Inserts data that starts at `offset`. `size` is the stream's final size, if known; the
    /// caller has checked that no data exceeds it or flow control.
    pub(super) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        size: Option<u64>,
        pool: &mut ChunkPool,
    ) -> Received {
        let end = offset + data.len() as u64;
        if end <= self.ordered || data.is_empty() {
            return Received::Buffered;
        }
        if offset <= self.ordered {
            let new = &data[(self.ordered - offset) as usize..];
            self.append(new, size, pool);
            if !self.segments.is_empty() {
                self.adopt_segments(size, pool);
            }
            return Received::Buffered;
        }
        if pool.gaps >= MAX_GAPS && !self.touches_segment(offset, end) {
            return Received::Refused;
        }
        self.insert_behind_gap(offset, data, pool);
        Received::Buffered
    }

    /// Reads up to `max` bytes, without a copy; `None` if there are none.
    pub(super) fn read(&mut self, max: usize, pool: &mut ChunkPool) -> Option<Bytes> {
        let chunk = self.chunks.front_mut()?;
        if chunk.data.is_empty() {
            self.release_idle_chunk(pool);
            return None;
        }
        let length = max.min(chunk.data.len());
        let bytes = if chunk.is_last_part(length) {
            // Without shared ownership.
            std::mem::take(&mut chunk.data).freeze()
        } else {
            chunk.data.split_to(length).freeze()
        };
        self.read += length as u64;
        self.retire_front(pool);
        Some(bytes)
    }

    /// Drops all data in order that has not been read; returns the number of bytes.
    pub(super) fn skip(&mut self, pool: &mut ChunkPool) -> u64 {
        let skipped = self.readable();
        while self.chunks.len() > 1
            && let Some(chunk) = self.chunks.pop_front()
        {
            pool.give(chunk);
        }
        if let Some(last) = self.chunks.front_mut() {
            last.data.clear();
        }
        self.read = self.ordered;
        self.release_idle_chunk(pool);
        skipped
    }

    /// Copies as many bytes as are available and fit; returns their number.
    pub(super) fn read_into(&mut self, mut out: &mut [u8], pool: &mut ChunkPool) -> usize {
        let mut copied = 0;
        while let Some(chunk) = self.chunks.front_mut() {
            let length = chunk.data.len().min(out.len());
            if length == 0 {
                break;
            }
            let (filled, rest) = out.split_at_mut(length);
            chunk.data.copy_to_slice(filled);
            out = rest;
            copied += length;
            self.retire_front(pool);
        }
        self.read += copied as u64;
        self.release_idle_chunk(pool);
        copied
    }

    /// Drops all unread data.
    pub(super) fn discard(&mut self, pool: &mut ChunkPool) {
        for chunk in self.chunks.drain() {
            pool.give(chunk);
        }
        for (_, chunk) in std::mem::take(&mut self.segments) {
            pool.give(chunk);
        }
        pool.close_gaps(std::mem::take(&mut self.gaps));
        self.read = self.ordered;
    }

    /// Returns the first chunk to the pool once it is read and has no room.
    fn retire_front(&mut self, pool: &mut ChunkPool) {
        let exhausted = |chunk: &Chunk| chunk.data.is_empty() && chunk.room() == 0;
        let done = match self.chunks.front() {
            Some(front) if self.chunks.len() == 1 => exhausted(front),
            Some(front) => front.data.is_empty(),
            None => false,
        };
        if done && let Some(chunk) = self.chunks.pop_front() {
            pool.give(chunk);
        }
    }

    /// Returns a full-size chunk to the pool once its data is read and released, so that idle
    /// streams hold none.
    fn release_idle_chunk(&mut self, pool: &mut ChunkPool) {
        let idle = self.chunks.front_mut().is_some_and(Chunk::is_idle);
        if idle && let Some(chunk) = self.chunks.pop_front() {
            pool.give(chunk);
        }
    }

    /// Appends data in order.
    fn append(&mut self, mut data: &[u8], size: Option<u64>, pool: &mut ChunkPool) {
        while !data.is_empty() {
            let room = self.chunks.back().map_or(0, Chunk::room);
            if room == 0 {
                let capacity = self.next_capacity(data.len(), size, pool.is_scarce());
                self.push_chunk(pool.take(capacity), pool);
                continue;
            }
            let (fits, rest) = data.split_at(room.min(data.len()));
            if let Some(last) = self.chunks.back_mut() {
                last.data.extend_from_slice(fits);
            }
            self.ordered += fits.len() as u64;
            data = rest;
        }
    }

    /// Appends a chunk. An empty last chunk is removed: only the first may be empty.
    fn push_chunk(&mut self, chunk: Chunk, pool: &mut ChunkPool) {
        if self.chunks.back().is_some_and(|last| last.data.is_empty())
            && let Some(empty) = self.chunks.pop_back()
        {
            pool.give(empty);
        }
        self.chunks.push_back(chunk);
    }

    /// Returns the size of the next chunk: the data known to come, or else as much as has arrived,
    /// so that short streams stay small and long ones soon use full chunks. While chunks are scarce
    /// it is the size of the available data.
    fn next_capacity(&self, wanted: usize, size: Option<u64>, is_scarce: bool) -> usize {
        let wanted = wanted.min(CHUNK_SIZE);
        if is_scarce {
            return wanted;
        }
        let come = self.ordered + wanted as u64;
        let expected = match size {
            Some(size) => size - self.ordered,
            None => self.ordered.max(FIRST_CHUNK.min(come * HEADROOM)),
        };
        (expected.min(CHUNK_SIZE as u64) as usize).max(wanted)
    }

    /// Moves segments without a gap before them to the data in order.
    fn adopt_segments(&mut self, size: Option<u64>, pool: &mut ChunkPool) {
        let mut in_gap = true;
        while let Some(entry) = self.segments.first_entry()
            && *entry.key() <= self.ordered
        {
            let (start, mut segment) = entry.remove_entry();
            // The first segment of a run closes its gap; adjacent segments after it have none.
            if in_gap {
                self.gaps -= 1;
                pool.close_gaps(1);
            }
            let end = start + segment.data.len() as u64;
            in_gap = self
                .segments
                .first_key_value()
                .is_some_and(|(&next, _)| next != end);
            if end <= self.ordered {
                pool.give(segment);
                continue;
            }
            segment.data.advance((self.ordered - start) as usize);
            // Unused room is cheaper than a copy only if the segment is larger.
            let room = self.chunks.back().map_or(0, Chunk::room);
            if segment.data.len() < MERGE_BELOW.max(room / 2) {
                self.append(&segment.data, size, pool);
                pool.give(segment);
            } else {
                self.ordered = end;
                self.push_chunk(segment, pool);
            }
        }
    }

    /// Whether data between these offsets overlaps a segment or is adjacent to one.
    fn touches_segment(&self, start: u64, end: u64) -> bool {
        self.segments
            .range(..=end)
            .next_back()
            .is_some_and(|(&at, segment)| at + segment.data.len() as u64 >= start)
    }

    /// Inserts the new parts of the data behind a gap.
    fn insert_behind_gap(&mut self, mut offset: u64, mut data: &[u8], pool: &mut ChunkPool) {
        if let Some((&start, left)) = self.segments.range(..=offset).next_back() {
            let known = (start + left.data.len() as u64).saturating_sub(offset);
            if known >= data.len() as u64 {
                return;
            }
            data = &data[known as usize..];
            offset += known;
        }
        while !data.is_empty() {
            let right = self
                .segments
                .range(offset..)
                .next()
                .map(|(&start, segment)| (start, segment.data.len()));
            let Some((start, length)) = right else {
                return self.insert_segment(offset, data, pool);
            };
            let new = data
                .len()
                .min((start - offset).try_into().unwrap_or(usize::MAX));
            if new > 0 {
                self.insert_segment(offset, &data[..new], pool);
            }
            let known = data.len().min(new + length);
            data = &data[known..];
            offset += known as u64;
        }
    }

    /// Inserts new data that overlaps nothing.
    fn insert_segment(&mut self, offset: u64, data: &[u8], pool: &mut ChunkPool) {
        let end = offset + data.len() as u64;
        let left = self.segments.range_mut(..offset).next_back();
        let left = left.filter(|(start, left)| *start + left.data.len() as u64 == offset);
        let touches_left = left.is_some();
        // A long run continues in full-size chunks; a short one grows as needed.
        let mut capacity = data.len();
        let mut start = offset;
        match left {
            Some((&at, left)) if left.data.len() + data.len() <= CHUNK_SIZE => {
                left.data.extend_from_slice(data);
                start = at;
            }
            Some(_) => capacity = CHUNK_SIZE,
            None => {}
        }
        if start == offset {
            let mut segment = pool.take(capacity);
            segment.data.extend_from_slice(data);
            self.segments.insert(offset, segment);
        }

        let touches_right = self.segments.contains_key(&end);
        if touches_right {
            self.merge_right(start, end, pool);
        }
        match (touches_left, touches_right) {
            (false, false) => {
                self.gaps += 1;
                pool.open_gap();
            }
            (true, true) => {
                self.gaps -= 1;
                pool.close_gaps(1);
            }
            _ => {}
        }
    }

    /// Copies the segment at `right` to the end of the one at `left` if that is cheap.
    fn merge_right(&mut self, left: u64, right: u64, pool: &mut ChunkPool) {
        let length = |at| {
            self.segments
                .get(at)
                .map_or(0, |segment: &Chunk| segment.data.len())
        };
        let (left_length, right_length) = (length(&left), length(&right));
        if right_length >= MERGE_BELOW || left_length + right_length > CHUNK_SIZE {
            return;
        }
        let Some(segment) = self.segments.remove(&right) else {
            return;
        };
        if let Some(left) = self.segments.get_mut(&left) {
            left.data.extend_from_slice(&segment.data);
        }
        pool.give(segment);
    }
}

#[cfg(test)]
impl ReceiveBuffer {
    /// The offset of the next byte to be read.
    #[cfg(test)]
    pub(super) const fn read_offset(&self) -> u64 {
        self.read
    }

    /// Returns the number of segments behind gaps.
    pub(super) fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Returns the memory of the data in order, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.data.capacity()).sum()
    }

    /// Checks the invariants, given all data that has arrived.
    pub(super) fn check(&self, arrived: &crate::ranges::RangeSet) {
        let behind = || arrived.iter().filter(|range| range.start > self.ordered);
        assert_eq!(self.gaps, behind().count());
        let length = |chunk: &Chunk| chunk.data.len() as u64;
        let waiting: u64 = self.segments.values().map(length).sum();
        assert_eq!(waiting, behind().map(|range| range.end - range.start).sum());
        assert_eq!(self.readable(), self.chunks.iter().map(length).sum());
        let empty = self.chunks.iter().filter(|chunk| chunk.data.is_empty());
        assert!(empty.count() <= usize::from(self.chunks.len() == 1));
    }
}
