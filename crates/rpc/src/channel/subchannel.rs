//! The connection to one server of a channel: opened ahead, and again when it is lost or drains.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use weir_net::Connection;

use super::Shared;
use super::backoff::Backoff;
use super::pool::LinkState;
use super::stats::Counters;
use crate::wire::APPLICATION_PROTOCOL;

/// A connection that lasted this long was a success; what ends sooner counts as a failed attempt.
const LASTING: Duration = Duration::from_secs(1);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Connect(#[from] weir_net::ConnectError),
    #[error(transparent)]
    Connection(#[from] weir_net::ConnectionError),
    #[error("no handshake within {0}")]
    Timeout(weir_units::Duration),
    #[error("the server does not speak weir-rpc/1")]
    Protocol,
}

/// Runs for as long as the server is one of the channel's.
pub(super) async fn run(shared: Arc<Shared>, address: SocketAddr) {
    let mut backoff = Backoff::new(shared.settings.reconnect);
    loop {
        wait_until(&shared, address, true).await;
        shared.update(|pool| pool.set_state(address, LinkState::Connecting));
        match connect(&shared, address).await {
            Ok(connection) => {
                Counters::add(&shared.counters.connections);
                let start = Instant::now();
                let is_wanted = keep(&shared, address, connection).await;
                if !is_wanted || start.elapsed() >= LASTING {
                    backoff.reset();
                    continue;
                }
                // The first attempt after a loss is made at once.
                shared.update(|pool| pool.set_state(address, LinkState::Connecting));
            }
            Err(error) => {
                Counters::add(&shared.counters.connections_failed);
                tracing::debug!(%address, %error, "no connection");
                let state = LinkState::Failed(error.to_string());
                shared.update(|pool| pool.set_state(address, state));
                lost(&shared);
            }
        }
        let wait = backoff.next(shared.random.next());
        sleep(wait.into()).await;
    }
}

/// Establishes a connection.
async fn connect(shared: &Shared, address: SocketAddr) -> Result<Connection, Failure> {
    let by_address = address.ip().to_string();
    let name = shared.server_name.as_ref().unwrap_or(&by_address);
    let connecting = shared.endpoint.connect(address, name)?;
    let limit = shared.settings.connect_timeout;
    let connected = timeout(limit.into(), connecting).await;
    let connection = connected.map_err(|_| Failure::Timeout(limit))??;
    let protocol = connection.peer_identity().application_protocol;
    match protocol.as_deref() {
        Some(APPLICATION_PROTOCOL) => Ok(connection),
        _ => Err(Failure::Protocol),
    }
}

/// Offers a connection to calls until it is lost, drains, or is not wanted any more; returns
/// whether another one is. Calls that use it keep it open.
async fn keep(shared: &Shared, address: SocketAddr, connection: Connection) -> bool {
    let ready = LinkState::Ready(connection.clone());
    shared.update(|pool| pool.set_state(address, ready));
    tokio::select! {
        // Calls that are under way on a draining connection go on; new ones wait for the next one.
        () = connection.draining() => {
            match connection.error() {
                Some(error) => tracing::debug!(%address, %error, "a connection is lost"),
                None => tracing::debug!(%address, "a connection drains"),
            }
            shared.update(|pool| pool.set_state(address, LinkState::Connecting));
            lost(shared);
            true
        }
        () = wait_until(shared, address, false) => {
            shared.update(|pool| pool.set_state(address, LinkState::Idle));
            false
        }
    }
}

/// Waits until a connection is wanted, or until it is not.
async fn wait_until(shared: &Shared, address: SocketAddr, wanted: bool) {
    let mut changed = shared.changed.subscribe();
    while is_wanted(shared, address) != wanted {
        // The sender lives as long as the channel.
        let _ = changed.changed().await;
    }
}

fn is_wanted(shared: &Shared, address: SocketAddr) -> bool {
    let state = shared.state();
    let members = state.pool.members().iter();
    let mut wanted = members.take(state.pool.wanted());
    wanted.any(|member| member.address == address)
}

/// Has the name resolved again.
fn lost(shared: &Shared) {
    let now = shared.now();
    shared.state().resolution.on_connection_failure(now);
    shared.resolve.notify_one();
}
