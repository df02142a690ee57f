mod vectors;

use proptest::prelude::*;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{RootCertStore, version};

use super::*;
use crate::crypto::pair::{
    CLIENT_PARAMETERS, Pair, SERVER_PARAMETERS, Seen, check_direction, garbage, level, opens, start,
};
use crate::{Code, Level, TransportError};

/// A self-signed P-256 certificate and the configuration of both sides.
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

    /// Returns the error of the handshake, and its side.
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
fn early_data_are_rejected_by_a_server_without_early_data_support() {
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
fn a_client_without_an_early_data_request_sends_none() {
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
fn the_client_alerts_on_an_unknown_issuer() {
    let mut world = World::new();
    let stranger = World::with_certificate(certificate_parameters("stranger"));
    world.client = client_config(provider(), &stranger.certificate);
    let (side, error) = world.failure();
    assert_eq!((side, error.code), (Side::Client, Code::crypto(48)));
    assert!(error.reason.contains("UnknownIssuer"), "{error}");
}

#[test]
fn the_client_alerts_on_an_expired_certificate() {
    let mut expired = certificate_parameters("localhost");
    expired.not_before = rcgen::date_time_ymd(2001, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let (side, error) = World::with_certificate(expired).failure();
    assert_eq!((side, error.code), (Side::Client, Code::crypto(45)));
    assert!(error.reason.contains("expired"), "{error}");
}

#[test]
fn the_client_alerts_on_a_server_name_mismatch() {
    let elsewhere = certificate_parameters("elsewhere");
    let (side, error) = World::with_certificate(elsewhere).failure();
    assert_eq!((side, error.code), (Side::Client, Code::crypto(42)));
    assert!(error.reason.contains("localhost"), "{error}");
}

#[test]
fn the_server_alerts_without_a_common_application_protocol() {
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
}

#[test]
fn initial_packets_use_aes_128_gcm_whatever_suites_are_offered() {
    let mut others = CryptoProvider::clone(&provider());
    others.cipher_suites.remove(0);
    let client = client_config(Arc::new(others), &World::new().certificate);
    let client = TlsClient::new(Arc::new(client)).unwrap();
    assert_eq!(
        client.initial.suite.common.suite,
        CipherSuite::TLS13_AES_128_GCM_SHA256
    );
}

#[test]
fn an_invalid_server_name_is_rejected() {
    let (client, _) = World::new().peers();
    let start = |name: &str| client.clone().start(&start(name, &[], false)).err();
    let invalid = StartError::InvalidServerName("not a name".to_owned());
    assert_eq!(start("not a name"), Some(invalid));
    assert_eq!(start("10.0.0.1"), None);
    assert_eq!(start("::1"), None);
}

#[test]
fn a_server_may_answer_in_another_version() {
    use Version::{V1, V2};
    for suite in provider().cipher_suites.clone() {
        for versions in [[V1, V2], [V2, V1], [V2, V2]] {
            let mut preferring = CryptoProvider::clone(&provider());
            preferring
                .cipher_suites
                .sort_by_key(|other| *other != suite);
            let certificate = certificate_parameters("localhost");
            let world = World::with_providers(certificate, Arc::new(preferring), provider());
            let (client, server) = world.peers();
            let mut pair = Pair::in_versions(&client, &server, false, versions);
            pair.run(&[usize::MAX]).unwrap();
            pair.check_keys();
            let told = pair.server.seen.contains(&Seen::Version(versions[1]));
            assert_eq!(told, versions[0] != versions[1]);
        }
    }
}

#[test]
fn sessions_are_not_resumed_in_another_version() {
    use Version::{V1, V2};
    let (client, server) = World::new().peers();
    Pair::connected(&client, &server, false);
    for (versions, resumed) in [([V2, V2], false), ([V1, V2], false), ([V1, V1], true)] {
        let mut pair = Pair::in_versions(&client, &server, true, versions);
        pair.run(&[usize::MAX]).unwrap();
        assert_eq!(pair.client.session.identity().resumed, resumed);
    }
    let mut pair = Pair::in_versions(&client, &server, false, [V2, V2]);
    pair.run(&[usize::MAX]).unwrap();
    assert!(!pair.client.session.identity().resumed);
}

/// Sessions are slow to set up with debug assertions; a few cases in each test are enough.
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
    fn garbage_never_panics(
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
