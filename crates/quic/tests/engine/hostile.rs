//! Peers that send false data, and spoofed packets: the RFC's error codes, bounded work, no panic.
//!
//! The client here is honest; its packets are replaced just before they are sealed.

use std::sync::{Arc, Mutex};

use crate::world::{CLIENT, Plan, SERVER, World};
use proptest::prelude::*;
use weir_quic::crypto::seeded::SeededClient;
use weir_quic::crypto::{
    AnyPacketKey, ClientCrypto, ClientStart, Identity, KeyChange, Keys, OpenError, PacketKey,
    Provider, Session, SessionEvent, StartError,
};
use weir_quic::frame::{AckFrequency, NewConnectionId, ResetStream, write};
use weir_quic::{
    Code, ConnectionError, ConnectionId, Direction, Event, Level, Route, Side, StreamId,
    TransportError, Version,
};
use weir_units::Duration;
use weir_wire::Ecn;

/// The frames that replace those of the next 1-RTT packet.
type Forgery = Arc<Mutex<Option<Vec<u8>>>>;

#[derive(Debug)]
struct Forger {
    inner: Arc<SeededClient>,
    forgery: Forgery,
}

struct ForgingSession {
    inner: Box<dyn Session>,
    forgery: Forgery,
}

struct ForgingKey {
    inner: AnyPacketKey,
    forgery: Forgery,
}

impl Provider for Forger {
    fn initial_keys(&self, version: Version, destination: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(version, destination, side)
    }
    fn retry_tag(&self, version: Version, original: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, original, packet)
    }
}

impl ClientCrypto for Forger {
    fn start(self: Arc<Self>, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError> {
        let inner = self.inner.clone().start(start)?;
        Ok(Box::new(ForgingSession {
            inner,
            forgery: self.forgery.clone(),
        }))
    }
}

impl Session for ForgingSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        self.inner.read(level, data)
    }
    fn set_version(&mut self, version: Version) {
        self.inner.set_version(version);
    }
    fn poll(&mut self) -> Option<SessionEvent> {
        Some(match self.inner.poll()? {
            SessionEvent::Keys(KeyChange::OneRtt(mut keys, updates)) => {
                let inner = keys.local.packet;
                keys.local.packet = AnyPacketKey::new(ForgingKey {
                    inner,
                    forgery: self.forgery.clone(),
                });
                SessionEvent::Keys(KeyChange::OneRtt(keys, updates))
            }
            event => event,
        })
    }
    fn identity(&self) -> Identity {
        self.inner.identity()
    }
    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.inner.export(output, label, context)
    }
}

impl PacketKey for ForgingKey {
    fn seal(&self, packet_number: u64, header_length: usize, packet: &mut [u8]) {
        let end = packet.len() - self.tag_length();
        let room = end - header_length;
        let mut forgery = self.forgery.lock().unwrap();
        if let Some(frames) = forgery.take_if(|frames| frames.len() <= room) {
            packet[header_length..end].fill(0);
            packet[header_length..header_length + frames.len()].copy_from_slice(&frames);
        }
        self.inner.seal(packet_number, header_length, packet);
    }
    fn open(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<usize, OpenError> {
        self.inner.open(number, header, payload)
    }
    fn tag_length(&self) -> usize {
        self.inner.tag_length()
    }
    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }
    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// Returns why the server closed after these frames; `None` if it did not.
fn answer_to(frames: Vec<u8>) -> Option<ConnectionError> {
    answer_in(Plan::default(), frames)
}

fn answer_in(plan: Plan, frames: Vec<u8>) -> Option<ConnectionError> {
    let forgery = Forgery::default();
    let mut world = World::new(plan.clone());
    let inner = Arc::new(SeededClient::new(plan.seed));
    world.client_crypto = Arc::new(Forger {
        inner,
        forgery: forgery.clone(),
    });
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(2));
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, &[1; 1300]).unwrap();
    *forgery.lock().unwrap() = Some(frames);
    // Long enough for closing to end, shorter than idle timeouts.
    world.run_for(Duration::from_secs(5));
    assert!(
        forgery.lock().unwrap().is_none(),
        "the forgery was not sent"
    );
    let closed = world.hosts[SERVER]
        .events
        .iter()
        .find_map(|(handle, event)| match event {
            Event::Closed(error) if *handle == server => Some(error.clone()),
            _ => None,
        });
    let open = world.hosts[SERVER].connections.len();
    assert_eq!(open, usize::from(closed.is_none()), "{closed:?}");
    closed
}

