//! The data that an application has written to a stream, until it is acknowledged.
//!
//! Chunks hold the payloads of whole packets, each preceded by room for its header. Packets can
//! thus be sent in place, and nothing is copied between writing and sending. Acknowledgments are
//! cumulative, so chunks are freed in the order in which they were written. Large ones are reused,
//! because allocating them is expensive.

use std::collections::VecDeque;

use crate::packet::HEADER_LENGTH;

/// The largest chunk in bytes.
const LARGEST: usize = 64 * 1024;
/// Smaller chunks are not kept for reuse.
const WORTH_KEEPING: usize = LARGEST / 2;
/// Maximum number of chunks kept while data is unacknowledged.
const MOST_SPARE: usize = 16;

/// The location of a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedPayload {
    /// The chunk number, counted from the first chunk ever.
    chunk: u64,
    begin: usize,
    end: usize,
}

impl QueuedPayload {
    pub(crate) fn len(self) -> usize {
        self.end - self.begin
    }
}

/// Consecutive packets in a chunk, with their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketRun {
    chunk: u64,
    begin: usize,
    end: usize,
    /// Size of the first packet, header included.
    pub(crate) segment: usize,
}

impl PacketRun {
    /// Returns the size of all packets in bytes.
    pub(crate) fn len(self) -> usize {
        self.end - self.begin
    }
}

/// Memory for a number of packets.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    /// The payload size per packet.
    payload: usize,
    /// The capacity in bytes: whole packets.
    size: usize,
}

impl Chunk {
    fn stride(&self) -> usize {
        HEADER_LENGTH + self.payload
    }

    fn is_full(&self) -> bool {
        self.bytes.len() == self.size
    }

    /// Writes as much of `data` as fits into one packet. Returns the rest.
    fn write<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        let mut used = self.bytes.len() % self.stride();
        if used == 0 {
            self.bytes.extend_from_slice(&[0; HEADER_LENGTH]);
            used = HEADER_LENGTH;
        }
        let (now, later) = data.split_at(data.len().min(self.stride() - used));
        self.bytes.extend_from_slice(now);
        later
    }

    /// Returns the start and end of the payload of the packet at `at`.
    fn part(&self, at: usize, payload: usize) -> (usize, usize) {
        let begin = at + HEADER_LENGTH.saturating_sub(at % self.stride());
        let end_of_packet = (at / self.stride() + 1) * self.stride();
        let end = end_of_packet.min(begin + payload).min(self.bytes.len());
        (begin, end.max(begin))
    }

    /// Returns whether there is room for a header before `begin`.
    fn is_behind_header(&self, begin: usize) -> bool {
        begin % self.stride() == HEADER_LENGTH
    }
}

#[derive(Debug, Default)]
pub(crate) struct StreamQueue {
    /// No chunk but the last one is empty.
    chunks: VecDeque<Chunk>,
    /// The number of the first chunk.
    first: u64,
    /// The number of the chunk to cut next, and the position in it.
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

    /// Writes `data` for packets with this payload size.
    pub(crate) fn write(&mut self, mut data: &[u8], payload: usize) {
        self.length += data.len();
        while !data.is_empty() {
            let chunk = match self.chunks.back_mut() {
                Some(chunk) if !chunk.is_full() => chunk,
                _ => self.add(data.len(), payload),
            };
            data = chunk.write(data);
        }
    }

    /// Adds a chunk for `wanted` bytes, up to the largest size.
    fn add(&mut self, wanted: usize, payload: usize) -> &mut Chunk {
        let payload = payload.max(1);
        let stride = HEADER_LENGTH + payload;
        let packets = wanted.div_ceil(payload).min(LARGEST / stride).max(1);
        let size = packets * stride;
        // Only of the same size: a connection changes its packet size at most once.
        let spare = self.spare.pop_if(|spare| spare.capacity() == size);
        self.chunks.push_back(Chunk {
            bytes: spare.unwrap_or_else(|| Vec::with_capacity(size)),
            payload,
            size,
        });
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }

