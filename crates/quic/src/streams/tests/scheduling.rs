//! The order in which streams send, and how frames fill packets.

use super::*;

/// Returns the streams in the next packet, with offsets and lengths.
fn next_packet(streams: &mut Streams, limit: usize) -> Vec<(StreamId, u64, usize)> {
    let mut payload = Vec::new();
    streams.fill(&mut payload, limit, &mut SentFrames::new());
    assert!(payload.len() <= limit);
    Frames::new(&payload)
        .filter_map(|frame| match frame.unwrap() {
            Frame::Stream(frame) => Some((frame.id, frame.offset, frame.data.len())),
            _ => None,
        })
        .collect()
}

fn client_with(count: usize, length: usize) -> (Streams, Vec<StreamId>) {
    let mut streams = Streams::new(Side::Client, CONFIG);
    streams.set_peer_limits(&limits_of(&CONFIG));
    let ids: Vec<_> = (0..count)
        .map(|_| streams.open(Bidirectional).unwrap())
        .collect();
    for &id in &ids {
        streams.write(id, &vec![0; length]).unwrap();
    }
    (streams, ids)
}

#[test]
fn short_streams_share_a_packet() {
    let (mut streams, ids) = client_with(3, 100);
    let sent = next_packet(&mut streams, 1200);
    assert_eq!(sent, [(ids[0], 0, 100), (ids[1], 0, 100), (ids[2], 0, 100)]);
    assert!(!streams.wants_to_send());
}

#[test]
fn a_frame_that_fills_the_packet_has_no_length() {
    let (mut streams, ids) = client_with(1, 5000);
    // One byte of type and one of stream ID.
    assert_eq!(next_packet(&mut streams, 1200), [(ids[0], 0, 1198)]);
    // The offset takes two more.
    assert_eq!(next_packet(&mut streams, 1200), [(ids[0], 1198, 1196)]);
}

#[test]
fn data_without_room_for_their_length_field_are_split() {
    let (mut streams, ids) = client_with(1, 1197);
    let mut payload = Vec::new();
    streams.fill(&mut payload, 1200, &mut SentFrames::new());
    assert_eq!(payload.len(), 1200);
    assert_eq!(next_packet(&mut streams, 1200), [(ids[0], 1196, 1)]);
}

#[test]
fn priorities_order_streams_and_can_change() {
    let (mut streams, ids) = client_with(3, 2000);
    streams.set_priority(ids[2], 7);
    streams.set_priority(ids[1], -7);
    assert_eq!(next_packet(&mut streams, 1200)[0].0, ids[2]);
    streams.set_priority(ids[1], 8);
    assert_eq!(next_packet(&mut streams, 1200)[0].0, ids[1]);
    streams.set_priority(ids[1], 7);
    assert_eq!(next_packet(&mut streams, 1200)[0].0, ids[2]);
}

#[test]
fn streams_of_equal_priority_are_round_robin() {
    let (mut streams, ids) = client_with(2, 16_000);
    streams.write(ids[0], &[0; 384]).unwrap();
    let mut order: Vec<_> = Vec::new();
    for _ in 0..20 {
        order.extend(
            next_packet(&mut streams, 1000)
                .into_iter()
                .map(|sent| sent.0),
        );
    }
    order.dedup();
    assert_eq!(order, ids);
}

#[test]
fn lost_data_are_sent_before_new_data() {
    let (mut streams, ids) = client_with(2, 3000);
    let mut packet = Vec::new();
    let mut sent = SentFrames::new();
    streams.fill(&mut packet, 1200, &mut sent);
    streams.set_priority(ids[1], 5);
    streams.on_lost(&sent[0]);
    assert_eq!(streams.pending_bytes(), 6000);
    assert_eq!(next_packet(&mut streams, 1200), [(ids[0], 0, 1198)]);
    assert_eq!(next_packet(&mut streams, 1200)[0].0, ids[1]);
}

#[test]
fn lost_data_that_arrived_after_all_are_not_sent_again() {
    let (mut streams, ids) = client_with(1, 2396);
    let mut sent = [SentFrames::new(), SentFrames::new()];
    for sent in &mut sent {
        streams.fill(&mut Vec::new(), 1200, sent);
    }
    streams.on_acked(&sent[1][0]);
    for sent in &sent {
        streams.on_lost(&sent[0]);
    }
    assert_eq!(
        next_packet(&mut streams, 1300),
        [(ids[0], 0, 1198), (ids[0], 2394, 2)]
    );
}

#[test]
fn retransmissions_need_no_flow_control() {
    let (mut streams, ids) = client_with(1, CONFIG.stream_window as usize);
    let mut records = Vec::new();
    while streams.wants_to_send() {
        let mut sent = SentFrames::new();
        streams.fill(&mut Vec::new(), 1200, &mut sent);
        records.extend(sent);
    }
    assert!(!streams.send_limited());
    streams.write(ids[0], b"more").unwrap();
    assert!(streams.send_limited());
    streams.on_lost(&records[0]);
    assert!(!streams.send_limited());
    assert_eq!(next_packet(&mut streams, 1300), [(ids[0], 0, 1198)]);
}
