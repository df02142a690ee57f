use proptest::prelude::*;

use super::*;
use crate::crypto::PacketKey;
use crate::crypto::pair::{
    CLIENT_PARAMETERS, Pair, SERVER_PARAMETERS, Seen, check_direction, garbage, level, opens, start,
};
use crate::crypto::{ClientOffer, ServerAnswer};
use crate::{Code, Level};
use cipher::SeededPacketKey;
use mixing::Secret;

fn peers() -> (Arc<SeededClient>, Arc<SeededServer>) {
    (
        Arc::new(SeededClient::new(1)),
        Arc::new(SeededServer::new(2)),
    )
}

fn parameters(encoded: &[u8], remembered: bool) -> Seen {
    Seen::Parameters {
        encoded: encoded.to_vec(),
        remembered,
    }
}

#[test]
fn a_full_handshake_gives_both_sides_the_same_keys() {
    let (client, server) = peers();
    let mut pair = Pair::connected(&client, &server, true);
    assert_eq!(
        pair.client.seen,
        [
            Seen::Send(Level::Initial),
            Seen::Handshake,
            parameters(SERVER_PARAMETERS, false),
            Seen::Send(Level::Handshake),
            Seen::OneRtt,
            Seen::Complete,
        ]
    );
    assert_eq!(
        pair.server.seen,
        [
            parameters(CLIENT_PARAMETERS, false),
            Seen::Send(Level::Initial),
            Seen::Handshake,
            Seen::Send(Level::Handshake),
            Seen::OneRtt,
            Seen::Send(Level::OneRtt),
            Seen::Complete,
        ]
    );
    pair.check_keys();
    let identity = pair.client.session.identity();
    assert_eq!(identity.peer_certificates[0].len(), 1000);
    assert!(!identity.resumed);
    let name = pair.server.session.identity().server_name;
    assert_eq!(name.as_deref(), Some("localhost"));
}

#[test]
fn the_server_flight_has_the_size_of_a_tls_one() {
    let (client, server) = peers();
    let pair = Pair::connected(&client, &server, false);
    let flight: usize = pair.server.sent[..2].iter().map(|(_, b)| b.len()).sum();
    assert!((1200..1400).contains(&flight), "{flight} bytes");
    assert_eq!(pair.client.sent[0].1.len(), 280);
}

#[test]
fn handshake_message_lengths_are_configurable() {
    let client = Arc::new(SeededClient::new(1).with_hello_length(1500));
    let server = Arc::new(SeededServer::new(2).with_certificate_length(usize::MAX));
    let pair = Pair::connected(&client, &server, false);
    assert_eq!(pair.client.sent[0].1.len(), 1500);
    assert!(pair.server.sent[1].1.len() > 65_535);
}

#[test]
fn early_data_are_accepted() {
    let (client, server) = peers();
    Pair::connected(&client, &server, false);
    let mut pair = Pair::connected(&client, &server, true);
    assert_eq!(
        pair.client.seen,
        [
            Seen::Send(Level::Initial),
            parameters(SERVER_PARAMETERS, true),
            Seen::ZeroRtt,
            Seen::Handshake,
            Seen::EarlyData { accepted: true },
            parameters(SERVER_PARAMETERS, false),
            Seen::Send(Level::Handshake),
            Seen::OneRtt,
            Seen::Complete,
        ]
    );
    assert_eq!(
        pair.server.seen[..4],
        [
            parameters(CLIENT_PARAMETERS, false),
            Seen::ZeroRtt,
            Seen::Send(Level::Initial),
            Seen::Handshake,
        ]
    );
    let zero_rtt = [&pair.client, &pair.server].map(|peer| peer.zero_rtt.as_ref().unwrap());
    check_direction(zero_rtt[0], zero_rtt[1]);
    pair.check_keys();
    assert!(pair.client.session.identity().resumed);
    assert!(pair.server.session.identity().resumed);
}

#[test]
fn early_data_are_rejected_but_the_session_is_resumed() {
    let client = Arc::new(SeededClient::new(1));
    let server = Arc::new(SeededServer::new(2).with_early_data(SeededEarlyData::Reject));
    Pair::connected(&client, &server, false);
    let pair = Pair::connected(&client, &server, true);
    assert!(pair.client.seen.contains(&Seen::ZeroRtt));
    assert!(!pair.server.seen.contains(&Seen::ZeroRtt));
    let rejected = Seen::EarlyData { accepted: false };
    assert!(pair.client.seen.contains(&rejected));
    assert!(pair.client.session.identity().resumed);
}

