//! The state machines of RFC 9000, section 3, from the outside.

use bytes::Bytes;

use super::*;

fn one_stream(direction: Direction) -> (Pair, StreamId) {
    let mut pair = Pair::new(CONFIG);
    let id = pair.sides[0].open(direction).unwrap();
    (pair, id)
}

#[test]
fn a_request_and_its_response_are_exchanged() {
    let (mut pair, id) = one_stream(Bidirectional);
    assert_eq!(pair.sides[0].write(id, b"request"), Ok(7));
    pair.sides[0].finish(id).unwrap();
    pair.run();
    assert_eq!(pair.events(1), [StreamEvent::Opened(Bidirectional)]);
    assert_eq!(pair.events(0), [StreamEvent::Finished(id)]);

    assert_eq!(pair.sides[1].accept(Bidirectional), Some(id));
    assert_eq!(pair.sides[1].accept(Bidirectional), None);
    assert_eq!(
        read_all(&mut pair.sides[1], id),
        (b"request".to_vec(), Ok(()))
    );
    assert_eq!(pair.sides[1].read(id, 1), Err(ReadError::Closed));

    assert_eq!(pair.sides[0].read(id, 1), Err(ReadError::Blocked));
    let mut response = Bytes::from(vec![7; 3000]);
    assert_eq!(pair.sides[1].write_bytes(id, &mut response), Ok(3000));
    pair.sides[1].finish(id).unwrap();
    pair.run();
    assert_eq!(pair.events(0), [StreamEvent::Readable(id)]);
    let mut out = [0; 4000];
    assert_eq!(pair.sides[0].read_into(id, &mut out), Ok(Some(3000)));
    assert_eq!(pair.sides[0].read_into(id, &mut out), Ok(None));
    assert!(pair.sides.iter().all(Streams::is_idle));
    assert_eq!(pair.sides[0].write(id, b"x"), Err(WriteError::Closed));
}

#[test]
fn an_empty_stream_is_delivered() {
    let (mut pair, id) = one_stream(Unidirectional);
    pair.sides[0].finish(id).unwrap();
    assert_eq!(pair.sides[0].finish(id), Err(WriteError::Closed));
    pair.run();
    assert_eq!(pair.sides[1].accept(Unidirectional), Some(id));
    assert_eq!(pair.sides[1].read(id, 10), Ok(None));
    assert!(pair.sides.iter().all(Streams::is_idle));
}

#[test]
fn a_lost_fin_is_retransmitted() {
    let (mut pair, id) = one_stream(Unidirectional);
    pair.sides[0].write(id, b"data").unwrap();
    let data = pair.send(0, 1200).unwrap();
    pair.sides[0].finish(id).unwrap();
    let end = pair.send(0, 1200).unwrap();
    pair.lose(0, &end);
    pair.lose(0, &data);
    pair.run();
    pair.sides[1].accept(Unidirectional);
    assert_eq!(read_all(&mut pair.sides[1], id), (b"data".to_vec(), Ok(())));
    assert_eq!(pair.events(0), [StreamEvent::Finished(id)]);
}

#[test]
fn a_reset_discards_data_and_is_reported_once() {
    let (mut pair, id) = one_stream(Unidirectional);
    pair.sides[0].write(id, &[1; 5000]).unwrap();
    let first = pair.send(0, 1200).unwrap();
    pair.deliver(0, &first).unwrap();
    pair.sides[0].reset(id, 42).unwrap();
    assert_eq!(pair.sides[0].reset(id, 43), Err(WriteError::Closed));
    assert_eq!(pair.sides[0].write(id, b"x"), Err(WriteError::Closed));
    let reset = pair.send(0, 1200).unwrap();
    pair.lose(0, &reset);
    pair.lose(0, &first);
    pair.run();
    assert!(pair.sides[0].is_idle());
    assert_eq!(pair.sides[1].window.unconsumed(), 0);
    pair.sides[1].accept(Unidirectional);
    assert_eq!(pair.sides[1].read(id, 10), Err(ReadError::Reset(42)));
    assert_eq!(pair.sides[1].read(id, 10), Err(ReadError::Closed));
    assert!(pair.sides[1].is_idle());
    assert_eq!(pair.events(0), []);
}

