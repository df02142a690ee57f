//! DCQUIC in the storm: known peers, by `weir-net`. The clients share a socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use weir_net::tls::{ClientCredentials, ClientTls, Identity, ServerTls};
use weir_net::{
    ClientLimits, Connection, Endpoint, EndpointBuilder, EndpointSecret, Executed,
    KnownClientsConfig, Refusal, ServeOptions, TransportConfig,
};

use super::Plan;
use super::call::{Failed, Progress, request};
use super::execution::{Journal, Role};
use crate::calls::error::Error;
use crate::calls::identity::{ALPN, SERVER_NAME};
use crate::dcquic::settings;
use crate::transport::Start;

const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// How often a client that has met the server looks for the secret.
const LOOK: Duration = Duration::from_millis(1);

fn builder(transport: TransportConfig) -> EndpointBuilder {
    Endpoint::builder().transport(transport)
}

fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::transport("configuring DCQUIC", error)
}

/// Answers calls; returns only if the endpoint ends.
pub(super) async fn serve(role: &Role, journal: Journal) -> Result<(), Error> {
    let limits = KnownClientsConfig::default();
    let limits = KnownClientsConfig {
        // All clients are at the same address, and have no certificates.
        per_client: limits.capacity,
        ..limits
    };
    let tls = ServerTls::new(role.identity())
        .application_protocols([ALPN])
        .known_peers(limits)
        .build()
        .map_err(unusable)?;
    let endpoint = builder(settings(None))
        // A server that restarts can prove it.
        .secret(EndpointSecret::new(role.secret))
        .server(tls)
        // All clients are at one address.
        .client_limits(ClientLimits::NONE)
        .bind(role.address)
        .map_err(unusable)?;
    journal.listening(endpoint.local_address())?;
    let journal = Arc::new(journal);
    while let Some(connecting) = endpoint.accept().await {
        let journal = journal.clone();
        tokio::spawn(async move {
            let Ok(connection) = connecting.await else {
                return;
            };
            let execute = move |request: weir_net::Request| {
                let executed = journal.execute(&request.body);
                std::future::ready(executed.then_some(request.body).ok_or(Refusal(1)))
            };
            connection.serve(ServeOptions::default(), execute).await;
        });
    }
    Ok(())
}

/// The clients.
pub(super) struct Clients {
    endpoint: Endpoint,
    server: SocketAddr,
    credentials: Vec<ClientCredentials>,
}

impl Clients {
    pub(super) fn new(plan: &Plan, server: SocketAddr, trusted: &Identity) -> Result<Self, Error> {
        let credentials = || {
            ClientTls::pinned(trusted.fingerprint())
                .application_protocols([ALPN])
                .build()
                .map_err(unusable)
        };
        Ok(Self {
            endpoint: builder(settings(None)).bind(LOCAL).map_err(unusable)?,
            server,
            credentials: (0..plan.clients)
                .map(|_| credentials())
                .collect::<Result<_, _>>()?,
        })
    }

    async fn connect(&self, client: usize) -> Result<Connection, Failed> {
        let credentials = &self.credentials[client];
        let connecting = self
            .endpoint
            .connect_with(credentials, None, self.server, SERVER_NAME)
            .map_err(Failed::new)?;
        connecting.await.map_err(Failed::new)
    }

    /// Makes a call, and waits for the secret.
    pub(super) async fn meet(&self, client: usize) -> Result<(), Failed> {
        let connection = self.connect(client).await?;
        let call = connection.call(Bytes::copy_from_slice(&request(client as u64)));
        call.await.map_err(Failed::new)?;
        while self.credentials[client].known_servers().held == 0 {
            tokio::time::sleep(LOOK).await;
        }
        connection.close(0, b"");
        Ok(())
    }

    pub(super) async fn call(
        &self,
        client: usize,
        number: u64,
        progress: &mut Progress,
    ) -> Result<(), Failed> {
        let connection = self.connect(client).await?;
        let request = Bytes::copy_from_slice(&request(number));
        progress.sent = true;
        let called = connection.call(request.clone()).await;
        // A connection may have become one with a handshake meanwhile.
        progress.start = Some(if connection.is_known_peer() {
            Start::Known
        } else if connection.peer_identity().resumed {
            Start::Resumed
        } else {
            Start::Full
        });
        connection.close(0, b"");
        match called {
            Ok(answer) => progress.check(&request, &answer),
            Err(error) => {
                progress.sent = error.executed() == Executed::Maybe;
                Err(Failed::new(error))
            }
        }
    }
}
