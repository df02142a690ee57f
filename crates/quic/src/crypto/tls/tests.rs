use proptest::prelude::*;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{RootCertStore, version};

use super::*;
use crate::crypto::pair::{
    CLIENT_PARAMETERS, Pair, SERVER_PARAMETERS, Seen, check_direction, garbage, level, opens,
};
use crate::{Code, Level, TransportError};

/// A self-signed P-256 certificate and what both sides make of it.
struct World {
    certificate: CertificateDer<'static>,
    client: ClientConfig,
    server: ServerConfig,
}

impl World {
    fn new() -> Self {
        Self::with_certificate(certificate_parameters("localhost"))
    }

    fn with_certificate(parameters: rcgen::CertificateParams) -> Self {
        Self::with_providers(parameters, provider(), provider())
    }

    fn with_providers(
        parameters: rcgen::CertificateParams,
        client: Arc<CryptoProvider>,
        server: Arc<CryptoProvider>,
    ) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate: CertificateDer<'static> =
            parameters.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let client = client_config(client, &certificate);
        let mut server = ServerConfig::builder_with_provider(server)
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        server.alpn_protocols = vec![b"other".to_vec(), b"weir".to_vec()];
        server.max_early_data_size = u32::MAX;
        server.session_storage = ServerSessionMemoryCache::new(16);
        Self {
            certificate,
            client,
            server,
        }
    }

    fn peers(self) -> (Arc<TlsClient>, Arc<TlsServer>) {
        let client = TlsClient::new(Arc::new(self.client)).unwrap();
        let server = TlsServer::new(Arc::new(self.server)).unwrap();
        (Arc::new(client), Arc::new(server))
    }

    /// How the handshake fails, and on which side.
    fn failure(self) -> (Side, TransportError) {
        let (client, server) = self.peers();
        let mut pair = Pair::new(&client, &server, false);
        pair.run(&[usize::MAX]).unwrap_err()
    }
}

fn certificate_parameters(name: &str) -> rcgen::CertificateParams {
    let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    parameters
}

fn client_config(provider: Arc<CryptoProvider>, root: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"weir".to_vec()];
    config
}

fn parameters(encoded: &[u8], remembered: bool) -> Seen {
    Seen::Parameters {
        encoded: encoded.to_vec(),
        remembered,
    }
}

#[test]
fn a_full_handshake_gives_both_sides_the_same_keys() {
    let world = World::new();
    let certificate = world.certificate.to_vec();
    let (client, server) = world.peers();
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
    let key = &pair.client.one_rtt.as_ref().unwrap().local.packet;
    assert_eq!(
        (key.confidentiality_limit(), key.integrity_limit()),
        (1 << 23, 1 << 52)
    );
    let [seen_by_client, seen_by_server] =
        [&pair.client, &pair.server].map(|peer| peer.session.identity());
    assert_eq!(seen_by_client.peer_certificates, [certificate]);
    assert!(seen_by_server.peer_certificates.is_empty());
    for identity in [seen_by_client, seen_by_server] {
        assert_eq!(identity.application_protocol.as_deref(), Some(&b"weir"[..]));
        assert_eq!(identity.server_name.as_deref(), Some("localhost"));
        assert!(!identity.resumed);
    }
}

