//! Writes frames. Every function appends one frame to a packet.
//!
//! Frames of variable size (ACK, CRYPTO, NEW_TOKEN, STREAM, CONNECTION_CLOSE, DATAGRAM) take a
//! limit or have a function that returns their size. Any other frame fits in [`CONTROL_MAX_SIZE`]
//! bytes.

use std::ops::RangeInclusive;

use super::types;
use super::{AckFrequency, Close, EcnCounts, Frame, NewConnectionId, PathSecret, ResetStream};
use crate::codec::{Varints, put_varint, put_varints, varint_size};
use crate::{Direction, StreamId};

/// The size in bytes of the largest control frame, a PATH_KEY_ANSWER.
pub const CONTROL_MAX_SIZE: usize = 4 + 32 + 8 + 16;

/// The most ranges in a written ACK, since their count takes at most two bytes.
const MAX_ACK_RANGES: u64 = 0x4000;
/// The largest count of additional ranges in one byte.
const SHORT_RANGE_COUNT: u64 = 0x3f;

/// Writes PADDING of `count` bytes.
pub fn padding(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, types::PADDING as u8);
}

/// Writes PING.
pub fn ping(out: &mut Vec<u8>) {
    put_varint(out, types::PING);
}

/// Writes an ACK of `ranges`, from the largest number downwards with at least one missing number
/// between any two. `delay` is the encoded ACK delay.
///
/// The frame takes at most `limit` bytes: the oldest ranges are omitted to fit. Returns `false`,
/// without writing, if there is no range or not even the first one fits.
pub fn ack(
    out: &mut Vec<u8>,
    mut ranges: impl Iterator<Item = RangeInclusive<u64>>,
    delay: u64,
    ecn: Option<EcnCounts>,
    limit: usize,
) -> bool {
    let Some(first) = ranges.next() else {
        return false;
    };
    let (mut smallest, largest) = first.into_inner();
    let mut head = Varints::<40>::new();
    let mut tail = Varints::<24>::new();
    head.put(match ecn {
        Some(_) => types::ACK_ECN,
        None => types::ACK,
    });
    head.put(largest);
    head.put(delay);
    let count_offset = out.len() + head.as_bytes().len();
    head.put(0);
    head.put(largest.saturating_sub(smallest));
    if let Some(ecn) = ecn {
        tail.put(ecn.ect0);
        tail.put(ecn.ect1);
        tail.put(ecn.ce);
    }
    let mut size = head.as_bytes().len() + tail.as_bytes().len();
    if size > limit {
        return false;
    }
    out.extend_from_slice(head.as_bytes());

    let mut count = 0;
    for range in ranges {
        let (start, end) = range.into_inner();
        let gap = smallest.saturating_sub(end).saturating_sub(2);
        let length = end.saturating_sub(start);
        size += varint_size(gap) + varint_size(length);
        size += usize::from(count == SHORT_RANGE_COUNT);
        if size > limit || count + 1 == MAX_ACK_RANGES {
            break;
        }
        put_varint(out, gap);
        put_varint(out, length);
        smallest = start;
        count += 1;
    }
    put_range_count(out, count_offset, count);
    out.extend_from_slice(tail.as_bytes());
    true
}

/// Writes the count of additional ranges where one byte was reserved for it. An ACK of more than 64
/// ranges is rare, so its ranges are moved by a byte.
fn put_range_count(out: &mut Vec<u8>, offset: usize, count: u64) {
    out[offset] = count as u8;
    if count > SHORT_RANGE_COUNT {
        out.insert(offset, 0x40 | (count >> 8) as u8);
    }
}

/// Writes RESET_STREAM.
pub fn reset_stream(out: &mut Vec<u8>, frame: &ResetStream) {
    put_varint(out, types::RESET_STREAM);
    put_varint(out, frame.id.as_u64());
    put_varint(out, frame.code);
    put_varint(out, frame.final_size);
}

/// Writes STOP_SENDING.
pub fn stop_sending(out: &mut Vec<u8>, id: StreamId, code: u64) {
    put_varints(out, [types::STOP_SENDING, id.as_u64(), code]);
}

/// Writes CRYPTO.
pub fn crypto(out: &mut Vec<u8>, offset: u64, data: &[u8]) {
    put_varints(out, [types::CRYPTO, offset, data.len() as u64]);
    out.extend_from_slice(data);
}

/// Returns the size in bytes of a CRYPTO frame with `length` bytes of data, without the data.
pub const fn crypto_header_size(offset: u64, length: usize) -> usize {
    1 + varint_size(offset) + varint_size(length as u64)
}

/// Writes NEW_TOKEN. The token must not be empty.
pub fn new_token(out: &mut Vec<u8>, token: &[u8]) {
    put_varints(out, [types::NEW_TOKEN, token.len() as u64]);
    out.extend_from_slice(token);
}

/// Returns the size in bytes of a NEW_TOKEN frame with a token of `length` bytes.
pub const fn new_token_size(length: usize) -> usize {
    1 + varint_size(length as u64) + length
}

