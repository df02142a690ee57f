//! Credentials as companies have them: rustls's configurations, several names, revocation lists, SPIFFE,
//! shared ticket keys, and files that change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration as Span;

use tempfile::TempDir;

use crate::support::authority::{Authority, dns, uri};
use crate::support::{loopback, run, transport};
use weir_net::tls::{
    ClientCredentials, ClientTls, Crls, Identity, Reload, Roots, ServerCredentials, ServerTls,
    SpiffeId, TicketKeys, TlsError,
};
use weir_net::{
    Connection, Duration, Endpoint, EndpointStats, KnownClientsConfig, Request, ServeOptions,
};

/// An echo server.
fn serve(credentials: &ServerCredentials) -> Endpoint {
    let builder = Endpoint::builder().transport(transport());
    let server = builder.server(credentials.clone()).bind(loopback());
    let server = server.unwrap();
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connecting) = accepting.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = connecting.await else {
                    return;
                };
                let echo = |request: Request| async { Ok(request.body) };
                connection.serve(ServeOptions::default(), echo).await;
            });
        }
    });
    server
}

fn client(credentials: &ClientCredentials) -> Endpoint {
    let builder = Endpoint::builder().transport(transport());
    builder
        .client(credentials.clone())
        .bind(loopback())
        .unwrap()
}

/// Connects and makes a call, or returns what went wrong.
async fn call(client: &Endpoint, server: &Endpoint, name: &str) -> Result<Connection, String> {
    let connecting = client.connect(server.local_address(), name).unwrap();
    let connection = connecting.await.map_err(|error| error.to_string())?;
    let called = connection.call("hello").await;
    called.map_err(|error| error.to_string())?;
    Ok(connection)
}

fn certificate_of(connection: &Connection) -> Vec<u8> {
    connection.peer_identity().peer_certificates[0].clone()
}

fn id(text: &str) -> SpiffeId {
    text.parse().unwrap()
}

/// A directory with files that change.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn write_identity(&self, (certificate, key): (String, String)) -> Identity {
        self.write("tls.crt", &certificate);
        self.write("tls.key", &key);
        Identity::from_files(self.path("tls.crt"), self.path("tls.key")).unwrap()
    }
}

fn roots(path: &Path) -> Roots {
    Roots::from_file(path).unwrap()
}

#[test]
fn configurations_of_rustls_are_used_as_they_are() {
    run(async {
        let provider = || Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let mut server = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                identity.chain().to_vec(),
                identity.private_key().clone_key(),
            )
            .unwrap();
        let mut trusted = rustls::RootCertStore::empty();
        trusted.add(identity.chain()[0].clone()).unwrap();
        let mut own = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let error = ServerTls::from_rustls(server.clone()).unwrap_err();
        assert!(matches!(error, TlsError::NoApplicationProtocol), "{error}");
        let error = ClientTls::from_rustls(own.clone()).unwrap_err();
        assert!(matches!(error, TlsError::NoApplicationProtocol), "{error}");
        server.alpn_protocols = vec![b"billing/2".to_vec(), b"billing/1".to_vec()];
        own.alpn_protocols = vec![b"billing/1".to_vec()];
        let mut early = server.clone();
        early.max_early_data_size = 1000;
        let error = ServerTls::from_rustls(early).unwrap_err();
        assert!(matches!(error, TlsError::Quic(_)), "{error}");
        let known_peers = KnownClientsConfig::default();
        let server = ServerTls::from_rustls(server)
            .unwrap()
            .known_peers(known_peers);
        let server = serve(&server);
        let credentials = ClientTls::from_rustls(own).unwrap();
        let known = client(&credentials);
        let connection = call(&known, &server, "localhost").await.unwrap();
        let protocol = connection.peer_identity().application_protocol;
        assert_eq!(protocol.unwrap(), b"billing/1");
        let second = call(&known, &server, "localhost").await.unwrap();
        assert!(second.is_known_peer());
        let unknown = client(&credentials.without_known_peers().without_tokens());
        let third = call(&unknown, &server, "localhost").await.unwrap();
        assert!(!third.is_known_peer());
        assert!(server.stats().known_clients.held > 0);
        server.forget_known_clients();
        assert_eq!(server.stats().known_clients.held, 0);
    });
}