fn assert_closed_with(code: Code, write: impl FnOnce(&mut Vec<u8>)) {
    let mut frames = Vec::new();
    write(&mut frames);
    match answer_to(frames) {
        Some(ConnectionError::Transport(error)) => assert_eq!(error.code, code, "{error}"),
        other => panic!("{code} expected, got {other:?}"),
    }
}

#[test]
fn a_go_away_whose_limit_grows_is_rejected() {
    assert_closed_with(Code::PROTOCOL_VIOLATION, |out| {
        write::go_away(out, 3);
        write::go_away(out, 4);
    });
    assert_closed_with(Code::FRAME_ENCODING_ERROR, |out| {
        write::go_away(out, (1 << 60) + 1);
    });
}

#[test]
fn a_go_away_that_was_not_allowed_is_rejected() {
    let mut frames = Vec::new();
    write::go_away(&mut frames, 4);
    write::go_away(&mut frames, 3);
    assert_eq!(answer_to(frames.clone()), None);
    let mut plan = Plan::default();
    plan.server.go_away = false;
    match answer_in(plan, frames) {
        Some(ConnectionError::Transport(error)) => {
            assert_eq!(error.code, Code::PROTOCOL_VIOLATION, "{error}");
            assert_eq!(error.frame_type, 0x1745_4955);
        }
        other => panic!("PROTOCOL_VIOLATION expected, got {other:?}"),
    }
}

fn client_stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

#[test]
fn data_beyond_flow_control_are_rejected() {
    assert_closed_with(Code::FLOW_CONTROL_ERROR, |out| {
        write::stream_header(out, client_stream(0), 1 << 40, Some(1), false);
        out.push(1);
    });
}

#[test]
fn streams_beyond_the_limit_are_rejected() {
    assert_closed_with(Code::STREAM_LIMIT_ERROR, |out| {
        write::stream_header(out, client_stream(1 << 30), 0, Some(1), false);
        out.push(1);
    });
}

#[test]
fn frames_for_streams_the_peer_may_not_open_are_rejected() {
    let ours = StreamId::new(Side::Server, Direction::Bidirectional, 0);
    assert_closed_with(Code::STREAM_STATE_ERROR, |out| {
        write::stream_header(out, ours, 0, Some(1), false);
        out.push(1);
    });
    assert_closed_with(Code::STREAM_STATE_ERROR, |out| {
        write::max_stream_data(
            out,
            StreamId::new(Side::Client, Direction::Unidirectional, 0),
            9,
        );
    });
}

#[test]
fn a_changed_final_size_is_rejected() {
    assert_closed_with(Code::FINAL_SIZE_ERROR, |out| {
        write::stream_header(out, client_stream(0), 10, Some(0), true);
        write::reset_stream(
            out,
            &ResetStream {
                id: client_stream(0),
                code: 0,
                final_size: 11,
            },
        );
    });
}

#[test]
fn acknowledgments_of_unsent_packets_are_rejected() {
    assert_closed_with(Code::PROTOCOL_VIOLATION, |out| {
        assert!(write::ack(
            out,
            [1 << 20..=1 << 20].into_iter(),
            0,
            None,
            100
        ));
    });
}