#[test]
fn early_data_require_a_request_a_ticket_and_a_matching_server() {
    let (client, server) = peers();
    Pair::connected(&client, &server, false);
    let attempted = |pair: &Pair| pair.client.seen.contains(&Seen::ZeroRtt);
    let resumed = |pair: &Pair| pair.client.session.identity().resumed;

    let unasked = Pair::connected(&client, &server, false);
    assert!(resumed(&unasked) && !attempted(&unasked));

    let stranger = Arc::new(SeededServer::new(3));
    let refused = Pair::connected(&client, &stranger, true);
    assert!(attempted(&refused) && !resumed(&refused));
    let rejected = Seen::EarlyData { accepted: false };
    assert!(refused.client.seen.contains(&rejected));

    client.forget_tickets();
    let forgotten = Pair::connected(&client, &server, true);
    assert!(!resumed(&forgotten) && !attempted(&forgotten));

    let never = Arc::new(SeededServer::new(2).with_early_data(SeededEarlyData::Never));
    Pair::connected(&client, &never, false);
    let forbidden = Pair::connected(&client, &never, true);
    assert!(resumed(&forbidden) && !attempted(&forbidden));
}

#[test]
fn injected_faults_fail_the_handshake_with_their_alert() {
    let fault = |client: Option<SeededFault>, server: Option<SeededFault>| {
        let mut crypto = (SeededClient::new(1), SeededServer::new(2));
        crypto.0.fault = client;
        crypto.1.fault = server;
        let mut pair = Pair::new(&Arc::new(crypto.0), &Arc::new(crypto.1), false);
        let (side, error) = pair.run(&[usize::MAX]).unwrap_err();
        (side, error.code)
    };
    let refuse = Some(SeededFault::Refuse { alert: 42 });
    let wrong = Some(SeededFault::WrongFinished);
    let decrypt_error = Code::crypto(51);
    assert_eq!(fault(None, refuse), (Side::Server, Code::crypto(42)));
    assert_eq!(fault(refuse, None), (Side::Client, Code::crypto(42)));
    assert_eq!(fault(None, wrong), (Side::Client, decrypt_error));
    assert_eq!(fault(wrong, None), (Side::Server, decrypt_error));
}

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let run = |seed| {
        let client = Arc::new(SeededClient::new(seed));
        let server = Arc::new(SeededServer::new(seed));
        let pairs = [false, true].map(|early| Pair::connected(&client, &server, early));
        pairs.map(|pair| {
            let mut packet = vec![0; 100];
            let keys = pair.client.one_rtt.as_ref().unwrap();
            keys.local.packet.seal(7, 10, &mut packet);
            (pair.client.sent, pair.server.sent, packet)
        })
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
    let [first, second] = run(5);
    assert_ne!(first.0[0], second.0[0]);
}

/// The bytes must not differ between machines either.
#[test]
fn sealed_bytes_are_pinned() {
    let key = SeededPacketKey::new(Secret::new(1, 2));
    let mut packet: Vec<u8> = (0..64).collect();
    key.seal(3, 5, &mut packet);
    let sum = Secret::new(0, 0).absorb(&packet).word();
    assert_eq!(sum, 11_324_036_158_425_430_844);
}

#[test]
fn exported_keying_material_agrees_and_depends_on_label_and_context() {
    let (client, server) = peers();
    let early = Pair::new(&client, &server, false);
    assert!(!early.client.session.export(&mut [0; 8], b"label", b""));
    let pair = Pair::connected(&client, &server, false);
    let export = |session: &dyn Session, label: &[u8], context: &[u8]| {
        let mut output = [0; 20];
        assert!(session.export(&mut output, label, context));
        output
    };
    let ours = export(&*pair.client.session, b"a", b"b");
    assert_eq!(ours, export(&*pair.server.session, b"a", b"b"));
    assert_ne!(ours, export(&*pair.client.session, b"ab", b""));
    assert_ne!(ours, export(&*pair.client.session, b"a", b"c"));
}

#[test]
fn invalid_names_and_oversized_parameters_are_rejected() {
    let (client, server) = peers();
    let start =
        |name: &str, parameters: &[u8]| client.clone().start(&start(name, parameters, false)).err();
    assert!(matches!(
        start("", &[]),
        Some(StartError::InvalidServerName(_))
    ));
    let long = vec![0; 40_000];
    assert!(matches!(
        start("a", &long),
        Some(StartError::Configuration(_))
    ));
    let answer = move |_: &ClientOffer<'_>| {
        Ok(ServerAnswer {
            version: Version::V1,
            parameters: long,
        })
    };
    let mut pair = Pair::new(&client, &server, false);
    let session = server.clone().start(Version::V1, Box::new(answer));
    pair.server.session = session.unwrap();
    let (side, error) = pair.run(&[usize::MAX]).unwrap_err();
    assert_eq!((side, error.code), (Side::Server, Code::INTERNAL_ERROR));
}

