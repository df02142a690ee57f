//! Accepted and rejected certificates.

use crate::support::{self, loopback, run, transport};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use weir_net::tls::{CipherSuite, ClientTls, Fingerprint, Identity, Roots, ServerTls};
use weir_net::{Connection, ConnectionError, Endpoint};

fn client(tls: ClientTls) -> Endpoint {
    let tls = tls.build().unwrap();
    let builder = Endpoint::builder().transport(transport()).client(tls);
    builder.bind(loopback()).unwrap()
}

fn server(tls: ServerTls) -> Endpoint {
    let tls = tls.build().unwrap();
    let builder = Endpoint::builder().transport(transport()).server(tls);
    builder.bind(loopback()).unwrap()
}

/// Connects and checks that both sides agree that it worked, or returns the client's error.
async fn connect(
    client: &Endpoint,
    server: &Endpoint,
    name: &str,
) -> Result<(Connection, Connection), ConnectionError> {
    let connecting = client.connect(server.local_address(), name).unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (ours, theirs) = tokio::join!(connecting, accepting);
    let ours = ours?;
    // A server rejects a client's certificate only after the client's handshake is complete.
    match theirs {
        Ok(theirs) => Ok((ours, theirs)),
        Err(_) => Err(ours.closed().await),
    }
}

fn certificate_error(result: Result<(Connection, Connection), ConnectionError>) -> String {
    let error = result.unwrap_err().to_string();
    assert!(error.contains("CRYPTO_ERROR"), "{error}");
    error
}

#[test]
fn only_the_pinned_certificate_is_trusted() {
    run(async {
        let identity = Identity::self_signed(["anything"]).unwrap();
        let pinned = identity.fingerprint();
        let server = server(ServerTls::new(identity));
        connect(&client(ClientTls::pinned(pinned)), &server, "localhost")
            .await
            .unwrap();
        let other = Fingerprint::of(b"another certificate");
        let wrong = client(ClientTls::pinned(other));
        certificate_error(connect(&wrong, &server, "localhost").await);
    });
}

#[test]
fn a_trusted_authority_authenticates_the_server_name() {
    run(async {
        let identity = Identity::self_signed(["right.example"]).unwrap();
        let roots = Roots::from_certificates(identity.chain()).unwrap();
        let server = server(ServerTls::new(identity));
        let client = client(ClientTls::with_roots(roots).unwrap());
        connect(&client, &server, "right.example").await.unwrap();
        certificate_error(connect(&client, &server, "wrong.example").await);
    });
}

#[test]
fn untrusted_and_expired_certificates_are_refused() {
    run(async {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
        let expired = params.self_signed(&key).unwrap();
        let expired = Identity::from_pem(&expired.pem(), &key.serialize_pem()).unwrap();
        let stranger = Identity::self_signed(["localhost"]).unwrap();
        let other = Identity::self_signed(["localhost"]).unwrap();
        for (roots, identity) in [
            (Roots::from_certificates(expired.chain()).unwrap(), expired),
            (Roots::from_certificates(other.chain()).unwrap(), stranger),
        ] {
            let server = server(ServerTls::new(identity));
            let client = client(ClientTls::with_roots(roots).unwrap());
            certificate_error(connect(&client, &server, "localhost").await);
        }
    });
}

#[test]
fn mutual_tls_authenticates_clients() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let pinned = identity.fingerprint();
        let welcome = Identity::self_signed(["client"]).unwrap();
        let roots = Roots::from_certificates(welcome.chain()).unwrap();
        let server = server(ServerTls::new(identity).client_roots(roots));
        let expected = welcome.chain()[0].to_vec();
        let known = client(ClientTls::pinned(pinned).identity(welcome));
        let (_ours, theirs) = connect(&known, &server, "localhost").await.unwrap();
        assert_eq!(theirs.peer_identity().peer_certificates, [expected]);
        let nobody = client(ClientTls::pinned(pinned));
        certificate_error(connect(&nobody, &server, "localhost").await);
        let stranger = Identity::self_signed(["client"]).unwrap();
        let stranger = client(ClientTls::pinned(pinned).identity(stranger));
        certificate_error(connect(&stranger, &server, "localhost").await);
    });
}

#[test]
fn application_protocols_must_agree() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let pinned = identity.fingerprint();
        let server = server(ServerTls::new(identity).application_protocols(["one", "two"]));
        let same = client(ClientTls::pinned(pinned).application_protocols(["two"]));
        let (ours, _theirs) = connect(&same, &server, "localhost").await.unwrap();
        let protocol = ours.peer_identity().application_protocol;
        assert_eq!(protocol.as_deref(), Some(&b"two"[..]));
        let other = client(ClientTls::pinned(pinned).application_protocols(["three"]));
        certificate_error(connect(&other, &server, "localhost").await);
    });
}

#[test]
fn both_sides_export_the_same_keying_material() {
    run(async {
        let pair = support::pair().await;
        let (mut ours, mut theirs) = ([0; 32], [1; 32]);
        assert!(
            pair.client
                .export_keying_material(&mut ours, b"label", b"context")
        );
        assert!(
            pair.server
                .export_keying_material(&mut theirs, b"label", b"context")
        );
        assert_eq!(ours, theirs);
    });
}

#[test]
fn peers_need_a_common_cipher_suite() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let pinned = identity.fingerprint();
        let chacha20 = [CipherSuite::ChaCha20Poly1305];
        let tls = ServerTls::new(identity).cipher_suites(chacha20);
        let server = server(tls);
        let alike = client(ClientTls::pinned(pinned).cipher_suites(chacha20));
        connect(&alike, &server, "localhost").await.unwrap();
        let other = ClientTls::pinned(pinned).cipher_suites([CipherSuite::Aes128Gcm]);
        certificate_error(connect(&client(other), &server, "localhost").await);
    });
}
