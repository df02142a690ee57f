//! Handshakes in memory: certificate trust and negotiated parameters.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, NamedGroup, ServerConnection};
use weir_net::tls::Identity;

use super::*;

const NAME: &str = "localhost";
const PROTOCOL: &[u8] = b"weir-test";

fn handshake(identity: &Identity, trust: &Trust) -> Result<ClientConnection, rustls::Error> {
    let server = server_config(identity, PROTOCOL, 1, EarlyData::Refused).unwrap();
    let client = client_config(trust, PROTOCOL, None).unwrap();
    let name = ServerName::try_from(NAME).unwrap();
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

/// Returns both kinds of trust in an identity.
fn trusts(identity: &Identity) -> [Trust; 2] {
    [
        Trust::Certificate(identity.chain()[0].to_vec()),
        Trust::Fingerprint(identity.fingerprint()),
    ]
}

#[test]
fn both_kinds_of_trust_accept_the_right_certificate() {
    let identity = Identity::self_signed([NAME]).unwrap();
    for trust in trusts(&identity) {
        let client = handshake(&identity, &trust).unwrap();
        let suite = client.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(suite, rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
        let group = client.negotiated_key_exchange_group().unwrap().name();
        assert_eq!(group, NamedGroup::X25519);
        assert_eq!(client.alpn_protocol(), Some(PROTOCOL));
    }
}

#[test]
fn both_kinds_of_trust_refuse_another_certificate() {
    let identity = Identity::self_signed([NAME]).unwrap();
    let other = Identity::self_signed([NAME]).unwrap();
    for trust in trusts(&other) {
        assert!(handshake(&identity, &trust).is_err());
    }
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let identity = Identity::self_signed([NAME]).unwrap();
    let other = Identity::self_signed([NAME]).unwrap();
    let thief = Identity::from_der(identity.chain().to_vec(), other.private_key().clone_key());
    // rustls detects this on the server; a server without the check would fail at the client.
    assert!(server_config(&thief, PROTOCOL, 1, EarlyData::Refused).is_err());
}

#[test]
fn trust_round_trips() {
    let identity = Identity::self_signed([NAME]).unwrap();
    for trust in trusts(&identity) {
        let text = serde_json::to_string(&trust).unwrap();
        assert_eq!(serde_json::from_str::<Trust>(&text).unwrap(), trust);
    }
}
