//! Clients whose UDP does not pass: TLS over TCP, a connection for each TCP connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::Shared;
use super::serve::serve_carrier;
use crate::carrier::TlsCarrier;
use crate::identity::ClientIdentity;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Handshakes at the same time: further clients wait in the backlog.
const HANDSHAKES: usize = 256;
/// The pause after a failed accept, mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes clients, without an end.
pub(super) async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let handshakes = Arc::new(tokio::sync::Semaphore::new(HANDSHAKES));
    loop {
        let Ok(place) = handshakes.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((tcp, _)) => {
                let (shared, open) = (shared.clone(), shared.over_tls.clone());
                tokio::spawn(async move {
                    let _open = open;
                    let established = establish(tcp, &shared).await;
                    drop(place);
                    if let Some((carrier, client)) = established {
                        serve_carrier(carrier, &client, &shared, None).await;
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a client's TCP connection cannot be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn establish(tcp: TcpStream, shared: &Shared) -> Option<(TlsCarrier, ClientIdentity)> {
    let remote = tcp.peer_addr().ok()?;
    let _ = tcp.set_nodelay(true);
    let config = match shared.credentials.over_tcp() {
        Ok(config) => config,
        Err(error) => {
            tracing::error!(%error, "there is no TLS over TCP");
            return None;
        }
    };
    let handshake = TlsAcceptor::from(config).accept(tcp);
    match timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate = certificates.and_then(|chain| chain.first());
            let client = ClientIdentity::new(remote, certificate.map(|der| &der[..]));
            Some((TlsCarrier::server(stream.into()), client))
        }
        Ok(Err(error)) => {
            tracing::debug!(%remote, %error, "a client's handshake over TCP failed");
            None
        }
        Err(_) => None,
    }
}
