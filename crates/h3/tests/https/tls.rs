//! Certificates: one configuration for UDP and TCP.

use http::Version;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use weir_h3::HttpsServer;
use weir_net::tls::{Fingerprint, Reload, Roots};

use crate::support::{
    World, get, http3, loopback, mirror, read, run, secure, server_tls, write_certificate,
};

/// Whether the server has this certificate, over UDP and over TCP.
async fn has(world: &World, fingerprint: Fingerprint) -> (bool, bool) {
    let by_udp = http3(world.address(), fingerprint).await;
    let tcp = TcpStream::connect(world.address()).await.unwrap();
    let by_tcp = secure(tcp, fingerprint, &["h2"]).await;
    (by_udp.is_ok(), by_tcp.is_ok())
}

#[test]
fn a_reload_reaches_both() {
    run(async {
        let world = World::new(mirror());
        assert_eq!(has(&world, world.fingerprint).await, (true, true));
        let mut open = world.http2().await;
        let next = write_certificate(world.directory.path());
        assert_eq!(has(&world, next).await, (false, false));
        assert_eq!(world.server.tls().reload().unwrap(), Reload::Changed);
        assert_eq!(has(&world, next).await, (true, true));
        assert_eq!(has(&world, world.fingerprint).await, (false, false));
        read(open.send_request(get("/a")).await.unwrap()).await;
    });
}

#[test]
fn a_client_without_application_protocols_speaks_http1() {
    run(async {
        let world = World::new(mirror());
        let tcp = TcpStream::connect(world.address()).await.unwrap();
        let stream = secure(tcp, world.fingerprint, &[]).await.unwrap();
        let mut client = crate::support::http1_on(stream).await;
        let request = crate::support::for_http1(get("/a"));
        let response = client.send_request(request).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_11);
        // Nothing else is spoken over TCP.
        let tcp = TcpStream::connect(world.address()).await.unwrap();
        assert!(secure(tcp, world.fingerprint, &["h3"]).await.is_err());
    });
}

#[test]
fn a_client_that_has_to_show_a_certificate_does_so_over_tcp_too() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let fingerprint = write_certificate(directory.path());
        let roots = Roots::from_file(directory.path().join("tls.crt")).unwrap();
        let tls = server_tls(directory.path()).client_roots(roots);
        let server = HttpsServer::bind(loopback(), tls).unwrap();
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(mirror()).await });
        let tcp = TcpStream::connect(server.local_address()).await.unwrap();
        // A client of TLS 1.3 learns it with the first answer.
        let mut stream = secure(tcp, fingerprint, &["h2"]).await.unwrap();
        assert!(stream.read(&mut [0; 100]).await.is_err());
        assert_eq!(server.tcp_stats().failed_handshakes, 1);
    });
}