#[test]
fn server_only_frames_from_a_client_are_rejected() {
    assert_closed_with(Code::PROTOCOL_VIOLATION, write::handshake_done);
    assert_closed_with(Code::PROTOCOL_VIOLATION, |out| {
        write::new_token(out, b"token")
    });
}

/// It may be a late response to an abandoned challenge (RFC 9000, section 8.2.3).
#[test]
fn an_unsolicited_path_response_is_ignored() {
    let mut frames = Vec::new();
    write::path_response(&mut frames, [0; 8]);
    assert_eq!(answer_to(frames), None);
}

#[test]
fn unknown_and_truncated_frames_are_rejected() {
    assert_closed_with(Code::FRAME_ENCODING_ERROR, |out| out.extend([0x3f; 4]));
    assert_closed_with(Code::FRAME_ENCODING_ERROR, |out| {
        // The rest of the packet is padding, which is shorter than the frame's length.
        write::stream_header(out, client_stream(0), 0, Some(10_000), false);
    });
}

#[test]
fn excess_connection_ids_are_rejected() {
    assert_closed_with(Code::CONNECTION_ID_LIMIT_ERROR, |out| {
        for sequence in 10..20 {
            let id = ConnectionId::new(&[sequence; 8]).unwrap();
            write::new_connection_id(
                out,
                &NewConnectionId {
                    sequence: sequence.into(),
                    retire_prior_to: 0,
                    id,
                    reset_token: [sequence; 16],
                },
            );
        }
    });
    assert_closed_with(Code::PROTOCOL_VIOLATION, |out| {
        write::retire_connection_id(out, 99)
    });
}

#[test]
fn crypto_data_far_ahead_are_rejected() {
    assert_closed_with(Code::CRYPTO_BUFFER_EXCEEDED, |out| {
        write::crypto(out, 1 << 30, &[0; 9])
    });
}

#[test]
fn datagrams_without_negotiation_are_rejected() {
    assert_closed_with(Code::PROTOCOL_VIOLATION, |out| write::datagram(out, b""));
}

fn ack_frequency(micros: u64) -> AckFrequency {
    AckFrequency {
        sequence: 0,
        threshold: 1 << 40,
        max_ack_delay: micros,
        reordering_threshold: 1 << 61,
    }
}

#[test]
fn out_of_range_requested_ack_delays_are_rejected() {
    for micros in [0, 49, 16_384_000, (1 << 62) - 1] {
        assert_closed_with(Code::PROTOCOL_VIOLATION, |out| {
            write::ack_frequency(out, &ack_frequency(micros));
        });
    }
}

#[test]
fn harmless_frames_are_accepted() {
    let mut frames = Vec::new();
    write::ping(&mut frames);
    write::max_data(&mut frames, 1);
    write::ack_frequency(&mut frames, &ack_frequency(16_383_000));
    (0..900).for_each(|_| write::immediate_ack(&mut frames));
    assert_eq!(answer_to(frames), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_frames_never_panic(frames in prop::collection::vec(any::<u8>(), 1..1200)) {
        answer_to(frames);
    }

    #[test]
    fn arbitrary_datagrams_open_no_connection(
        datagrams in prop::collection::vec(
            (any::<[u8; 2]>(), prop::collection::vec(any::<u8>(), 0..1400)), 1..20),
    ) {
        let mut world = World::new(Plan::default());
        let remote = world.hosts[CLIENT].addresses[0];
        for ([first, version], mut bytes) in datagrams {
            bytes.insert(0, first);
            if version & 1 == 0 && bytes.len() > 5 {
                bytes[1..5].copy_from_slice(&[0, 0, 0, 1]);
            }
            let endpoint = &mut world.hosts[SERVER].endpoint;
            let route = endpoint.route(world.now, remote, None, Ecn::NotEct, &mut bytes);
            prop_assert!(matches!(route, Route::Drop | Route::Reply(_)));
            prop_assert_eq!(endpoint.connections(), 0);
        }
    }
}
