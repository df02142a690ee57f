//! Accepts TCP connections, within limits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::drain::Follower;
use super::{Inner, connection};
use crate::server::stats::Counters;
use crate::service::HttpService;

/// TLS handshakes at once.
const HANDSHAKES: usize = 1024;
/// The wait after a failure such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// How many connections there may be.
#[derive(Debug)]
pub(super) struct Limits {
    connections: Arc<Semaphore>,
    handshakes: Arc<Semaphore>,
}

/// Places for a connection.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) connection: OwnedSemaphorePermit,
    /// Given back after the handshake.
    pub(super) handshake: OwnedSemaphorePermit,
}

impl Limits {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            connections: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            handshakes: Arc::new(Semaphore::new(HANDSHAKES)),
        }
    }

    /// Waits for places; `None` never, as nothing closes the semaphores.
    async fn wait(&self) -> Option<Places> {
        Some(Places {
            connection: self.connections.clone().acquire_owned().await.ok()?,
            handshake: self.handshakes.clone().acquire_owned().await.ok()?,
        })
    }

    fn take(&self) -> Option<Places> {
        Some(Places {
            connection: self.connections.clone().try_acquire_owned().ok()?,
            handshake: self.handshakes.clone().try_acquire_owned().ok()?,
        })
    }
}

/// Accepts connections until the server shuts down, and then those that the kernel has accepted
/// before: their clients may have sent requests.
pub(super) async fn run(
    inner: Arc<Inner>,
    listener: Arc<TcpListener>,
    mut follower: Follower,
    service: impl HttpService,
) {
    let followed = follower.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = follower.draining() => break,
            accepted = accept(&inner.limits, &listener) => accepted,
        };
        let Some((stream, remote, places)) = accepted else {
            break;
        };
        start(&inner, (stream, remote), places, &followed, service.clone());
    }
    while let Ok((stream, remote)) = accepted_before(&listener) {
        if let Some(places) = inner.limits.take() {
            start(&inner, (stream, remote), places, &followed, service.clone());
        }
    }
}

fn start(
    inner: &Arc<Inner>,
    (stream, remote): (TcpStream, SocketAddr),
    places: Places,
    follower: &Follower,
    service: impl HttpService,
) {
    Counters::add(&inner.counters.accepted);
    let follower = follower.clone();
    tokio::spawn(connection::run(
        inner.clone(),
        stream,
        remote,
        places,
        follower,
        service,
    ));
}

async fn accept(
    limits: &Limits,
    listener: &TcpListener,
) -> Option<(TcpStream, SocketAddr, Places)> {
    let places = limits.wait().await?;
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => return Some((stream, remote, places)),
            // Of that connection alone.
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no TCP connection can be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Takes a connection that waits in the kernel.
fn accepted_before(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, remote) = SockRef::from(listener).accept()?;
    socket.set_nonblocking(true)?;
    let remote = remote.as_socket().ok_or(io::ErrorKind::InvalidData)?;
    Ok((TcpStream::from_std(socket.into())?, remote))
}
