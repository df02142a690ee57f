//! Translates a script into frames, with the victim's expected reaction.

use weir_quic::frame::{AckFrequency, Close, EcnCounts, NewConnectionId, ResetStream, write};
use weir_quic::{Code, Direction, Level, Side, StreamId};

use super::peer::{Peer, issued_id};
use super::script::{Hostile, Number};

/// The largest variable-length integer.
const VARINT_MAX: u64 = (1 << 62) - 1;
/// More streams than any limit of the victim's allows.
const FAR_STREAM: u64 = 1 << 16;
/// The most that an honest peer may send on a stream, whatever the victim's application reads.
const HONEST_DATA: u64 = 8_000;
const MOST_FRAMES: usize = 40_000;

/// The expected reaction to a frame in a 1-RTT packet on an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Harmless,
    Violation(Code),
    /// Not determined.
    Unknown,
}

/// Writes a frame; returns the expected reaction.
pub(crate) fn write_frame(
    peer: &mut Peer,
    attacker: Side,
    level: Level,
    frame: &Hostile,
    out: &mut Vec<u8>,
) -> Verdict {
    if out.len() > MOST_FRAMES {
        return Verdict::Harmless;
    }
    let victim = attacker.other();
    let any_stream = |number: Number| StreamId::from_wire(number.value(0));
    match frame {
        Hostile::Padding(count) => write::padding(out, usize::from(*count).max(1)),
        Hostile::Ping => write::ping(out),
        Hostile::Ack {
            largest,
            ranges,
            delay,
            ecn,
        } => return write_ack(peer, level, (*largest, ranges, *delay, *ecn), out),
        Hostile::HonestAck => peer.write_ack(level, out),
        Hostile::Data {
            stream,
            length,
            fin,
        } => return write_data(peer, attacker, (*stream, *length, *fin), out),
        Hostile::Stream { .. } => return write_stream(attacker, frame, out),
        Hostile::Pieces { .. } => {
            write_pieces(attacker, frame, out);
            return Verdict::Unknown;
        }
        Hostile::Reset { stream, size } => {
            let reset = ResetStream {
                id: any_stream(*stream),
                code: 1,
                final_size: size.value(0),
            };
            write::reset_stream(out, &reset);
            return Verdict::Unknown;
        }
        Hostile::Stop { stream } => {
            write::stop_sending(out, any_stream(*stream), 2);
            return Verdict::Unknown;
        }
        Hostile::MaxData(limit) => write::max_data(out, limit.value(0)),
        Hostile::MaxStreamData { stream, limit } => {
            write::max_stream_data(out, any_stream(*stream), limit.value(0));
            return Verdict::Unknown;
        }
        Hostile::MaxStreams {
            unidirectional,
            limit,
        } => {
            let limit = limit.value(0);
            write::max_streams(out, direction(*unidirectional), limit);
            if limit > 1 << 60 {
                return Verdict::Violation(Code::FRAME_ENCODING_ERROR);
            }
        }
        Hostile::Blocked(limit) => write::data_blocked(out, limit.value(0)),
        Hostile::NewId {
            sequence,
            retire_prior_to,
            id,
        } => return write_new_id(peer, (*sequence, *retire_prior_to, *id), out),
        Hostile::Retire(sequence) => {
            let known = peer.ids.iter().map(|(sequence, _)| *sequence).max();
            let sequence = sequence.value(known.unwrap_or(0));
            write::retire_connection_id(out, sequence);
            return if sequence > known.unwrap_or(0) {
                Verdict::Violation(Code::PROTOCOL_VIOLATION)
            } else {
                Verdict::Unknown
            };
        }
        Hostile::Challenge(data) => write::path_challenge(out, data.to_be_bytes()),
        Hostile::Response(data) => write::path_response(out, data.to_be_bytes()),
        Hostile::HonestResponse => {
            if let Some((data, _)) = peer.challenges.last() {
                write::path_response(out, *data);
            }
        }
        Hostile::Crypto { offset, length } => {
            let offset = offset.value(peer.crypto_offset(level)).min(VARINT_MAX >> 1);
            write::crypto(out, offset, &vec![*length; usize::from(*length)]);
            return if offset >= 1 << 20 {
                Verdict::Violation(Code::CRYPTO_BUFFER_EXCEEDED)
            } else {
                Verdict::Unknown
            };
        }
        Hostile::NewToken(length) => {
            write::new_token(out, &vec![*length; usize::from(*length)]);
            match (victim, length) {
                (_, 0) => return Verdict::Violation(Code::FRAME_ENCODING_ERROR),
                (Side::Server, _) => return Verdict::Violation(Code::PROTOCOL_VIOLATION),
                (Side::Client, _) => {}
            }
        }
        Hostile::HandshakeDone => {
            write::handshake_done(out);
            if victim == Side::Server {
                return Verdict::Violation(Code::PROTOCOL_VIOLATION);
            }
        }
        Hostile::Datagram(length) => write::datagram(out, &vec![*length; usize::from(*length)]),
        Hostile::AckFrequency {
            sequence,
            threshold,
            delay,
            reordering,
        } => {
            let request = AckFrequency {
                sequence: sequence.value(0),
                threshold: threshold.value(0),
                max_ack_delay: delay.value(1_000),
                reordering_threshold: reordering.value(0),
            };
            write::ack_frequency(out, &request);
            return Verdict::Unknown;
        }
        Hostile::ImmediateAck => write::immediate_ack(out),
        Hostile::GoAway(streams) => {
            let streams = streams.value(0);
            write::go_away(out, streams);
            if streams > 1 << 60 {
                return Verdict::Violation(Code::FRAME_ENCODING_ERROR);
            }
            return Verdict::Unknown;
        }
        Hostile::Close { application, code } => {
            write_close(*application, code.value(0), out);
            return Verdict::Unknown;
        }
        Hostile::Type(number) => return write_type(number.value(0x20), out),
        Hostile::Bytes(bytes) => {
            out.extend_from_slice(&bytes[..bytes.len().min(MOST_FRAMES)]);
            return Verdict::Unknown;
        }
    }
    Verdict::Harmless
}

