//! Limits: violations, updates, and blocked writers and openers.

use super::*;
use crate::Code;
use crate::frame::{ResetStream, Stream};

fn server() -> Streams {
    let mut streams = Streams::new(Side::Server, CONFIG);
    streams.set_peer_limits(&limits_of(&CONFIG));
    streams
}

fn peer_stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Bidirectional, index)
}

fn frame(id: StreamId, offset: u64, data: &[u8], fin: bool) -> Stream<'_> {
    Stream {
        id,
        offset,
        fin,
        data,
    }
}

fn reset(id: StreamId, final_size: u64) -> ResetStream {
    ResetStream {
        id,
        code: 0,
        final_size,
    }
}

#[track_caller]
fn assert_code<T: std::fmt::Debug>(result: Result<T, TransportError>, code: Code) {
    assert_eq!(result.unwrap_err().code, code);
}

#[test]
fn data_beyond_a_streams_limit_are_rejected() {
    let id = peer_stream(0);
    let limit = CONFIG.stream_window;
    assert!(
        server()
            .on_stream(&frame(id, limit - 1, b"x", false))
            .is_ok()
    );
    assert_code(
        server().on_stream(&frame(id, limit, b"x", false)),
        Code::FLOW_CONTROL_ERROR,
    );
    assert_code(
        server().on_stream(&frame(id, u64::MAX, b"x", false)),
        Code::FLOW_CONTROL_ERROR,
    );
    assert_code(
        server().on_reset_stream(&reset(id, limit + 1)),
        Code::FLOW_CONTROL_ERROR,
    );
}

#[test]
fn data_beyond_the_connections_limit_are_rejected() {
    let mut streams = server();
    let each = CONFIG.stream_window;
    for index in 0..CONFIG.max_data / each {
        streams
            .on_stream(&frame(peer_stream(index), each - 1, b"x", false))
            .unwrap();
    }
    let id = peer_stream(CONFIG.max_data / each);
    assert_code(
        streams.on_stream(&frame(id, 0, b"x", false)),
        Code::FLOW_CONTROL_ERROR,
    );
    assert_code(
        streams.on_reset_stream(&reset(id, 1)),
        Code::FLOW_CONTROL_ERROR,
    );
    // Known data counts once.
    assert!(
        streams
            .on_stream(&frame(peer_stream(0), 0, b"x", false))
            .is_ok()
    );
}

#[test]
fn a_changed_or_exceeded_final_size_is_an_error() {
    let id = peer_stream(0);
    let with = |first: Stream<'_>| {
        let mut streams = server();
        streams.on_stream(&first).unwrap();
        streams
    };
    let ended = frame(id, 0, b"0123456789", true);
    let open = frame(id, 0, b"0123456789", false);
    let error = Code::FINAL_SIZE_ERROR;
    assert_code(with(ended).on_stream(&frame(id, 10, b"x", false)), error);
    assert_code(with(ended).on_stream(&frame(id, 0, b"x", true)), error);
    assert_code(with(ended).on_reset_stream(&reset(id, 9)), error);
    assert_code(with(ended).on_reset_stream(&reset(id, 11)), error);
    assert_code(with(open).on_stream(&frame(id, 0, b"x", true)), error);
    assert_code(with(open).on_reset_stream(&reset(id, 9)), error);
    assert!(with(ended).on_stream(&ended).is_ok());
    assert!(with(ended).on_reset_stream(&reset(id, 10)).is_ok());

    let mut streams = with(open);
    streams.on_reset_stream(&reset(id, 20)).unwrap();
    assert_code(streams.on_stream(&frame(id, 20, b"x", false)), error);
}

#[test]
fn frames_for_the_wrong_stream_direction_are_an_error() {
    let mut streams = server();
    let own = streams.open(Unidirectional).unwrap();
    let others = StreamId::new(Side::Client, Unidirectional, 0);
    let error = Code::STREAM_STATE_ERROR;
    assert_code(streams.on_stream(&frame(own, 0, b"", false)), error);
    assert_code(streams.on_reset_stream(&reset(own, 0)), error);
    assert_code(streams.on_stream_data_blocked(own), error);
    assert_code(streams.on_stop_sending(others, 0), error);
    assert_code(streams.on_max_stream_data(others, 0), error);
}