#[test]
fn a_server_may_answer_in_another_version() {
    let (client, server) = peers();
    for versions in [
        [Version::V1, Version::V2],
        [Version::V2, Version::V1],
        [Version::V2, Version::V2],
    ] {
        let mut pair = Pair::in_versions(&client, &server, false, versions);
        pair.run(&[usize::MAX]).unwrap();
        pair.check_keys();
        let told = pair.server.seen.contains(&Seen::Version(versions[1]));
        assert_eq!(told, versions[0] != versions[1]);
    }
}

#[test]
fn initial_keys_and_retry_tags_follow_the_connection_id() {
    let (client, server) = peers();
    let [one, other] = [[1; 8], [2; 8]].map(|id| ConnectionId::new(&id).unwrap());
    let ours = client.initial_keys(Version::V1, &one, Side::Client);
    let theirs = server.initial_keys(Version::V1, &one, Side::Server);
    check_direction(&ours.local, &theirs.remote);
    check_direction(&theirs.local, &ours.remote);
    for (version, id) in [(Version::V1, &other), (Version::V2, &one)] {
        let wrong = server.initial_keys(version, id, Side::Server);
        assert!(!opens(&*ours.local.packet, &*wrong.remote.packet));
    }

    let tag = server.retry_tag(Version::V1, &one, b"retry");
    assert_eq!(tag, client.retry_tag(Version::V1, &one, b"retry"));
    assert_ne!(tag, client.retry_tag(Version::V1, &other, b"retry"));
    assert_ne!(tag, client.retry_tag(Version::V1, &one, b"Retry"));
}

proptest! {
    #[test]
    fn any_flipped_bit_is_detected(
        header in prop::collection::vec(any::<u8>(), 1..40),
        text in prop::collection::vec(any::<u8>(), 0..150),
        number in any::<u64>(),
        bit in any::<prop::sample::Index>(),
    ) {
        let key = SeededPacketKey::new(Secret::new(1, 2));
        let mut packet = header.clone();
        packet.extend_from_slice(&text);
        packet.resize(packet.len() + key.tag_length(), 0);
        key.seal(number, header.len(), &mut packet);

        let open = |number: u64, mut packet: Vec<u8>, header_length: usize| {
            let (header, payload) = packet.split_at_mut(header_length);
            key.open(number, header, payload).map(|length| payload[..length].to_vec())
        };
        prop_assert_eq!(open(number, packet.clone(), header.len()).unwrap(), text);
        prop_assert!(open(number ^ 1, packet.clone(), header.len()).is_err());
        prop_assert!(open(number, packet.clone(), header.len() - 1).is_err());
        let cut = packet[..packet.len() - 1].to_vec();
        prop_assert!(open(number, cut, header.len()).is_err());
        let bit = bit.index(packet.len() * 8);
        let mut flipped = packet;
        flipped[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(open(number, flipped, header.len()).is_err());
    }

    #[test]
    fn fragments_of_any_size_give_the_same_handshake(
        sizes in prop::collection::vec(1usize..400, 1..6),
    ) {
        let run = |sizes: &[usize]| {
            let (client, server) = peers();
            let mut pair = Pair::new(&client, &server, false);
            pair.run(sizes).unwrap();
            (pair.client.seen, pair.server.seen, pair.client.sent, pair.server.sent)
        };
        prop_assert_eq!(run(&sizes), run(&[usize::MAX]));
    }

    #[test]
    fn garbage_never_panics(
        flights in 0usize..6,
        level in level(),
        garbage in garbage(),
    ) {
        let (client, server) = peers();
        Pair::new(&client, &server, false).check_garbage(flights, level, &garbage);
    }

    #[test]
    fn a_changed_byte_keeps_the_handshake_from_completing(
        flight in 0usize..4,
        byte in any::<prop::sample::Index>(),
        mask in 1u8..,
    ) {
        let (client, server) = peers();
        let mut pair = Pair::new(&client, &server, false);
        let result = pair.run_tampered(&[usize::MAX], usize::MAX, |index, bytes| {
            if index == flight {
                let position = byte.index(bytes.len());
                bytes[position] ^= mask;
            }
        });
        prop_assert!(result.is_err() || !pair.server.is_complete());
    }
}
