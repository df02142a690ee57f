//! The data that an application has written to a stream, until it is acknowledged.
//!
//! Data that the application hands over stay where they are; other data are copied once, to chunks.
//! Packets refer to parts of both, and are sent from there. Acknowledgments are cumulative, so both
//! are freed in the order in which they were written. Large chunks are reused, because allocating
//! them is expensive.

use std::collections::VecDeque;

use bytes::Bytes;

/// The largest chunk in bytes.
const LARGEST: usize = 64 * 1024;
/// Smaller chunks are not kept for reuse.
const WORTH_KEEPING: usize = LARGEST / 2;
/// Maximum number of chunks kept while data is unacknowledged.
const MOST_SPARE: usize = 16;

/// The location of a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedPayload {
    /// The number of the piece in which it begins, counted from the first piece ever.
    piece: u64,
    begin: usize,
    /// It may continue in the pieces after that.
    length: usize,
}

impl QueuedPayload {
    pub(crate) fn len(self) -> usize {
        self.length
    }
}

/// Consecutive data.
#[derive(Debug)]
enum Piece {
    /// Copied data. The capacity is fixed; the last piece may have room for more.
    Chunk(Vec<u8>),
    /// Data that the application handed over.
    Shared(Bytes),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Chunk(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    fn room(&self) -> usize {
        match self {
            Self::Chunk(bytes) => bytes.capacity() - bytes.len(),
            Self::Shared(_) => 0,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct StreamQueue {
    /// None of them is empty.
    pieces: VecDeque<Piece>,
    /// The number of the first piece.
    first: u64,
    /// The number of the piece to cut next, and the position in it.
    next: (u64, usize),
    /// Bytes not cut into packets yet.
    length: usize,
    spare: Vec<Vec<u8>>,
}

impl StreamQueue {
    /// Returns the bytes not cut into packets yet.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns whether all data has been cut.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies `data`.
    pub(crate) fn write(&mut self, mut data: &[u8]) {
        self.length += data.len();
        if let Some(Piece::Chunk(chunk)) = self.pieces.back_mut() {
            data = fill(chunk, data);
        }
        while !data.is_empty() {
            let mut chunk = self.new_chunk(data.len());
            data = fill(&mut chunk, data);
            self.pieces.push_back(Piece::Chunk(chunk));
        }
        self.leave_finished();
    }

    /// Takes `data` over without copying them.
    pub(crate) fn share(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        self.length += data.len();
        self.pieces.push_back(Piece::Shared(data));
        self.leave_finished();
    }

    /// Returns an empty chunk for `wanted` bytes, up to the largest size.
    fn new_chunk(&mut self, wanted: usize) -> Vec<u8> {
        let size = wanted.next_power_of_two().min(LARGEST);
        let spare = self.spare.pop_if(|spare| spare.capacity() == size);
        spare.unwrap_or_else(|| Vec::with_capacity(size))
    }

    fn piece(&self, number: u64) -> Option<&Piece> {
        let index = number.checked_sub(self.first)?;
        self.pieces.get(usize::try_from(index).ok()?)
    }

    /// Cuts the payload of the next packet, of up to `most` bytes; `None` if nothing is left.
    pub(crate) fn cut(&mut self, most: usize) -> Option<QueuedPayload> {
        let length = most.min(self.length);
        if length == 0 {
            return None;
        }
        let (piece, begin) = self.next;
        self.length -= length;
        self.next.1 += length;
        self.leave_finished();
        Some(QueuedPayload {
            piece,
            begin,
            length,
        })
    }

    /// Moves the position on to the piece in which it lies. A chunk with room is not left: more data
    /// may follow in it.
    fn leave_finished(&mut self) {
        while let Some(piece) = self.piece(self.next.0) {
            let length = piece.bytes().len();
            let is_last = self.next.0 + 1 == self.first + self.pieces.len() as u64;
            if self.next.1 < length || (is_last && piece.room() > 0) {
                return;
            }
            self.next = (self.next.0 + 1, self.next.1 - length);
        }
    }

    /// Returns the payload, in one part or more; none if it has been released.
    pub(crate) fn get(&self, payload: QueuedPayload) -> impl Iterator<Item = &[u8]> {
        let index = payload.piece.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let pieces = self.pieces.iter().skip(index.unwrap_or(usize::MAX));
        let (mut begin, mut left) = (payload.begin, payload.length);
        pieces.map_while(move |piece| {
            let bytes = piece.bytes().get(std::mem::take(&mut begin)..)?;
            let part = bytes.get(..left).unwrap_or(bytes);
            left -= part.len();
            (!part.is_empty()).then_some(part)
        })
    }

    /// Releases this payload and all that were cut before it.
    pub(crate) fn release(&mut self, payload: QueuedPayload) {
        while self.first < payload.piece {
            self.free_first();
        }
        let mut end = payload.begin + payload.length;
        while self.first < self.next.0
            && let Some(length) = self.pieces.front().map(|piece| piece.bytes().len())
            && length <= end
        {
            end -= length;
            self.free_first();
        }
        if self.pieces.is_empty() {
            self.spare = Vec::new();
        }
    }

    fn free_first(&mut self) {
        self.first += 1;
        let Some(Piece::Chunk(mut bytes)) = self.pieces.pop_front() else {
            return;
        };
        if bytes.capacity() >= WORTH_KEEPING && self.spare.len() < MOST_SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

/// Appends as much of `data` as fits into the capacity of `chunk`. Returns the rest.
fn fill<'d>(chunk: &mut Vec<u8>, data: &'d [u8]) -> &'d [u8] {
    let room = chunk.capacity() - chunk.len();
    let (fitting, rest) = data.split_at(data.len().min(room));
    chunk.extend_from_slice(fitting);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the payload in one part.
    fn whole(queue: &StreamQueue, payload: QueuedPayload) -> Vec<u8> {
        queue.get(payload).flatten().copied().collect()
    }

    proptest! {
        #[test]
        fn written_data_is_split_and_kept_until_released(
            steps in prop::collection::vec(
                (any::<bool>(), prop_oneof![0..200_000_usize, 0..20_usize], 0..60_usize, 0..60_usize),
                1..30,
            ),
            payload in 1..9000_usize,
        ) {
            let (mut queue, mut written) = (StreamQueue::default(), Vec::new());
            // Payloads, and their offset in the written data.
            let mut kept: VecDeque<(QueuedPayload, usize)> = VecDeque::new();
            let mut cut = 0;
            for (is_shared, length, packets, released) in steps {
                let data: Vec<u8> = (0..length).map(|at| ((written.len() + at) * 31 / 7) as u8).collect();
                written.extend(&data);
                if is_shared {
                    queue.share(data.into());
                } else {
                    queue.write(&data);
                }
                for _ in 0..packets {
                    let expected = payload.min(written.len() - cut);
                    let part = queue.cut(payload);
                    prop_assert_eq!(part.map_or(0, QueuedPayload::len), expected);
                    kept.extend(part.map(|part| (part, cut)));
                    cut += expected;
                }
                for (part, _) in kept.drain(..released.min(kept.len())) {
                    queue.release(part);
                }
                for (part, begin) in &kept {
                    prop_assert!(whole(&queue, *part) == written[*begin..begin + part.len()]);
                }
                prop_assert_eq!(queue.len(), written.len() - cut);
            }
            for (part, _) in kept {
                queue.release(part);
            }
            while let Some(part) = queue.cut(payload) {
                prop_assert!(whole(&queue, part) == written[cut..cut + part.len()]);
                cut += part.len();
                queue.release(part);
            }
            prop_assert_eq!(cut, written.len());
            prop_assert!(queue.pieces.len() <= 1);
        }
    }

    #[test]
    fn all_packets_but_the_last_are_full() {
        let mut queue = StreamQueue::default();
        for _ in 0..1000 {
            queue.write(&[7; 777]);
        }
        let packets: Vec<usize> =
            std::iter::from_fn(|| queue.cut(1436).map(QueuedPayload::len)).collect();
        let (last, full) = packets.split_last().unwrap();
        assert!(full.iter().all(|size| *size == 1436));
        assert_eq!(full.len() * 1436 + last, 777_000);
    }

    #[test]
    fn data_handed_over_stay_where_they_are() {
        let mut queue = StreamQueue::default();
        let data = Bytes::from(vec![7; 10_000]);
        queue.write(b"before");
        queue.share(data.clone());
        queue.write(b"after");
        let payload = queue.cut(20_000).unwrap();
        let parts: Vec<&[u8]> = queue.get(payload).collect();
        assert_eq!(parts, [b"before".as_slice(), &data, b"after"]);
        assert_eq!(parts[1].as_ptr(), data.as_ptr());
        queue.release(payload);
        assert!(data.is_unique());
    }

    #[test]
    fn large_chunks_are_reused() {
        let mut queue = StreamQueue::default();
        let block = [7; 128 * 1024];
        let mut kept = VecDeque::new();
        for _ in 0..100 {
            queue.write(&block);
            kept.extend(std::iter::from_fn(|| queue.cut(1436)));
            // 64 KB stay unacknowledged.
            for part in kept.drain(..kept.len() - 45) {
                queue.release(part);
            }
            assert!(queue.pieces.len() + queue.spare.len() <= 5);
        }
        kept.drain(..).for_each(|part| queue.release(part));
        assert!(queue.spare.len() <= MOST_SPARE);
    }
}