#[test]
fn frames_for_unopened_streams_are_an_error() {
    let mut streams = server();
    let error = Code::STREAM_STATE_ERROR;
    let own = StreamId::new(Side::Server, Bidirectional, 0);
    assert_code(streams.on_stream(&frame(own, 0, b"", false)), error);
    assert_code(streams.on_reset_stream(&reset(own, 0)), error);
    assert_code(streams.on_stop_sending(own, 0), error);
    assert_code(streams.on_max_stream_data(own, 0), error);
    let own = StreamId::new(Side::Server, Unidirectional, 0);
    assert_code(streams.on_stop_sending(own, 0), error);
    assert_code(streams.on_max_stream_data(own, 0), error);
}

#[test]
fn streams_beyond_the_limit_are_rejected() {
    let mut streams = server();
    let error = Code::STREAM_LIMIT_ERROR;
    let id = peer_stream(CONFIG.max_bidirectional);
    assert_code(streams.on_stream(&frame(id, 0, b"", false)), error);
    assert_code(streams.on_reset_stream(&reset(id, 0)), error);
    assert_code(streams.on_stop_sending(id, 0), error);
    assert_code(streams.on_max_stream_data(id, 0), error);
    assert_code(streams.on_stream_data_blocked(id), error);
    let last = peer_stream(CONFIG.max_bidirectional - 1);
    assert!(streams.on_max_stream_data(last, 0).is_ok());
}

#[test]
fn a_receive_window_moves_when_half_of_it_was_read() {
    let mut pair = Pair::new(CONFIG);
    let id = pair.sides[0].open(Unidirectional).unwrap();
    let window = CONFIG.stream_window as usize;
    assert_eq!(
        pair.sides[0].write(id, &vec![0; 2 * window]),
        Ok(2 * window)
    );
    pair.run();
    assert!(pair.sides[0].send_limited());
    assert_eq!(pair.sides[0].pending_bytes(), 0);
    pair.sides[1].accept(Unidirectional);
    let mut half = vec![0; window / 2 - 1];
    assert_eq!(pair.sides[1].read_into(id, &mut half), Ok(Some(half.len())));
    assert!(!pair.sides[1].wants_to_send());
    assert_eq!(pair.sides[1].read_into(id, &mut [0]), Ok(Some(1)));
    let update = pair.send(1, 1200).unwrap();
    assert!(!pair.sides[1].wants_to_send());
    pair.lose(1, &update);
    let update = pair.send(1, 1200).unwrap();
    pair.deliver(1, &update).unwrap();
    assert_eq!(pair.sides[0].pending_bytes(), CONFIG.stream_window / 2);
    assert!(!pair.sides[0].send_limited());
}

#[test]
fn blocked_frames_are_sent_once_for_a_limit() {
    let mut pair = Pair::new(StreamsConfig {
        max_data: 1000,
        ..CONFIG
    });
    let id = pair.sides[0].open(Unidirectional).unwrap();
    pair.sides[0].write(id, &[0; 2000]).unwrap();
    let mut blocked = 0;
    while let Some(packet) = pair.send(0, 1200) {
        blocked += Frames::new(&packet.payload)
            .filter(|frame| *frame == Ok(Frame::DataBlocked(1000)))
            .count();
        pair.deliver(0, &packet).unwrap();
    }
    assert_eq!(blocked, 1);
    pair.sides[0].on_max_data(1000);
    assert!(!pair.sides[0].wants_to_send());
    pair.sides[0].on_max_data(1001);
    assert_eq!(pair.sides[0].pending_bytes(), 1);
}