/// Writes STREAM without the data, which the caller appends: `length` bytes, or with `None` the
/// rest of the packet.
pub fn stream_header(
    out: &mut Vec<u8>,
    id: StreamId,
    offset: u64,
    length: Option<usize>,
    fin: bool,
) {
    let mut header = Varints::<32>::new();
    header.put(types::stream(offset > 0, length.is_some(), fin));
    header.put(id.as_u64());
    if offset > 0 {
        header.put(offset);
    }
    if let Some(length) = length {
        header.put(length as u64);
    }
    out.extend_from_slice(header.as_bytes());
}

/// Returns the size in bytes of [`stream_header`]. It never decreases with a larger length, so the
/// size for the whole remaining room bounds it for any data that fits.
pub const fn stream_header_size(id: StreamId, offset: u64, length: Option<usize>) -> usize {
    let offset = if offset > 0 { varint_size(offset) } else { 0 };
    let length = match length {
        Some(length) => varint_size(length as u64),
        None => 0,
    };
    1 + varint_size(id.as_u64()) + offset + length
}

/// Writes MAX_DATA: the connection's limit in bytes.
pub fn max_data(out: &mut Vec<u8>, limit: u64) {
    put_varints(out, [types::MAX_DATA, limit]);
}

/// Writes MAX_STREAM_DATA: the stream's limit in bytes.
pub fn max_stream_data(out: &mut Vec<u8>, id: StreamId, limit: u64) {
    put_varints(out, [types::MAX_STREAM_DATA, id.as_u64(), limit]);
}

/// Writes MAX_STREAMS: the most streams of that kind that the peer may open in total.
pub fn max_streams(out: &mut Vec<u8>, direction: Direction, limit: u64) {
    put_varints(out, [types::max_streams(direction), limit]);
}

/// Writes DATA_BLOCKED at a limit in bytes.
pub fn data_blocked(out: &mut Vec<u8>, limit: u64) {
    put_varints(out, [types::DATA_BLOCKED, limit]);
}

/// Writes STREAM_DATA_BLOCKED at a limit in bytes.
pub fn stream_data_blocked(out: &mut Vec<u8>, id: StreamId, limit: u64) {
    put_varints(out, [types::STREAM_DATA_BLOCKED, id.as_u64(), limit]);
}

/// Writes STREAMS_BLOCKED at a number of streams.
pub fn streams_blocked(out: &mut Vec<u8>, direction: Direction, limit: u64) {
    put_varints(out, [types::streams_blocked(direction), limit]);
}

/// Writes NEW_CONNECTION_ID. The ID must not be empty.
pub fn new_connection_id(out: &mut Vec<u8>, frame: &NewConnectionId) {
    put_varint(out, types::NEW_CONNECTION_ID);
    put_varint(out, frame.sequence);
    put_varint(out, frame.retire_prior_to);
    out.push(frame.id.len() as u8);
    out.extend_from_slice(frame.id.as_bytes());
    out.extend_from_slice(&frame.reset_token);
}

/// Writes RETIRE_CONNECTION_ID.
pub fn retire_connection_id(out: &mut Vec<u8>, sequence: u64) {
    put_varints(out, [types::RETIRE_CONNECTION_ID, sequence]);
}

/// Writes PATH_SECRET.
pub fn path_secret(out: &mut Vec<u8>, frame: &PathSecret) {
    put_varints(out, [types::PATH_SECRET, frame.lifetime]);
    out.extend_from_slice(&frame.refusal_token);
}

/// Writes PATH_KEY.
pub fn path_key(out: &mut Vec<u8>, key: &[u8; 32]) {
    put_varint(out, types::PATH_KEY);
    out.extend_from_slice(key);
}

/// Writes PATH_KEY_ANSWER.
pub fn path_key_answer(out: &mut Vec<u8>, key: &[u8; 32], secret: &PathSecret) {
    put_varint(out, types::PATH_KEY_ANSWER);
    out.extend_from_slice(key);
    put_varint(out, secret.lifetime);
    out.extend_from_slice(&secret.refusal_token);
}

/// Writes GOAWAY: the number of the peer's bidirectional streams that are served.
pub fn go_away(out: &mut Vec<u8>, streams: u64) {
    put_varints(out, [types::GO_AWAY, streams]);
}

/// Writes PATH_CHALLENGE.
pub fn path_challenge(out: &mut Vec<u8>, data: [u8; 8]) {
    put_varint(out, types::PATH_CHALLENGE);
    out.extend_from_slice(&data);
}

/// Writes PATH_RESPONSE.
pub fn path_response(out: &mut Vec<u8>, data: [u8; 8]) {
    put_varint(out, types::PATH_RESPONSE);
    out.extend_from_slice(&data);
}

