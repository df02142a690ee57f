//! Comparison of the buffers with naive models.

use bytes::Bytes;
use proptest::prelude::*;

use super::super::chunk::{CHUNK_SIZE, ChunkPool};
use super::super::receive_buffer::{MAX_GAPS, ReceiveBuffer};
use super::super::send_buffer::SendBuffer;
use super::*;
use crate::ranges::RangeSet;

fn stream_id() -> StreamId {
    StreamId::new(Side::Client, Unidirectional, 0)
}

#[derive(Clone, Debug)]
enum Receive {
    /// Data at an offset relative to the end of the data in order.
    Insert(i64, usize),
    Read(usize),
    ReadInto(usize),
}

fn receive_op(spread: i64, longest: usize) -> impl Strategy<Value = Receive> {
    prop_oneof![
        2 => (-100..1i64, 0..longest).prop_map(|(at, length)| Receive::Insert(at, length)),
        5 => (-spread / 4..spread, 0..longest).prop_map(|(at, length)| Receive::Insert(at, length)),
        1 => (0..2 * longest).prop_map(Receive::Read),
        1 => (0..2 * longest).prop_map(Receive::ReadInto),
    ]
}

fn check_receive(ops: &[Receive]) {
    let (mut buffer, mut pool) = (ReceiveBuffer::default(), ChunkPool::default());
    let (mut arrived, mut read) = (RangeSet::new(), 0);
    let id = stream_id();
    for op in ops {
        match *op {
            Receive::Insert(at, length) => {
                let offset = buffer.ordered.saturating_add_signed(at);
                let data = pattern_bytes(id, offset, length);
                let received = buffer.insert(offset, &data, None, &mut pool);
                assert_eq!(received, Received::Buffered);
                arrived.insert(offset..offset + length as u64);
            }
            Receive::Read(max) => {
                if let Some(bytes) = buffer.read(max, &mut pool) {
                    assert_eq!(bytes, pattern_bytes(id, read, bytes.len()));
                    assert!(bytes.len() <= max);
                    read += bytes.len() as u64;
                } else {
                    assert_eq!(buffer.readable(), 0);
                }
            }
            Receive::ReadInto(max) => {
                let mut out = vec![0; max];
                let expected = buffer.readable().min(max as u64) as usize;
                assert_eq!(buffer.read_into(&mut out, &mut pool), expected);
                assert_eq!(out[..expected], pattern_bytes(id, read, expected));
                read += expected as u64;
            }
        }
        let ordered = arrived
            .first()
            .filter(|range| range.start == 0)
            .map_or(0, |range| range.end);
        assert_eq!((buffer.ordered, buffer.read_offset()), (ordered, read));
        buffer.check(&arrived);
    }
    buffer.discard(&mut pool);
    assert_eq!(pool.in_use, 0);
}

#[derive(Clone, Debug)]
enum Send {
    Write(usize),
    Give(usize),
    Copy(u64, usize),
    Ack(u64, u64),
}

fn send_op() -> impl Strategy<Value = Send> {
    prop_oneof![
        3 => (0..5000usize).prop_map(Send::Write),
        1 => (0..100_000usize).prop_map(Send::Write),
        3 => (0..5000usize).prop_map(Send::Give),
        5 => (any::<u64>(), 0..3000usize).prop_map(|(at, length)| Send::Copy(at, length)),
        5 => (0..20_000u64, 0..10_000u64).prop_map(|(at, length)| Send::Ack(at, length)),
    ]
}

