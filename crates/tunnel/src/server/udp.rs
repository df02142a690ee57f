//! UDP flows of clients to their destinations.

use std::sync::Arc;

use tokio::net::UdpSocket;
use weir_net::{Connection, RecvStream, SendStream};

use super::Shared;
use super::connect::resolve;
use super::source::Source;
use crate::carrier::CarrierKind;
use crate::flows::{Flow, Flows, LARGEST};
use crate::header::Header;
use crate::identity::ClientIdentity;
use crate::refusal::Refusal;

/// A client's connection with its flows.
#[derive(Debug)]
pub(super) struct Datagrams {
    pub(super) connection: Connection,
    pub(super) flows: Flows,
}

/// Opens a socket to a flow's destination.
///
/// # Errors
/// Why the client has no flow.
pub(super) async fn open(
    shared: &Shared,
    client: &ClientIdentity,
    header: &Header,
) -> Result<UdpSocket, Refusal> {
    let addresses = resolve(shared, client, &header.destination).await?;
    let address = addresses.first().ok_or(Refusal::NotFound)?;
    let source = Source::of(&shared.transparent, client, header)?;
    source
        .udp(*address)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NetworkUnreachable | std::io::ErrorKind::HostUnreachable => {
                Refusal::Unreachable
            }
            _ => Refusal::TooMany,
        })
}

/// Carries a flow until the client ends it, or nothing has come for long.
pub(super) async fn carry(
    datagrams: &Datagrams,
    (mut send, mut stream): (SendStream, RecvStream),
    socket: UdpSocket,
    header: &Header,
    shared: &Shared,
) {
    let counters = shared.counters.tunnel(&header.destination.to_string());
    let _open = counters.open(CarrierKind::Dcquic);
    let socket = Arc::new(socket);
    let number = stream.id().as_u64();
    let flow = Arc::new(Flow::new(socket.clone(), None, counters.clone()));
    datagrams.flows.insert(number, flow.clone());
    let replies = async {
        let mut buffer = vec![0; LARGEST];
        loop {
            // An error is that of an earlier datagram (ICMP): the flow goes on.
            if let Ok(length) = socket.recv(&mut buffer).await {
                flow.send(&datagrams.connection, number, &buffer[..length]);
            }
        }
    };
    tokio::select! {
        () = replies => {}
        () = flow.idle() => {}
        // Nothing follows the header: the stream ends with the flow.
        _ = stream.read_chunk(1) => {}
    }
    datagrams.flows.remove(number);
    // Where the connection is over the client knows.
    let _ = send.finish();
}
