//! Connections to destinations: what the policy allows, and why others fail.

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::Shared;
use super::source::Source;
use crate::destination::{Destination, Host};
use crate::header::Header;
use crate::identity::ClientIdentity;
use crate::proxy_protocol;
use crate::refusal::Refusal;

/// Returns the addresses of a destination that a client may reach.
///
/// # Errors
/// [`Refusal::Forbidden`], before any name is resolved where none could be allowed, and
/// [`Refusal::NotFound`].
pub(super) async fn resolve(
    shared: &Shared,
    client: &ClientIdentity,
    destination: &Destination,
) -> Result<Vec<SocketAddr>, Refusal> {
    let policy = shared.access.current();
    if !policy.allows(&client.request(destination, None)) {
        return Err(Refusal::Forbidden);
    }
    let port = destination.port();
    let name = match destination.host() {
        Host::Address(address) => return Ok(vec![SocketAddr::new(*address, port)]),
        Host::Name(name) => name,
    };
    let found = timeout(shared.connect_timeout.into(), lookup_host((&**name, port))).await;
    let found = found.map_err(|_| Refusal::TimedOut)?;
    let found: Vec<_> = found.map_err(|_| Refusal::NotFound)?.collect();
    if found.is_empty() {
        return Err(Refusal::NotFound);
    }
    let allowed = found.into_iter().filter(|address| {
        let address = address.ip().to_canonical();
        policy.allows(&client.request(destination, Some(address)))
    });
    let allowed: Vec<_> = allowed.collect();
    if allowed.is_empty() {
        return Err(Refusal::Forbidden);
    }
    Ok(allowed)
}

/// Connects to the destination of a stream, at the first of its addresses that answers.
///
/// # Errors
/// Why it could not be reached.
pub(super) async fn connect(
    shared: &Shared,
    client: &ClientIdentity,
    header: &Header,
) -> Result<TcpStream, Refusal> {
    let addresses = resolve(shared, client, &header.destination).await?;
    let source = Source::of(&shared.transparent, client, header)?;
    let connecting = timeout(shared.connect_timeout.into(), first_of(&addresses, source));
    let mut tcp = connecting.await.map_err(|_| Refusal::TimedOut)??;
    // Requests and replies leave at once; where that fails they are only later.
    let _ = tcp.set_nodelay(true);
    if shared.proxy_protocol {
        let own = tcp.peer_addr().map_err(|_| Refusal::Reset)?;
        let told = proxy_protocol::header(header.source, own);
        tcp.write_all(&told).await.map_err(|_| Refusal::Reset)?;
    }
    Ok(tcp)
}

async fn first_of(addresses: &[SocketAddr], source: Source) -> Result<TcpStream, Refusal> {
    let mut failure = Refusal::NotFound;
    for address in addresses {
        match source.connect(*address).await {
            Ok(tcp) => return Ok(tcp),
            Err(error) => failure = of_error(&error),
        }
    }
    Err(failure)
}

fn of_error(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
            Refusal::ConnectionRefused
        }
        io::ErrorKind::TimedOut => Refusal::TimedOut,
        _ => Refusal::Unreachable,
    }
}