/// Writes CONNECTION_CLOSE in at most `limit` bytes: the reason is cut to fit, in UTF-8 between two
/// characters. Returns `false`, without writing, if it does not fit without a reason.
pub fn close(out: &mut Vec<u8>, frame: &Close<'_>, limit: usize) -> bool {
    let (fixed_size, reason) = match *frame {
        Close::Transport {
            code,
            frame_type,
            reason,
        } => (
            1 + varint_size(code.as_u64()) + varint_size(frame_type),
            reason,
        ),
        Close::Application { code, reason } => (1 + varint_size(code), reason),
    };
    let room = limit.saturating_sub(fixed_size);
    let Some(room) = room.checked_sub(varint_size(room.min(reason.len()) as u64)) else {
        return false;
    };
    match *frame {
        Close::Transport {
            code, frame_type, ..
        } => {
            put_varints(out, [types::CLOSE_TRANSPORT, code.as_u64(), frame_type]);
        }
        Close::Application { code, .. } => {
            put_varints(out, [types::CLOSE_APPLICATION, code]);
        }
    }
    let reason = cut(reason, room);
    put_varint(out, reason.len() as u64);
    out.extend_from_slice(reason);
    true
}

/// Returns at most `limit` bytes of `text` without splitting UTF-8 characters. Other text is cut at
/// the limit or up to three bytes before.
fn cut(text: &[u8], limit: usize) -> &[u8] {
    let Some(next) = text.get(limit) else {
        return text;
    };
    let is_continuation = |byte: &u8| byte & 0xc0 == 0x80;
    let kept = &text[..limit];
    if !is_continuation(next) {
        return kept;
    }
    // The split character: up to two continuation bytes after the byte that leads it.
    let torn = kept
        .iter()
        .rev()
        .take(2)
        .take_while(|byte| is_continuation(byte))
        .count()
        + 1;
    &kept[..limit.saturating_sub(torn)]
}

/// Writes HANDSHAKE_DONE.
pub fn handshake_done(out: &mut Vec<u8>) {
    put_varint(out, types::HANDSHAKE_DONE);
}

/// Writes DATAGRAM with its length, so that other frames may follow.
pub fn datagram(out: &mut Vec<u8>, data: &[u8]) {
    put_varints(out, [types::DATAGRAM_WITH_LENGTH, data.len() as u64]);
    out.extend_from_slice(data);
}

/// Returns the size in bytes of a DATAGRAM frame with `length` bytes of data, without the data.
pub const fn datagram_header_size(length: usize) -> usize {
    1 + varint_size(length as u64)
}

/// Writes ACK_FREQUENCY.
pub fn ack_frequency(out: &mut Vec<u8>, frame: &AckFrequency) {
    put_varint(out, types::ACK_FREQUENCY);
    put_varint(out, frame.sequence);
    put_varint(out, frame.threshold);
    put_varint(out, frame.max_ack_delay);
    put_varint(out, frame.reordering_threshold);
}

/// Writes IMMEDIATE_ACK.
pub fn immediate_ack(out: &mut Vec<u8>) {
    put_varint(out, types::IMMEDIATE_ACK);
}

impl Frame<'_> {
    /// Appends the frame, without a size limit; PADDING as one byte, STREAM and DATAGRAM with their
    /// length.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Padding => padding(out, 1),
            Self::Ping => ping(out),
            Self::Ack(ref frame) => {
                ack(out, frame.ranges(), frame.delay, frame.ecn, usize::MAX);
            }
            Self::ResetStream(ref frame) => reset_stream(out, frame),
            Self::StopSending { id, code } => stop_sending(out, id, code),
            Self::Crypto { offset, data } => crypto(out, offset, data),
            Self::NewToken(token) => new_token(out, token),
            Self::Stream(frame) => {
                let length = Some(frame.data.len());
                stream_header(out, frame.id, frame.offset, length, frame.fin);
                out.extend_from_slice(frame.data);
            }
            Self::MaxData(limit) => max_data(out, limit),
            Self::MaxStreamData { id, limit } => max_stream_data(out, id, limit),
            Self::MaxStreams { direction, limit } => max_streams(out, direction, limit),
            Self::DataBlocked(limit) => data_blocked(out, limit),
            Self::StreamDataBlocked { id, limit } => stream_data_blocked(out, id, limit),
            Self::StreamsBlocked { direction, limit } => streams_blocked(out, direction, limit),
            Self::NewConnectionId(ref frame) => new_connection_id(out, frame),
            Self::RetireConnectionId(sequence) => retire_connection_id(out, sequence),
            Self::PathChallenge(data) => path_challenge(out, data),
            Self::PathResponse(data) => path_response(out, data),
            Self::Close(ref frame) => {
                close(out, frame, usize::MAX);
            }
            Self::HandshakeDone => handshake_done(out),
            Self::Datagram(data) => datagram(out, data),
            Self::AckFrequency(ref frame) => ack_frequency(out, frame),
            Self::ImmediateAck => immediate_ack(out),
            Self::PathSecret(frame) => path_secret(out, &frame),
            Self::PathKey(key) => path_key(out, &key),
            Self::PathKeyAnswer { key, secret } => path_key_answer(out, &key, &secret),
            Self::GoAway(streams) => go_away(out, streams),
        }
    }
}