#[test]
fn early_data_are_accepted() {
    let (client, server) = World::new().peers();
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
fn early_data_are_rejected_by_a_server_that_takes_none() {
    let world = World::new();
    let mut without = world.server.clone();
    without.max_early_data_size = 0;
    let (client, server) = world.peers();
    Pair::connected(&client, &server, false);
    let server = Arc::new(TlsServer::new(Arc::new(without)).unwrap());
    let pair = Pair::connected(&client, &server, true);
    assert!(pair.client.seen.contains(&Seen::ZeroRtt));
    assert!(!pair.server.seen.contains(&Seen::ZeroRtt));
    let rejected = Seen::EarlyData { accepted: false };
    assert!(pair.client.seen.contains(&rejected));
    assert!(pair.client.session.identity().resumed);
}

#[test]
fn early_data_are_rejected_by_a_server_that_has_forgotten_the_session() {
    let world = World::new();
    let mut forgetful = world.server.clone();
    forgetful.session_storage = ServerSessionMemoryCache::new(16);
    let (client, server) = world.peers();
    Pair::connected(&client, &server, false);
    let server = Arc::new(TlsServer::new(Arc::new(forgetful)).unwrap());
    let mut pair = Pair::connected(&client, &server, true);
    let rejected = Seen::EarlyData { accepted: false };
    assert!(pair.client.seen.contains(&rejected));
    assert!(!pair.client.session.identity().resumed);
    pair.check_keys();
}

#[test]
fn a_client_that_does_not_ask_sends_no_early_data() {
    let mut world = World::new();
    world.client.enable_early_data = true;
    let (client, server) = world.peers();
    Pair::connected(&client, &server, false);
    let pair = Pair::connected(&client, &server, false);
    assert!(pair.client.session.identity().resumed);
    assert!(!pair.client.seen.contains(&Seen::ZeroRtt));
    assert!(
        !pair
            .client
            .seen
            .contains(&parameters(SERVER_PARAMETERS, true))
    );
}

#[test]
fn a_hello_retry_request_is_answered() {
    let mut guesses_wrong = CryptoProvider::clone(&provider());
    guesses_wrong.kx_groups.reverse();
    let mut only_x25519 = CryptoProvider::clone(&provider());
    only_x25519.kx_groups = vec![kx_group::X25519];
    let world = World::with_providers(
        certificate_parameters("localhost"),
        Arc::new(guesses_wrong),
        Arc::new(only_x25519),
    );
    let (client, server) = world.peers();
    let mut pair = Pair::connected(&client, &server, false);
    assert_eq!(
        pair.client.seen[..3],
        [
            Seen::Send(Level::Initial),
            Seen::Send(Level::Initial),
            Seen::Handshake,
        ]
    );
    assert_eq!(
        pair.server.seen[..4],
        [
            Seen::Send(Level::Initial),
            parameters(CLIENT_PARAMETERS, false),
            Seen::Send(Level::Initial),
            Seen::Handshake,
        ]
    );
    pair.check_keys();
}

#[test]
fn an_unknown_issuer_is_an_alert_of_the_client() {
    let mut world = World::new();
    let stranger = World::with_certificate(certificate_parameters("stranger"));
    world.client = client_config(provider(), &stranger.certificate);
    let (side, error) = world.failure();
    assert_eq!((side, error.code), (Side::Client, Code::crypto(48)));
    assert!(error.reason.contains("UnknownIssuer"), "{error}");
}

#[test]
fn an_expired_certificate_is_an_alert_of_the_client() {
    let mut expired = certificate_parameters("localhost");
    expired.not_before = rcgen::date_time_ymd(2001, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let (side, error) = World::with_certificate(expired).failure();
    assert_eq!((side, error.code), (Side::Client, Code::crypto(45)));
    assert!(error.reason.contains("expired"), "{error}");
}

#[test]
fn another_name_is_an_alert_of_the_client() {
    let elsewhere = certificate_parameters("elsewhere");
    let (side, error) = World::with_certificate(elsewhere).failure();
    assert_eq!((side, error.code), (Side::Client, Code::crypto(42)));
    assert!(error.reason.contains("localhost"), "{error}");
}

#[test]
fn no_common_application_protocol_is_an_alert_of_the_server() {
    let mut world = World::new();
    world.client.alpn_protocols = vec![b"http/1.1".to_vec()];
    let (side, error) = world.failure();
    assert_eq!((side, error.code), (Side::Server, Code::crypto(120)));
}

/// RFC 9001, section 6: QUIC has its own key update.
#[test]
fn a_tls_key_update_is_an_unexpected_message() {
    let (client, server) = World::new().peers();
    let mut pair = Pair::connected(&client, &server, false);
    for peer in [&mut pair.client, &mut pair.server] {
        let update = [24, 0, 0, 1, 0];
        let error = peer.session.read(Level::OneRtt, &update).unwrap_err();
        assert_eq!(error.code, Code::crypto(10), "{error}");
    }
}

#[test]
fn handshake_data_may_not_continue_at_an_earlier_level() {
    let (client, server) = World::new().peers();
    let mut pair = Pair::new(&client, &server, false);
    pair.run_tampered(&[usize::MAX], 1, |_, _| {}).unwrap();
    let hello = pair.server.sent[0].1.clone();
    let joined = [&hello[..], &[8, 0, 0, 2, 0, 0]].concat();
    let error = pair.client.session.read(Level::Initial, &joined);
    assert_eq!(error.unwrap_err().code, Code::PROTOCOL_VIOLATION);
}

#[test]
fn exported_keying_material_agrees() {
    let (client, server) = World::new().peers();
    let early = Pair::new(&client, &server, false);
    assert!(!early.client.session.export(&mut [0; 8], b"label", b""));
    let pair = Pair::connected(&client, &server, false);
    let [ours, theirs] = [&pair.client, &pair.server].map(|peer| {
        let mut output = [0; 32];
        assert!(peer.session.export(&mut output, b"label", b"context"));
        output
    });
    assert_eq!(ours, theirs);
}

#[test]
fn configurations_that_cannot_carry_quic_are_refused() {
    let refused = |server: ServerConfig| match TlsServer::new(Arc::new(server)) {
        Err(StartError::Configuration(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let mut odd_size = World::new().server;
    odd_size.max_early_data_size = 16_384;
    assert!(refused(odd_size).contains("early data"));
    let mut ticketer = World::new().server;
    ticketer.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
    assert!(refused(ticketer).contains("ticketer"));
    let mut no_store = World::new().server;
    no_store.session_storage = Arc::new(NoServerSessionStorage {});
    assert!(refused(no_store).contains("session store"));

    let mut no_initial_suite = CryptoProvider::clone(&provider());
    no_initial_suite.cipher_suites.remove(0);
    let client = client_config(Arc::new(no_initial_suite), &World::new().certificate);
    let error = TlsClient::new(Arc::new(client)).unwrap_err();
    assert!(error.to_string().contains("TLS13_AES_128_GCM_SHA256"));
}

#[test]
fn a_server_name_must_be_one() {
    let (client, _) = World::new().peers();
    let start = |name: &str| client.clone().start(name, &[], false).err();
    let invalid = StartError::InvalidServerName("not a name".to_owned());
    assert_eq!(start("not a name"), Some(invalid));
    assert_eq!(start("10.0.0.1"), None);
    assert_eq!(start("::1"), None);
}

/// Sessions are costly to set up with debug assertions; a few cases in each test tell enough.
fn few() -> ProptestConfig {
    ProptestConfig::with_cases(24)
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn fragments_of_any_size_give_the_same_events(
        sizes in prop::collection::vec(1usize..400, 1..6),
    ) {
        let (client, server) = World::new().peers();
        let mut pair = Pair::new(&client, &server, false);
        pair.run(&sizes).unwrap();
        let (client, server) = World::new().peers();
        let whole = Pair::connected(&client, &server, false);
        prop_assert_eq!(&pair.client.seen, &whole.client.seen);
        prop_assert_eq!(&pair.server.seen, &whole.server.seen);
        pair.check_keys();
    }

    #[test]
    fn garbage_is_an_error_or_waits_and_never_panics(
        flights in 0usize..6,
        level in level(),
        garbage in garbage(),
    ) {
        let (client, server) = World::new().peers();
        Pair::new(&client, &server, false).check_garbage(flights, level, &garbage);
    }

    #[test]
    fn a_changed_byte_keeps_the_handshake_from_completing(
        flight in 0usize..4,
        byte in any::<prop::sample::Index>(),
        mask in 1u8..,
    ) {
        let (client, server) = World::new().peers();
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

mod vectors {
    //! RFC 9001, appendix A.

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    }

    fn destination() -> ConnectionId {
        ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
    }

    /// Protects a packet as its sender and takes the protection off again as its receiver.
    fn protect(side: Side, header: &str, payload: &[u8]) -> Vec<u8> {
        let (client, server) = World::new().peers();
        let [sender, receiver]: [&dyn Provider; 2] = match side {
            Side::Client => [&*client, &*server],
            Side::Server => [&*server, &*client],
        };
        let ours = sender.initial_keys(&destination(), side).local;
        let theirs = receiver.initial_keys(&destination(), side.other()).remote;
        let header = hex(header);
        let number_length = usize::from(header[0] & 0b11) + 1;
        let number_offset = header.len() - number_length;
        let number = header[number_offset..]
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        let mut packet = [&header, payload, &[0; 16]].concat();
        ours.packet.seal(number, header.len(), &mut packet);
        ours.header.protect(number_offset, &mut packet);

        let mut opened = packet.clone();
        let length = theirs.header.unprotect(number_offset, &mut opened);
        assert_eq!(length, Some(number_length));
        let (opened_header, sealed) = opened.split_at_mut(header.len());
        assert_eq!(opened_header, header);
        let length = theirs.packet.open(number, opened_header, sealed).unwrap();
        assert_eq!(&sealed[..length], payload);
        packet
    }

    #[test]
    fn a_2_client_initial() {
        let mut payload = hex(concat!(
            "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868",
            "04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578",
            "616d706c652e636f6dff01000100000a00080006001d00170018001000070005",
            "04616c706e000500050100000000003300260024001d00209370b2c9caa47fba",
            "baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400",
            "0d0010000e0403050306030203080408050806002d00020101001c0002400100",
            "3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000",
            "75300901100f088394c8f03e51570806048000ffff",
        ));
        payload.resize(1162, 0);
        let packet = protect(
            Side::Client,
            "c300000001088394c8f03e5157080000449e00000002",
            &payload,
        );
        assert_eq!(packet.len(), 1200);
        let begin = hex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11");
        assert_eq!(packet[..begin.len()], begin);
        let tag = hex("e221af44860018ab0856972e194cd934");
        assert_eq!(packet[1200 - tag.len()..], tag);
    }

    #[test]
    fn a_3_server_initial() {
        let payload = hex(concat!(
            "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739",
            "88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94",
            "0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00",
            "020304",
        ));
        let packet = protect(
            Side::Server,
            "c1000000010008f067a5502a4262b50040750001",
            &payload,
        );
        let expected = hex(concat!(
            "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a",
            "5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3",
            "dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84",
            "022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4",
            "2158407dd074ee",
        ));
        assert_eq!(packet, expected);
    }

    #[test]
    fn a_4_retry() {
        let packet = hex("ff000000010008f067a5502a4262b5746f6b656e");
        let tag = hex("04a265ba2eff4d829058fb3f0f2496ba");
        let (client, server) = World::new().peers();
        assert_eq!(client.retry_tag(&destination(), &packet)[..], tag);
        assert_eq!(server.retry_tag(&destination(), &packet)[..], tag);
    }

    /// A corrupted packet does not open, nor does one for another connection.
    #[test]
    fn initial_packets_are_authenticated() {
        let (client, server) = World::new().peers();
        let other = ConnectionId::new(&[1; 8]).unwrap();
        let ours = client.initial_keys(&destination(), Side::Client).local;
        let theirs = server.initial_keys(&other, Side::Server).remote;
        assert!(!opens(&*ours.packet, &*theirs.packet));
        assert!(theirs.packet.open(0, &[], &mut [0; 3]).is_err());
    }
}