    /// Returns the payload of the next packet, in bytes.
    pub(crate) fn next_size(&self, payload: usize) -> usize {
        self.next_part(payload).map_or(0, QueuedPayload::len)
    }

    fn next_part(&self, payload: usize) -> Option<QueuedPayload> {
        let (number, at) = self.next;
        let (begin, end) = self.chunk(number)?.part(at, payload);
        (begin < end).then_some(QueuedPayload {
            chunk: number,
            begin,
            end,
        })
    }

    fn chunk(&self, number: u64) -> Option<&Chunk> {
        let index = number.checked_sub(self.first)?;
        self.chunks.get(usize::try_from(index).ok()?)
    }

    /// Cuts the payload of the next packet; `None` if nothing is left.
    pub(crate) fn cut(&mut self, payload: usize) -> Option<QueuedPayload> {
        let part = self.next_part(payload)?;
        self.length -= part.len();
        self.next.1 = part.end;
        self.leave_if_full();
        Some(part)
    }

    /// Advances to the next chunk if this one is full and completely cut.
    fn leave_if_full(&mut self) {
        let (number, at) = self.next;
        let chunk = self.chunk(number);
        if chunk.is_some_and(|chunk| chunk.is_full() && at == chunk.size) {
            self.next = (number + 1, 0);
        }
    }

    /// Returns the payload; empty if it has been released.
    pub(crate) fn get(&self, part: QueuedPayload) -> &[u8] {
        let chunk = self.chunk(part.chunk);
        let bytes = chunk.and_then(|chunk| chunk.bytes.get(part.begin..part.end));
        bytes.unwrap_or_default()
    }

    /// Returns whether the next packet can be sent in place, as the next one of `run` if given.
    pub(crate) fn can_extend(&self, run: Option<PacketRun>, payload: usize) -> bool {
        let (Some(part), Some(chunk)) = (self.next_part(payload), self.chunk(self.next.0)) else {
            return false;
        };
        chunk.is_behind_header(part.begin)
            && run.is_none_or(|run| {
                (run.chunk, run.end + HEADER_LENGTH) == (part.chunk, part.begin)
                    && run.segment >= HEADER_LENGTH + part.len()
            })
    }

    /// Writes a packet's header before its payload, after [`Self::can_extend`] has returned true.
    /// Returns the run including that packet.
    pub(crate) fn extend(
        &mut self,
        run: Option<PacketRun>,
        part: QueuedPayload,
        header: [u8; HEADER_LENGTH],
    ) -> Option<PacketRun> {
        let index = usize::try_from(part.chunk.checked_sub(self.first)?).ok()?;
        let begin = part.begin.checked_sub(HEADER_LENGTH)?;
        let chunk = self.chunks.get_mut(index)?;
        *chunk.bytes.get_mut(begin..)?.first_chunk_mut()? = header;
        let new = PacketRun {
            chunk: part.chunk,
            begin,
            end: part.end,
            segment: HEADER_LENGTH + part.len(),
        };
        Some(PacketRun {
            end: part.end,
            ..run.unwrap_or(new)
        })
    }

    /// Returns the packets of a run as sent.
    pub(crate) fn run(&self, run: PacketRun) -> &[u8] {
        let chunk = self.chunk(run.chunk);
        let bytes = chunk.and_then(|chunk| chunk.bytes.get(run.begin..run.end));
        bytes.unwrap_or_default()
    }

    /// Releases this part and all parts cut before it.
    pub(crate) fn release(&mut self, part: QueuedPayload) {
        while self.first < part.chunk {
            self.free_first();
        }
        let is_cut = self.next.0 > self.first;
        if is_cut
            && self
                .chunks
                .front()
                .is_some_and(|chunk| chunk.bytes.len() == part.end)
        {
            self.free_first();
        }
        if self.chunks.is_empty() {
            self.spare = Vec::new();
        }
    }

