//! Serves endpoints and connections, and drains.

use std::sync::PoisonError;

use weir_net::{Connection, ConnectionError, DeadlinePassed, Duration, Endpoint, SHUT_DOWN};

use super::call::Call;
use super::{Server, ServerStats};
use crate::wire::APPLICATION_PROTOCOL;

/// Code with which a connection of another application protocol is closed.
const OTHER_PROTOCOL: u64 = 0x5745_0010;

impl Server {
    /// Accepts an endpoint's connections and answers their calls, until the endpoint or this server
    /// is shut down. Its TLS configuration has to accept [`APPLICATION_PROTOCOL`]; connections of
    /// other application protocols are closed.
    pub async fn serve(&self, endpoint: &Endpoint) {
        self.add(endpoint);
        while let Some(connecting) = endpoint.accept().await {
            let server = self.clone();
            tokio::spawn(async move {
                let remote = connecting.remote_address();
                match connecting.await {
                    Ok(connection) => {
                        let error = server.serve_connection(&connection).await;
                        tracing::debug!(%remote, %error, "a connection ended");
                    }
                    Err(error) => tracing::debug!(%remote, %error, "no connection"),
                }
            });
        }
    }

    /// Answers the calls of one connection until it ends; returns the reason.
    pub async fn serve_connection(&self, connection: &Connection) -> ConnectionError {
        let protocol = connection.peer_identity().application_protocol;
        if protocol.as_deref() != Some(APPLICATION_PROTOCOL) {
            connection.close(OTHER_PROTOCOL, b"this server speaks weir-rpc/1 only");
            return connection.closed().await;
        }
        loop {
            match connection.accept_bi().await {
                Ok(stream) => {
                    tokio::spawn(Call::run(self.shared.clone(), connection.clone(), stream));
                }
                Err(error) => return error,
            }
        }
    }

    /// Drains: new calls are refused before they are executed, so that channels make them
    /// elsewhere; running ones get up to `limit` to end; then the endpoints being served shut down.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where calls had to be given up.
    pub async fn shutdown(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        self.shared.draining.send_replace(true);
        let mut running = self.shared.running.subscribe();
        let idle = running.wait_for(|count| *count == 0);
        let drained = tokio::time::timeout(limit.into().into(), idle).await;
        for endpoint in self.endpoints() {
            endpoint.close(SHUT_DOWN, b"the server shuts down");
        }
        drained.map(|_| ()).map_err(|_| DeadlinePassed)
    }

    /// Returns the counters.
    pub fn stats(&self) -> ServerStats {
        self.shared.counters.stats()
    }

    /// Returns the number of calls that have not ended, answers on their way included.
    pub fn running(&self) -> usize {
        *self.shared.running.borrow()
    }

    fn add(&self, endpoint: &Endpoint) {
        let endpoints = self.shared.endpoints.lock();
        endpoints
            .unwrap_or_else(PoisonError::into_inner)
            .push(endpoint.clone());
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        let endpoints = self.shared.endpoints.lock();
        std::mem::take(&mut *endpoints.unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("running", &self.running())
            .finish_non_exhaustive()
    }
}