#[test]
fn a_blocked_open_succeeds_after_a_stream_closes() {
    let mut pair = Pair::new(CONFIG);
    let ids: Vec<_> = std::iter::from_fn(|| pair.sides[0].open(Unidirectional)).collect();
    assert_eq!(ids.len() as u64, CONFIG.max_unidirectional);
    let blocked = pair.send(0, 1200).unwrap();
    assert_eq!(
        Frames::new(&blocked.payload).next(),
        Some(Ok(Frame::StreamsBlocked {
            direction: Unidirectional,
            limit: CONFIG.max_unidirectional
        }))
    );
    pair.sides[0].finish(ids[0]).unwrap();
    pair.run();
    assert_eq!(pair.events(0), [StreamEvent::Finished(ids[0])]);
    pair.sides[1].accept(Unidirectional).unwrap();
    assert_eq!(pair.sides[1].read(ids[0], 1), Ok(None));
    pair.run();
    assert_eq!(pair.events(0), [StreamEvent::Available(Unidirectional)]);
    assert!(pair.sides[0].open(Unidirectional).is_some());
    assert_eq!(pair.sides[0].open(Unidirectional), None);
}

#[test]
fn a_blocked_write_succeeds_after_acknowledgments() {
    let mut pair = Pair::new(CONFIG);
    let id = pair.sides[0].open(Unidirectional).unwrap();
    let capacity = CONFIG.send_buffer as usize;
    assert_eq!(
        pair.sides[0].write(id, &vec![0; capacity + 1]),
        Ok(capacity)
    );
    assert_eq!(pair.sides[0].write(id, b"x"), Err(WriteError::Blocked));
    assert_eq!(pair.sides[0].write(id, b""), Ok(0));
    let mut acked = 0;
    while pair.events(0).is_empty() {
        let packet = pair.send(0, 1200).unwrap();
        acked += packet.payload.len();
        pair.ack(0, &packet);
    }
    assert!(acked >= capacity / 8, "woken after {acked} bytes");
    assert!(pair.sides[0].write(id, b"x").is_ok());
}

#[test]
fn a_frame_with_too_many_gaps_is_refused_without_side_effects() {
    let config = StreamsConfig {
        max_data: 1 << 20,
        stream_window: 1 << 20,
        ..CONFIG
    };
    let mut streams = Streams::new(Side::Server, config);
    let id = peer_stream(0);
    for index in 1..=receive_buffer::MAX_GAPS as u64 {
        let received = streams.on_stream(&frame(id, 3 * index, b"x", false));
        assert_eq!(received, Ok(Received::Buffered));
    }
    let next = 3 * (receive_buffer::MAX_GAPS as u64 + 1);
    let window = streams.window.received;
    let refused = streams.on_stream(&frame(id, next, b"x", true));
    assert_eq!(refused, Ok(Received::Refused));
    assert_eq!(streams.window.received, window);
    assert_eq!(
        streams.on_stream(&frame(id, 0, b"xxxx", false)),
        Ok(Received::Buffered)
    );
    let again = streams.on_stream(&frame(id, next, b"x", false));
    assert_eq!(again, Ok(Received::Buffered));
}

#[test]
fn skipped_data_are_counted_and_credited() {
    let mut pair = Pair::new(CONFIG);
    let id = pair.sides[0].open(Unidirectional).unwrap();
    let most = CONFIG.stream_window;
    for round in 1..=3 {
        assert_eq!(
            pair.sides[0].write(id, &vec![7; most as usize]),
            Ok(most as usize)
        );
        pair.run();
        let (skipped, events) = match round {
            1 => (
                pair.sides[1].accept(Unidirectional),
                StreamEvent::Opened(Unidirectional),
            ),
            _ => (Some(id), StreamEvent::Readable(id)),
        };
        assert_eq!((skipped, pair.events(1)), (Some(id), vec![events]));
        let skipped = Skipped {
            bytes: most,
            has_ended: false,
        };
        assert_eq!(pair.sides[1].skip(id), Ok(skipped));
        pair.run();
    }
    pair.sides[0].finish(id).unwrap();
    pair.run();
    let end = Skipped {
        bytes: 0,
        has_ended: true,
    };
    assert_eq!(pair.sides[1].skip(id), Ok(end));
    assert_eq!(pair.sides[1].skip(id), Err(ReadError::Closed));
}