    fn free_first(&mut self) {
        self.first += 1;
        let Some(chunk) = self.chunks.pop_front() else {
            return;
        };
        let mut bytes = chunk.bytes;
        if bytes.capacity() >= WORTH_KEEPING && self.spare.len() < MOST_SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_data_is_split_and_kept_until_released(
            steps in prop::collection::vec((0..200_000_usize, 0..30_usize, 0..30_usize), 1..20),
            payload in 1..9000_usize,
        ) {
            let (mut queue, mut written) = (StreamQueue::default(), Vec::new());
            // Parts, and their offset in the written data.
            let mut kept: VecDeque<(QueuedPayload, usize)> = VecDeque::new();
            let mut cut = 0;
            for (length, packets, released) in steps {
                let data: Vec<u8> = (0..length).map(|at| ((written.len() + at) * 31 / 7) as u8).collect();
                queue.write(&data, payload);
                written.extend(data);
                for _ in 0..packets {
                    let size = queue.next_size(payload);
                    let part = queue.cut(payload);
                    prop_assert_eq!(part.map_or(0, QueuedPayload::len), size);
                    prop_assert_eq!(size == 0, cut == written.len());
                    kept.extend(part.map(|part| (part, cut)));
                    cut += size;
                }
                // Data sent in place equals the data that would have been copied.
                let mut run = None;
                while queue.can_extend(run, payload) {
                    let part = queue.cut(payload).unwrap();
                    run = queue.extend(run, part, [9; HEADER_LENGTH]);
                    kept.push_back((part, cut));
                    cut += part.len();
                }
                if let Some(run) = run {
                    let packets: Vec<&[u8]> = queue.run(run).chunks(run.segment).collect();
                    for (packet, (part, _)) in packets.iter().rev().zip(kept.iter().rev()) {
                        let (header, payload) = packet.split_at(HEADER_LENGTH);
                        prop_assert!(header == [9; HEADER_LENGTH] && payload == queue.get(*part));
                    }
                }
                for (part, _) in kept.drain(..released.min(kept.len())) {
                    queue.release(part);
                }
                for (part, begin) in &kept {
                    prop_assert!(queue.get(*part) == &written[*begin..begin + part.len()]);
                }
                prop_assert_eq!(queue.len(), written.len() - cut);
            }
            for (part, _) in kept {
                queue.release(part);
            }
            while let Some(part) = queue.cut(payload) {
                prop_assert!(queue.get(part) == &written[cut..cut + part.len()]);
                cut += part.len();
                queue.release(part);
            }
            prop_assert_eq!(cut, written.len());
            prop_assert!(queue.chunks.len() <= 1);
        }
    }

    #[test]
    fn all_packets_but_the_last_are_full() {
        let mut queue = StreamQueue::default();
        for _ in 0..1000 {
            queue.write(&[7; 777], 1436);
        }
        let packets: Vec<usize> =
            std::iter::from_fn(|| queue.cut(1436).map(QueuedPayload::len)).collect();
        let (last, full) = packets.split_last().unwrap();
        assert!(full.iter().all(|size| *size == 1436));
        assert_eq!(full.len() * 1436 + last, 777_000);
    }

    #[test]
    fn large_chunks_are_reused() {
        let mut queue = StreamQueue::default();
        let block = [7; 128 * 1024];
        let mut kept = VecDeque::new();
        for _ in 0..100 {
            queue.write(&block, 1436);
            kept.extend(std::iter::from_fn(|| queue.cut(1436)));
            // 64 KB stay unacknowledged.
            for part in kept.drain(..kept.len() - 45) {
                queue.release(part);
            }
            assert!(queue.chunks.len() + queue.spare.len() <= 5);
        }
        kept.drain(..).for_each(|part| queue.release(part));
        assert!(queue.spare.len() <= MOST_SPARE);
    }
}
