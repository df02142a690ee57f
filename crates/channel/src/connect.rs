//! The connection to one server: opened ahead, and again when it is lost or drains.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use weir_net::Connection;

use crate::backoff::Backoff;
use crate::pool::LinkState;
use crate::protocol::{Link, Protocol};
use crate::servers::Shared;
use crate::stats::Counters;

/// A connection that lasted this long was a success; what ends sooner counts as a failed attempt.
const LASTING: Duration = Duration::from_secs(1);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Connect(#[from] weir_net::ConnectError),
    #[error(transparent)]
    Connection(#[from] weir_net::ConnectionError),
    #[error("no connection within {0}")]
    Timeout(weir_units::Duration),
    #[error("the server does not speak {}", String::from_utf8_lossy(.0))]
    Protocol(&'static [u8]),
    #[error("{0}")]
    Establish(String),
}

/// Runs for as long as the server is one of those that the name stands for.
pub(crate) async fn run<P: Protocol>(shared: Arc<Shared<P>>, address: SocketAddr) {
    let mut backoff = Backoff::new(shared.settings.reconnect);
    loop {
        wait_until(&shared, address, true).await;
        shared.update(|pool| pool.set_state(address, LinkState::Connecting));
        match establish(&shared, address).await {
            Ok(link) => {
                Counters::add(&shared.counters.connections);
                let start = Instant::now();
                let is_wanted = keep(&shared, address, link).await;
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
        let wait = backoff.next(shared.sources.random.next());
        sleep(wait.into()).await;
    }
}

/// Establishes a connection, and makes what calls use of it.
async fn establish<P: Protocol>(
    shared: &Shared<P>,
    address: SocketAddr,
) -> Result<P::Link, Failure> {
    let limit = shared.settings.connect_timeout;
    let establishing = async {
        let connection = connect(shared, address).await?;
        let link = shared.protocol.establish(connection).await;
        link.map_err(|error| Failure::Establish(error.to_string()))
    };
    let established = timeout(limit.into(), establishing).await;
    established.unwrap_or(Err(Failure::Timeout(limit)))
}

async fn connect<P: Protocol>(
    shared: &Shared<P>,
    address: SocketAddr,
) -> Result<Connection, Failure> {
    let by_address = address.ip().to_string();
    let name = shared.server_name.as_ref().unwrap_or(&by_address);
    let connection = shared.endpoint.connect(address, name)?.await?;
    let chosen = connection.peer_identity().application_protocol;
    if chosen.as_deref() == Some(P::APPLICATION_PROTOCOL) {
        Ok(connection)
    } else {
        Err(Failure::Protocol(P::APPLICATION_PROTOCOL))
    }
}

/// Offers a connection to calls until it is lost, drains, or is not wanted any more; returns
/// whether another one is. Calls that use it keep it open.
async fn keep<P: Protocol>(shared: &Shared<P>, address: SocketAddr, link: P::Link) -> bool {
    let ready = LinkState::Ready(link.clone());
    shared.update(|pool| pool.set_state(address, ready));
    tokio::select! {
        // Calls that are under way on a draining connection go on; new ones wait for the next one.
        () = link.draining() => {
            match link.error() {
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
async fn wait_until<P: Protocol>(shared: &Shared<P>, address: SocketAddr, wanted: bool) {
    let mut changed = shared.changed.subscribe();
    while is_wanted(shared, address) != wanted {
        // The sender lives as long as the servers.
        let _ = changed.changed().await;
    }
}

fn is_wanted<P: Protocol>(shared: &Shared<P>, address: SocketAddr) -> bool {
    let pool = shared.pool();
    let mut wanted = pool.members().iter().take(pool.wanted());
    wanted.any(|member| member.server().address == address)
}

/// Has the name resolved again.
fn lost<P: Protocol>(shared: &Shared<P>) {
    let now = shared.sources.now();
    shared.resolution().on_connection_failure(now);
    shared.resolve.notify_one();
}
