//! Serves endpoints and connections, and drains.

use std::sync::{MutexGuard, PoisonError};

use tokio::task::JoinSet;
use weir_net::{Connection, ConnectionError, DeadlinePassed, Duration, Endpoint, SHUT_DOWN};

use super::{Server, ServerStats, call};
use crate::wire::APPLICATION_PROTOCOL;

/// Code with which a connection of another application protocol is closed.
const OTHER_PROTOCOL: u64 = 0x5745_0010;

impl Server {
    /// Accepts an endpoint's connections and answers their calls, until the endpoint or this server
    /// is shut down. Its TLS configuration has to accept [`APPLICATION_PROTOCOL`]; connections of
    /// other application protocols are closed.
    pub async fn serve(&self, endpoint: &Endpoint) {
        if !self.add(endpoint) {
            endpoint.close(SHUT_DOWN, b"the server was shut down before");
            return;
        }
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
                    tokio::spawn(call::run(self.shared.clone(), connection.clone(), stream));
                }
                Err(error) => return error,
            }
        }
    }

    /// Drains the endpoints being served (GOAWAY): new connections and calls are refused before they
    /// are executed, so that channels make them elsewhere; running ones get up to `limit` to end;
    /// then the endpoints are shut down.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where calls had to be given up.
    pub async fn shutdown(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        let limit = limit.into();
        let mut shutdowns = JoinSet::new();
        for endpoint in self.stop_serving() {
            shutdowns.spawn(async move { endpoint.shutdown(limit).await });
        }
        let results = shutdowns.join_all().await;
        results.into_iter().collect()
    }

    /// Returns the counters.
    pub fn stats(&self) -> ServerStats {
        self.shared.counters.stats()
    }

    /// Returns the number of handlers that run.
    pub fn running(&self) -> usize {
        self.shared.concurrency - self.shared.permits.available_permits()
    }

    /// Remembers an endpoint for [`Server::shutdown`]; `false` where that was called before.
    fn add(&self, endpoint: &Endpoint) -> bool {
        match &mut *self.endpoints() {
            Some(endpoints) => {
                endpoints.push(endpoint.clone());
                true
            }
            None => false,
        }
    }

    fn stop_serving(&self) -> Vec<Endpoint> {
        self.endpoints().take().unwrap_or_default()
    }

    fn endpoints(&self) -> MutexGuard<'_, Option<Vec<Endpoint>>> {
        let endpoints = self.shared.endpoints.lock();
        endpoints.unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("running", &self.running())
            .finish_non_exhaustive()
    }
}