#[test]
fn a_reset_after_all_data_arrived_changes_nothing() {
    let (mut pair, id) = one_stream(Unidirectional);
    pair.sides[0].write(id, b"data").unwrap();
    pair.sides[0].finish(id).unwrap();
    let data = pair.send(0, 1200).unwrap();
    pair.deliver(0, &data).unwrap();
    pair.sides[0].reset(id, 1).unwrap();
    pair.run();
    pair.sides[1].accept(Unidirectional);
    assert_eq!(read_all(&mut pair.sides[1], id), (b"data".to_vec(), Ok(())));
}

#[test]
fn a_stopped_stream_is_reset_with_the_peers_code() {
    let (mut pair, id) = one_stream(Unidirectional);
    pair.sides[0].write(id, &[1; 5000]).unwrap();
    let first = pair.send(0, 1200).unwrap();
    pair.deliver(0, &first).unwrap();
    pair.sides[1].accept(Unidirectional);
    pair.sides[1].stop_sending(id, 9).unwrap();
    assert_eq!(pair.sides[1].window.unconsumed(), 0);
    assert_eq!(pair.sides[1].read(id, 10), Err(ReadError::Closed));
    let stop = pair.send(1, 1200).unwrap();
    pair.lose(1, &stop);
    let stop = pair.send(1, 1200).unwrap();
    pair.deliver(1, &stop).unwrap();
    assert_eq!(pair.events(0), [StreamEvent::Stopped { id, code: 9 }]);
    assert_eq!(pair.sides[0].write(id, b"x"), Err(WriteError::Stopped(9)));
    assert_eq!(pair.sides[0].finish(id), Err(WriteError::Stopped(9)));
    pair.run();
    assert!(pair.sides.iter().all(Streams::is_idle));
}

#[test]
fn a_stream_of_known_size_is_stopped_without_a_frame() {
    let (mut pair, id) = one_stream(Unidirectional);
    pair.sides[0].write(id, b"data").unwrap();
    pair.sides[0].finish(id).unwrap();
    pair.run();
    pair.sides[1].accept(Unidirectional);
    pair.sides[1].stop_sending(id, 9).unwrap();
    assert!(
        !pair.sides[1]
            .scheduler
            .control
            .iter()
            .any(|queued| *queued == id)
    );
    assert!(pair.sides[1].is_idle());
}

#[test]
fn a_stream_opens_all_lower_numbered_ones() {
    let mut pair = Pair::new(CONFIG);
    for _ in 0..3 {
        pair.sides[0].open(Bidirectional).unwrap();
    }
    let last = StreamId::new(Side::Client, Bidirectional, 2);
    pair.sides[0].write(last, b"x").unwrap();
    pair.run();
    assert_eq!(pair.events(1), [StreamEvent::Opened(Bidirectional)]);
    let accepted: Vec<_> = std::iter::from_fn(|| pair.sides[1].accept(Bidirectional)).collect();
    assert_eq!(accepted.len(), 3);
    assert_eq!(pair.sides[1].read(accepted[0], 1), Err(ReadError::Blocked));
    assert_eq!(
        pair.sides[1].read(accepted[2], 1),
        Ok(Some(Bytes::from("x")))
    );
}

#[test]
fn unaccepted_streams_are_not_accessible() {
    let (mut pair, id) = one_stream(Bidirectional);
    pair.sides[0].write(id, b"x").unwrap();
    pair.run();
    assert_eq!(pair.sides[1].read(id, 1), Err(ReadError::Closed));
    assert_eq!(pair.sides[1].write(id, b"x"), Err(WriteError::Closed));
}

#[test]
fn memory_does_not_grow_with_the_number_of_past_streams() {
    let mut pair = Pair::new(CONFIG);
    let long = pair.sides[0].open(Bidirectional).unwrap();
    pair.sides[0].write(long, b"stays").unwrap();
    for _ in 0..10_000 {
        let id = pair.sides[0].open(Unidirectional).unwrap();
        pair.sides[0].write(id, b"short").unwrap();
        pair.sides[0].finish(id).unwrap();
        pair.run();
        assert_eq!(pair.sides[1].accept(Unidirectional), Some(id));
        assert_eq!(read_all(&mut pair.sides[1], id).1, Ok(()));
        pair.run();
        assert!(pair.events(0).contains(&StreamEvent::Finished(id)));
        pair.events(1);
    }
    for streams in &pair.sides {
        assert_eq!(streams.open_streams(), 1);
    }
}