#[test]
fn a_server_chooses_its_identity_by_the_name() {
    run(async {
        let authority = Authority::new();
        let identities =
            ["one.example", "two.example"].map(|name| authority.identity(1, dns(name)));
        let certificates = identities
            .each_ref()
            .map(|identity| identity.chain()[0].to_vec());
        let pinned = identities[0].fingerprint();
        let [one, two] = identities;
        let server = serve(&ServerTls::new(one).also(two).build().unwrap());
        let trusted = Roots::from_pem(&authority.pem()).unwrap();
        let named = client(&ClientTls::with_roots(trusted).unwrap().build().unwrap());
        for (name, certificate) in ["one.example", "two.example"].iter().zip(&certificates) {
            let connection = call(&named, &server, name).await.unwrap();
            assert_eq!(certificate_of(&connection), *certificate);
        }
        // Who asks for another name gets the first one.
        let error = call(&named, &server, "three.example").await.unwrap_err();
        assert!(error.contains("CRYPTO_ERROR"), "{error}");
        let any = client(&ClientTls::pinned(pinned).build().unwrap());
        call(&any, &server, "three.example").await.unwrap();
    });
}

#[test]
fn a_revoked_client_is_refused_and_loses_its_sessions_and_secrets() {
    run(async {
        let (files, authority) = (Files::new(), Authority::new());
        let (bundle, list) = (
            files.write("ca.pem", &authority.pem()),
            files.write("crl.pem", &authority.revoking(&[])),
        );
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let pinned = ClientTls::pinned(identity.fingerprint());
        let credentials = ServerTls::new(identity)
            .client_roots(roots(&bundle))
            .client_crls(Crls::from_files([&list]).unwrap())
            .known_peers(KnownClientsConfig::default())
            .build()
            .unwrap();
        let server = serve(&credentials);
        let of = |serial, known_peers| {
            let identity = authority.identity(serial, dns("client"));
            let tls = pinned.clone().identity(identity).known_peers(known_peers);
            client(&tls.build().unwrap())
        };
        let clients = [of(7, true), of(7, false), of(8, true)];
        for client in &clients {
            call(client, &server, "localhost").await.unwrap();
            let second = call(client, &server, "localhost").await.unwrap();
            assert!(second.peer_identity().resumed);
        }
        assert_eq!(credentials.reload().unwrap(), Reload::Unchanged);
        files.write("crl.pem", &authority.revoking(&[7]));
        assert_eq!(credentials.reload().unwrap(), Reload::Changed);
        // The secret of the third client is still there.
        assert_eq!(server.stats().known_clients.held, 1);
        // Its request may have been executed before, for all that the server knows.
        let error = call(&clients[0], &server, "localhost").await.unwrap_err();
        assert!(error.contains("may have been executed"), "{error}");
        for revoked in &clients[..2] {
            let error = call(revoked, &server, "localhost").await.unwrap_err();
            assert!(error.contains("CRYPTO_ERROR"), "{error}");
        }
        let third = call(&clients[2], &server, "localhost").await.unwrap();
        assert!(third.is_known_peer());
        // A broken list changes nothing.
        files.write("crl.pem", "nothing");
        let error = credentials.reload().unwrap_err();
        assert!(matches!(error, TlsError::NoCrl { .. }), "{error}");
        let EndpointStats { tls_reloads, .. } = server.stats();
        assert_eq!((tls_reloads.changes, tls_reloads.failures), (1, 1));
        assert!(call(&clients[0], &server, "localhost").await.is_err());
        call(&of(8, true), &server, "localhost").await.unwrap();
    });
}

