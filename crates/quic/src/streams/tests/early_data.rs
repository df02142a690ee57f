//! Early data that the server rejects (RFC 9001, section 4.6.2).

use super::*;

#[test]
fn rejection_of_early_data_resets_all_streams() {
    let mut client = Streams::new(Side::Client, CONFIG);
    client.set_peer_limits(&limits_of(&CONFIG));
    let ids = [(); 2].map(|()| client.open(Bidirectional).unwrap());
    client
        .write(ids[0], &vec![0; CONFIG.send_buffer as usize])
        .unwrap();
    assert_eq!(client.write(ids[0], b"x"), Err(WriteError::Blocked));
    assert_eq!(client.read(ids[1], 1), Err(ReadError::Blocked));
    let mut packet = Vec::new();
    client.fill(&mut packet, 1200, &mut SentFrames::new());

    client.reject_early_data();
    assert_eq!(client.poll_event(), Some(StreamEvent::Writable(ids[0])));
    assert_eq!(client.poll_event(), Some(StreamEvent::Readable(ids[1])));
    assert_eq!(client.poll_event(), None);
    assert!(client.is_idle() && !client.wants_to_send());
    assert_eq!(client.pending_bytes(), 0);
    for id in ids {
        assert_eq!(client.write(id, b"x"), Err(WriteError::EarlyDataRejected));
        assert_eq!(client.finish(id), Err(WriteError::EarlyDataRejected));
        assert_eq!(client.read(id, 1), Err(ReadError::EarlyDataRejected));
        assert_eq!(
            client.stop_sending(id, 1),
            Err(ReadError::EarlyDataRejected)
        );
    }

    assert_eq!(client.open(Bidirectional), None);
    client.set_peer_limits(&PeerLimits {
        max_streams_bidi: 1,
        max_data: 10,
        stream_data_bidi_remote: 100,
        ..PeerLimits::default()
    });
    assert_eq!(
        client.poll_event(),
        Some(StreamEvent::Available(Bidirectional))
    );
    assert_eq!(client.open(Bidirectional), Some(ids[0]));
    client.write(ids[0], &[0; 50]).unwrap();
    assert_eq!(client.pending_bytes(), 10);
    assert_eq!(
        client.write(ids[1], b"x"),
        Err(WriteError::EarlyDataRejected)
    );
}

#[test]
fn accepted_limits_apply_to_open_streams() {
    let mut client = Streams::new(Side::Client, CONFIG);
    client.set_peer_limits(&PeerLimits {
        max_data: 10,
        stream_data_bidi_remote: 10,
        max_streams_bidi: 1,
        ..PeerLimits::default()
    });
    let id = client.open(Bidirectional).unwrap();
    client.write(id, &[0; 100]).unwrap();
    assert_eq!(client.pending_bytes(), 10);
    client.set_peer_limits(&limits_of(&CONFIG));
    assert_eq!(client.pending_bytes(), 100);
}