proptest! {
    #[test]
    fn small_pieces_are_reassembled(
        ops in prop::collection::vec(receive_op(500, 100), 0..200),
    ) {
        check_receive(&ops);
    }

    #[test]
    fn large_pieces_are_reassembled(
        ops in prop::collection::vec(receive_op(200_000, 30_000), 0..60),
    ) {
        check_receive(&ops);
    }

    #[test]
    fn data_are_held_until_they_are_acknowledged(ops in prop::collection::vec(send_op(), 0..100)) {
        let (mut buffer, mut pool) = (SendBuffer::default(), ChunkPool::default());
        let mut acked = RangeSet::new();
        let id = stream_id();
        for op in ops {
            let first = acked.first().filter(|range| range.start == 0).map_or(0, |range| range.end);
            match op {
                Send::Write(length) => {
                    buffer.write(&pattern_bytes(id, buffer.end, length), &mut pool);
                }
                Send::Give(length) => {
                    let data = pattern_bytes(id, buffer.end, length);
                    buffer.give(Bytes::from(data), &mut pool);
                }
                Send::Copy(at, length) if buffer.held() > 0 => {
                    let offset = first + at % buffer.held();
                    let length = length.min((buffer.end - offset) as usize);
                    let mut out = Vec::new();
                    buffer.copy(offset, length, &mut out);
                    prop_assert_eq!(out, pattern_bytes(id, offset, length));
                }
                Send::Copy(..) => {}
                Send::Ack(at, length) => {
                    let offset = (first + at).saturating_sub(1000).min(buffer.end);
                    let length = length.min(buffer.end - offset);
                    buffer.acknowledge(offset, length, &mut pool);
                    acked.insert(offset..offset + length);
                }
            }
            let first = acked.first().filter(|range| range.start == 0).map_or(0, |range| range.end);
            prop_assert_eq!(buffer.held(), buffer.end - first);
            let mut unacked = RangeSet::new();
            buffer.collect_unacked(0..buffer.end, &mut unacked);
            prop_assert_eq!(unacked.covered() + acked.covered(), buffer.end);
            prop_assert!(unacked.iter().all(|range| acked.overlapping(range).next().is_none()));
        }
        buffer.discard(&mut pool);
        prop_assert_eq!(pool.in_use, 0);
    }
}

#[test]
fn packets_in_order_merge_into_chunks() {
    let (mut buffer, mut pool) = (ReceiveBuffer::default(), ChunkPool::default());
    let data = pattern_bytes(stream_id(), 0, 1 << 20);
    for (index, packet) in data.chunks(1452).enumerate() {
        buffer.insert(index as u64 * 1452, packet, None, &mut pool);
    }
    let mut reads = 0;
    while buffer.read(usize::MAX, &mut pool).is_some() {
        reads += 1;
    }
    assert!(reads <= (1 << 20) / CHUNK_SIZE + 6, "{reads} reads");
    assert_eq!(pool.in_use, 0);
}

#[test]
fn packets_behind_a_gap_or_in_reverse_order_merge() {
    for reverse in [false, true] {
        let (mut buffer, mut pool) = (ReceiveBuffer::default(), ChunkPool::default());
        let data = pattern_bytes(stream_id(), 0, 1 << 20);
        let mut packets: Vec<_> = data.chunks(100).enumerate().skip(1).collect();
        if reverse {
            packets.reverse();
        }
        for (index, packet) in packets {
            buffer.insert(index as u64 * 100, packet, None, &mut pool);
        }
        assert!(buffer.segment_count() <= 260, "{}", buffer.segment_count());
        buffer.insert(0, &data[..100], None, &mut pool);
        assert_eq!(buffer.readable(), 1 << 20);
        let mut out = vec![0; 1 << 20];
        assert_eq!(buffer.read_into(&mut out, &mut pool), 1 << 20);
        assert!(out == data);
    }
}

#[test]
fn single_bytes_merge_once_the_gaps_are_filled() {
    let (mut buffer, mut pool) = (ReceiveBuffer::default(), ChunkPool::default());
    for offset in (1..2 * MAX_GAPS as u64).step_by(2) {
        assert_eq!(
            buffer.insert(offset, b"x", None, &mut pool),
            Received::Buffered
        );
    }
    for offset in (2..2 * MAX_GAPS as u64).step_by(2) {
        assert_eq!(
            buffer.insert(offset, b"x", None, &mut pool),
            Received::Buffered
        );
    }
    assert!(buffer.segment_count() <= 3, "{}", buffer.segment_count());
}

#[test]
fn short_streams_take_little_memory() {
    let (mut buffer, mut pool) = (ReceiveBuffer::default(), ChunkPool::default());
    buffer.insert(0, b"hello", Some(5), &mut pool);
    assert!(buffer.capacity() < 64, "{}", buffer.capacity());
    let mut buffer = ReceiveBuffer::default();
    buffer.insert(0, b"hello", None, &mut pool);
    assert!(buffer.capacity() <= 16 * 1024, "{}", buffer.capacity());
}