#[test]
fn a_new_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    run(async {
        let (files, authority) = (Files::new(), Authority::new());
        let identity = files.write_identity(authority.issue(1, dns("localhost")));
        let first = identity.chain()[0].to_vec();
        let credentials = ServerTls::new(identity)
            .reload_every(Duration::from_millis(5))
            .build()
            .unwrap();
        let server = serve(&credentials);
        let trusted = Roots::from_pem(&authority.pem()).unwrap();
        let tls = ClientTls::with_roots(trusted).unwrap().resumption(false);
        let client = client(&tls.build().unwrap());
        let open = call(&client, &server, "localhost").await.unwrap();
        assert_eq!(certificate_of(&open), first);
        // Until both files are there, they do not belong together.
        let (certificate, key) = authority.issue(2, dns("localhost"));
        let second = Identity::from_pem(&certificate, &key).unwrap().chain()[0].to_vec();
        files.write("tls.crt", &certificate);
        while credentials.reloads().failures == 0 {
            tokio::time::sleep(Span::from_millis(5)).await;
        }
        let connection = call(&client, &server, "localhost").await.unwrap();
        assert_eq!(certificate_of(&connection), first);
        assert_eq!(credentials.reloads().changes, 0);
        files.write("tls.key", &key);
        while credentials.reloads().changes == 0 {
            tokio::time::sleep(Span::from_millis(5)).await;
        }
        let connection = call(&client, &server, "localhost").await.unwrap();
        assert_eq!(certificate_of(&connection), second);
        // Connections that were open before go on.
        open.call("still there").await.unwrap();
    });
}

#[test]
fn a_client_that_trusts_others_forgets_whom_it_trusted() {
    run(async {
        let (files, one, two) = (Files::new(), Authority::new(), Authority::new());
        let bundle = files.write("ca.pem", &one.pem());
        let identity = one.identity(1, dns("localhost"));
        let tls = ServerTls::new(identity).known_peers(KnownClientsConfig::default());
        let server = serve(&tls.build().unwrap());
        let tls = ClientTls::with_roots(roots(&bundle)).unwrap();
        let credentials = tls.build().unwrap();
        let client = client(&credentials);
        call(&client, &server, "localhost").await.unwrap();
        let second = call(&client, &server, "localhost").await.unwrap();
        assert!(second.is_known_peer());
        files.write("ca.pem", "nothing");
        assert!(credentials.reload().is_err());
        assert!(
            call(&client, &server, "localhost")
                .await
                .unwrap()
                .is_known_peer()
        );
        files.write("ca.pem", &two.pem());
        assert_eq!(credentials.reload().unwrap(), Reload::Changed);
        let error = call(&client, &server, "localhost").await.unwrap_err();
        assert!(error.contains("CRYPTO_ERROR"), "{error}");
        files.write("ca.pem", &(one.pem() + &two.pem()));
        assert_eq!(credentials.reload().unwrap(), Reload::Changed);
        let connection = call(&client, &server, "localhost").await.unwrap();
        assert!(!connection.peer_identity().resumed);
    });
}

#[test]
fn workloads_authenticate_each_other_by_spiffe_ids() {
    run(async {
        let (files, authority) = (Files::new(), Authority::new());
        let bundle = files.write("svid_bundle.pem", &authority.pem());
        let (web, db) = ("spiffe://example.org/web", "spiffe://example.org/db");
        let server = |accepted: &str| {
            let identity = authority.identity(1, uri(db));
            let tls = ServerTls::new(identity)
                .client_roots(roots(&bundle))
                .client_spiffe_ids([id(accepted)]);
            serve(&tls.build().unwrap())
        };
        let of = |expected: &str, change: &dyn Fn(ClientTls) -> ClientTls| {
            let tls = ClientTls::with_spiffe(roots(&bundle), [id(expected)]);
            client(
                &change(tls.identity(authority.identity(2, uri(web))))
                    .build()
                    .unwrap(),
            )
        };
        let same = |tls| tls;
        for (accepted, expected) in [(web, db), ("spiffe://example.org", "spiffe://example.org")] {
            let server = server(accepted);
            let connection = call(&of(expected, &same), &server, "anything")
                .await
                .unwrap();
            let peer = SpiffeId::of_certificate(&certificate_of(&connection)).unwrap();
            assert_eq!(peer, id(db));
        }
        for (accepted, expected) in [
            (web, "spiffe://example.org/other"),
            (web, "spiffe://example.com"),
            (db, db),
            ("spiffe://example.com", db),
        ] {
            let server = server(accepted);
            let error = call(&of(expected, &same), &server, "anything")
                .await
                .unwrap_err();
            assert!(
                error.contains("CRYPTO_ERROR"),
                "{accepted} {expected}: {error}"
            );
        }
        // Signed by a stranger, or revoked.
        let stranger = Authority::new();
        let tls = ServerTls::new(stranger.identity(1, uri(db)));
        let error = call(&of(db, &same), &serve(&tls.build().unwrap()), "anything").await;
        assert!(error.unwrap_err().contains("CRYPTO_ERROR"));
        for (serials, is_accepted) in [(&[][..], true), (&[1], false)] {
            let crls = Crls::from_pem(&authority.revoking(serials)).unwrap();
            let checking = of(db, &|tls| tls.crls(crls.clone()));
            let called = call(&checking, &server(web), "anything").await;
            assert_eq!(called.is_ok(), is_accepted);
        }
    });
}

