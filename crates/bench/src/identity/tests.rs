//! Handshakes in memory: who is believed, and with which parameters.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, NamedGroup, ServerConnection};

use super::*;

fn handshake(identity: &Identity, trust: &Trust) -> Result<ClientConnection, rustls::Error> {
    let server = identity.server_config(EarlyData::Refused).unwrap();
    let client = trust.client_config(None).unwrap();
    let name = ServerName::try_from(SERVER_NAME).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name)?;
    let mut server = ServerConnection::new(Arc::new(server))?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok(client)
}

#[test]
fn both_kinds_of_trust_accept_the_right_certificate() {
    let identity = Identity::generate().unwrap();
    for trust in [
        Trust::Certificate(identity.certificate().to_vec()),
        Trust::Fingerprint(identity.fingerprint()),
    ] {
        let client = handshake(&identity, &trust).unwrap();
        let suite = client.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(suite, rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
        let group = client.negotiated_key_exchange_group().unwrap().name();
        assert_eq!(group, NamedGroup::X25519);
        assert_eq!(client.alpn_protocol(), Some(ALPN));
    }
}

#[test]
fn both_kinds_of_trust_refuse_another_certificate() {
    let identity = Identity::generate().unwrap();
    let other = Identity::generate().unwrap();
    for trust in [
        Trust::Certificate(other.certificate().to_vec()),
        Trust::Fingerprint(other.fingerprint()),
    ] {
        assert!(handshake(&identity, &trust).is_err());
    }
}

#[test]
fn the_pinned_certificate_without_its_key_is_refused() {
    let identity = Identity::generate().unwrap();
    let thief = Identity {
        certificate: identity.certificate.clone(),
        key: Identity::generate().unwrap().key,
    };
    // rustls notices on the server's side; a server that does not check would fail at the client.
    assert!(thief.server_config(EarlyData::Refused).is_err());
}

#[test]
fn fingerprints_round_trip_and_refuse_other_text() {
    let fingerprint = Fingerprint::of(b"certificate");
    assert_eq!(
        fingerprint.to_string().parse::<Fingerprint>().unwrap(),
        fingerprint
    );
    for text in ["", "00", "zz", &"+1".repeat(32), &"é".repeat(32)] {
        assert!(text.parse::<Fingerprint>().is_err(), "{text}");
    }
}
