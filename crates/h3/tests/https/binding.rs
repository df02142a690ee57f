//! Ports that are taken, and TLS configurations that do not do.

use std::net::{TcpListener, UdpSocket};

use weir_h3::{BindError, HttpsServer};
use weir_net::EndpointError;

use crate::support::{loopback, run, server_tls, until, write_certificate};

#[test]
fn a_taken_port_is_named() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        write_certificate(directory.path());
        let tls = || server_tls(directory.path());
        let taken = TcpListener::bind(loopback()).unwrap();
        let address = taken.local_addr().unwrap();
        let error = HttpsServer::bind(address, tls()).unwrap_err();
        assert!(matches!(error, BindError::TcpInUse { .. }), "{error}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        drop(taken);
        // Nothing stays of what was bound in vain.
        until(|| HttpsServer::bind(address, tls()).is_ok()).await;
        let taken = UdpSocket::bind(loopback()).unwrap();
        let address = taken.local_addr().unwrap();
        let error = HttpsServer::bind(address, tls()).unwrap_err();
        let is_in_use = matches!(error, BindError::Udp(EndpointError::AddressInUse { .. }));
        assert!(is_in_use, "{error}");
        assert!(error.to_string().starts_with("UDP"), "{error}");
    });
}

#[test]
fn a_configuration_without_http3_is_refused() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        write_certificate(directory.path());
        let tls = server_tls(directory.path()).application_protocols(["h2"]);
        let builder = HttpsServer::builder(tls.build().unwrap());
        let error = builder.bind(loopback()).unwrap_err();
        assert!(matches!(error, BindError::NoHttp3), "{error}");
    });
}