#[test]
fn a_client_resumes_at_another_server_with_the_same_ticket_keys() {
    run(async {
        let (files, authority) = (Files::new(), Authority::new());
        let (old, new) = ("01".repeat(32), "02".repeat(32));
        let identity = authority.identity(1, dns("localhost"));
        let trusted = Roots::from_pem(&authority.pem()).unwrap();
        let server = |keys: &str, roots: Option<Roots>| {
            let keys = TicketKeys::from_file(files.write("tickets", keys)).unwrap();
            let tls = ServerTls::new(identity.clone()).ticket_keys(keys);
            let tls = match roots {
                Some(roots) => tls.client_roots(roots).client_auth_optional(),
                None => tls,
            };
            tls.build().unwrap()
        };
        let first = serve(&server(&old, None));
        let fresh = async || {
            let tls = ClientTls::with_roots(trusted.clone()).unwrap();
            let client = client(&tls.build().unwrap());
            let connection = call(&client, &first, "localhost").await.unwrap();
            assert!(!connection.peer_identity().resumed);
            client
        };
        let other_roots = Roots::from_pem(&Authority::new().pem()).unwrap();
        for (other, is_resumed) in [
            (server(&old, None), true),
            (server(&format!("{new}\n{old}"), None), true),
            (server(&new, None), false),
            // It accepts other clients: a session would get around that.
            (server(&old, Some(other_roots)), false),
        ] {
            let client = fresh().await;
            let connection = call(&client, &serve(&other), "localhost").await.unwrap();
            assert_eq!(connection.peer_identity().resumed, is_resumed);
        }
        // A server that reads new keys again still knows the last ones.
        let rotating = server(&old, None);
        let client = fresh().await;
        files.write("tickets", &format!("{new}\n{old}\n"));
        assert_eq!(rotating.reload().unwrap(), Reload::Changed);
        let rotating = serve(&rotating);
        let connection = call(&client, &rotating, "localhost").await.unwrap();
        assert!(connection.peer_identity().resumed);
        let keys = TicketKeys::from_secrets(&[[1; 32]]).unwrap();
        let early = ServerTls::new(identity.clone())
            .ticket_keys(keys)
            .early_data(true);
        let error = early.build().unwrap_err();
        assert!(
            matches!(error, TlsError::EarlyDataWithTicketKeys),
            "{error}"
        );
    });
}

#[test]
fn settings_without_an_effect_are_errors() {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let authority = Authority::new();
    let crls = Crls::from_pem(&authority.revoking(&[])).unwrap();
    let server = ServerTls::new(identity.clone());
    for (tls, expected) in [
        (server.clone().client_crls(crls.clone()), "client_crls"),
        (
            server.clone().client_auth_optional(),
            "client_auth_optional",
        ),
        (
            server
                .clone()
                .client_spiffe_ids([id("spiffe://example.org")]),
            "client_spiffe_ids",
        ),
    ] {
        let error = tls.build().unwrap_err();
        assert!(
            matches!(error, TlsError::WithoutClientRoots { setting } if setting == expected),
            "{error}"
        );
    }
    let pinned = ClientTls::pinned(identity.fingerprint()).crls(crls);
    let error = pinned.build().unwrap_err();
    assert!(
        matches!(error, TlsError::WithPinnedCertificate { .. }),
        "{error}"
    );
    // A key of another certificate.
    let other = Identity::self_signed(["localhost"]).unwrap();
    let mixed = Identity::from_der(identity.chain().to_vec(), other.private_key().clone_key());
    assert!(ServerTls::new(mixed).build().is_err());
}