fn direction(unidirectional: bool) -> Direction {
    if unidirectional {
        Direction::Unidirectional
    } else {
        Direction::Bidirectional
    }
}

type AckFields<'a> = (
    Number,
    &'a [(u8, u8)],
    Number,
    Option<(Number, Number, Number)>,
);

fn write_ack(
    peer: &Peer,
    level: Level,
    (largest, ranges, delay, ecn): AckFields<'_>,
    out: &mut Vec<u8>,
) -> Verdict {
    let sent = peer.largest_received(level);
    let largest = largest.value(sent.unwrap_or(0));
    let mut end = Some(largest);
    let ranges = std::iter::once(&(0, 0))
        .chain(ranges)
        .map_while(|(gap, length)| {
            let last = end?;
            let start = last.saturating_sub(u64::from(*length));
            end = start.checked_sub(u64::from(*gap) + 2);
            Some(start..=last)
        });
    let ecn = ecn.map(|(ect0, ect1, ce)| EcnCounts {
        ect0: ect0.value(sent.unwrap_or(0)),
        ect1: ect1.value(0),
        ce: ce.value(0),
    });
    write::ack(out, ranges, delay.value(100), ecn, 1000);
    // The victim may have sent packets that this peer could not open, but not that many.
    if largest > sent.unwrap_or(0) + 10_000 {
        Verdict::Violation(Code::PROTOCOL_VIOLATION)
    } else {
        Verdict::Unknown
    }
}

fn write_data(
    peer: &mut Peer,
    attacker: Side,
    (stream, length, fin): (u8, u8, bool),
    out: &mut Vec<u8>,
) -> Verdict {
    let index = usize::from(stream) % peer.stream_offsets.len();
    let id = StreamId::new(attacker, Direction::Bidirectional, index as u64);
    let offset = &mut peer.stream_offsets[index];
    write::stream_header(out, id, *offset, Some(length.into()), fin);
    out.resize(out.len() + usize::from(length), length);
    let honest = *offset + u64::from(length) <= HONEST_DATA;
    *offset += u64::from(length);
    if fin {
        // Later data is not honest.
        *offset = offset.max(&mut (HONEST_DATA + 1)).to_owned();
    }
    if honest {
        Verdict::Harmless
    } else {
        Verdict::Unknown
    }
}

fn write_stream(attacker: Side, frame: &Hostile, out: &mut Vec<u8>) -> Verdict {
    let &Hostile::Stream {
        initiated_by_victim,
        unidirectional,
        index,
        offset,
        length,
        fin,
        without_length,
    } = frame
    else {
        return Verdict::Unknown;
    };
    let index = index.value(0) >> 2;
    let initiator = if initiated_by_victim {
        attacker.other()
    } else {
        attacker
    };
    let id = StreamId::new(initiator, direction(unidirectional), index);
    let length = usize::from(length);
    let offset = offset.value(0).min(VARINT_MAX - 255);
    let told = (!without_length).then_some(length);
    write::stream_header(out, id, offset, told, fin);
    out.resize(out.len() + length, 7);
    match (initiated_by_victim, unidirectional) {
        (true, true) => Verdict::Violation(Code::STREAM_STATE_ERROR),
        (true, false) if index >= FAR_STREAM => Verdict::Violation(Code::STREAM_STATE_ERROR),
        (false, _) if index >= FAR_STREAM => Verdict::Violation(Code::STREAM_LIMIT_ERROR),
        _ => Verdict::Unknown,
    }
}

fn write_pieces(attacker: Side, frame: &Hostile, out: &mut Vec<u8>) {
    let &Hostile::Pieces {
        stream,
        start,
        stride,
        length,
        count,
    } = frame
    else {
        return;
    };
    let id = StreamId::new(attacker, Direction::Bidirectional, u64::from(stream % 16));
    let mut offset = u64::from(start % 70_000);
    for _ in 0..count {
        let length = usize::from(length % 8);
        write::stream_header(out, id, offset, Some(length), false);
        out.resize(out.len() + length, 7);
        offset = offset.saturating_add_signed(stride.into());
    }
}

fn write_new_id(
    peer: &Peer,
    (sequence, retire_prior_to, id): (Number, Number, u8),
    out: &mut Vec<u8>,
) -> Verdict {
    let sequence = sequence.value(u64::from(id));
    let retire_prior_to = retire_prior_to.value(0);
    let frame = NewConnectionId {
        sequence,
        retire_prior_to,
        id: issued_id(peer, id),
        reset_token: [id; 16],
    };
    write::new_connection_id(out, &frame);
    if retire_prior_to > sequence {
        Verdict::Violation(Code::FRAME_ENCODING_ERROR)
    } else {
        Verdict::Unknown
    }
}

fn write_close(application: bool, code: u64, out: &mut Vec<u8>) {
    let reason = b"because";
    let close = if application {
        Close::Application { code, reason }
    } else {
        Close::Transport {
            code: Code::from_wire(code),
            frame_type: 0,
            reason,
        }
    };
    write::close(out, &close, out.len() + 100);
}

/// Writes a frame type without a body.
fn write_type(number: u64, out: &mut Vec<u8>) -> Verdict {
    let known = number < 0x20 || [0x30, 0x31, 0xaf].contains(&number);
    match number {
        0..0x40 => out.push(number as u8),
        0x40..0x4000 => out.extend((number as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend((number as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend((number | 0xc000_0000_0000_0000).to_be_bytes()),
    }
    if known {
        Verdict::Unknown
    } else {
        Verdict::Violation(Code::FRAME_ENCODING_ERROR)
    }
}
