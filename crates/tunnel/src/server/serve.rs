//! One client's connection, and each of its streams.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::timeout;
use weir_net::Connection;

use super::Shared;
use super::connect::connect;
use super::udp::{self, Datagrams};
use crate::carrier::{Broken, Carrier, DcquicStream};
use crate::flows::Flows;
use crate::header::{Header, LONGEST, Protocol};
use crate::identity::ClientIdentity;
use crate::refusal::Refusal;
use crate::relay::{End, relay};

/// How long a client may take to send a header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves the streams and datagrams of a connection until it ends.
pub(super) async fn serve(connection: Connection, client: ClientIdentity, shared: Arc<Shared>) {
    let datagrams = Arc::new(Datagrams {
        connection,
        flows: Flows::default(),
    });
    let streams = async {
        while let Ok((send, receive)) = datagrams.connection.accept_bi().await {
            let stream = DcquicStream::new(send, receive);
            let (client, shared) = (client.clone(), shared.clone());
            let datagrams = datagrams.clone();
            tokio::spawn(async move {
                serve_carrier(stream, &client, &shared, Some(&*datagrams)).await;
            });
        }
    };
    tokio::join!(streams, datagrams.flows.receive(&datagrams.connection));
}

/// Serves what one stream of a client asks for; datagrams are only beside DCQUIC's streams.
pub(super) async fn serve_carrier<C: Carrier>(
    mut carrier: C,
    client: &ClientIdentity,
    shared: &Shared,
    datagrams: Option<&Datagrams>,
) {
    let read = timeout(HEADER_TIMEOUT, read_header(&mut carrier)).await;
    let (header, rest) = match read {
        Ok(Ok(read)) => read,
        Ok(Err(None)) => return,
        Ok(Err(Some(_))) | Err(_) => {
            shared
                .counters
                .tunnel("unknown")
                .refused(Refusal::BadHeader);
            tracing::debug!(client = client.name(), "a stream without a valid header");
            return refuse(carrier, Refusal::BadHeader).await;
        }
    };
    let Ok(_place) = shared.places.clone().try_acquire_owned() else {
        return refuse_noted(carrier, client, &header, Refusal::TooMany, shared).await;
    };
    match header.protocol {
        Protocol::Tcp => serve_tcp(carrier, client, &header, rest, shared).await,
        Protocol::Udp => serve_udp(carrier, client, &header, shared, datagrams).await,
    }
}

/// Connects to the destination, and copies.
async fn serve_tcp<C: Carrier>(
    mut carrier: C,
    client: &ClientIdentity,
    header: &Header,
    rest: Bytes,
    shared: &Shared,
) {
    let tcp = match connect(shared, client, header).await {
        Ok(tcp) => tcp,
        Err(refusal) => return refuse_noted(carrier, client, header, refusal, shared).await,
    };
    let answer = Bytes::from_static(&[0]);
    if C::ANSWERS && send_all(&mut carrier, answer).await.is_err() {
        return;
    }
    let counters = shared.counters.tunnel(&header.destination.to_string());
    let open = counters.open(C::KIND);
    let end = relay(tcp, carrier, rest, &counters).await;
    drop(open);
    match end {
        End::Complete => {}
        End::TcpReset => counters.refused(Refusal::Reset),
        End::ByPeer(refusal) => counters.refused(refusal),
        End::CarrierLost => counters.lost.add(1),
    }
}

/// Opens a socket, and carries the flow.
async fn serve_udp<C: Carrier>(
    carrier: C,
    client: &ClientIdentity,
    header: &Header,
    shared: &Shared,
    datagrams: Option<&Datagrams>,
) {
    let Some(datagrams) = datagrams.filter(|_| shared.udp) else {
        return refuse_noted(carrier, client, header, Refusal::NotSupported, shared).await;
    };
    match udp::open(shared, client, header).await {
        Err(refusal) => refuse_noted(carrier, client, header, refusal, shared).await,
        Ok(socket) => match carrier.into_flow() {
            Ok(stream) => udp::carry(datagrams, stream, socket, header, shared).await,
            Err(carrier) => {
                refuse_noted(carrier, client, header, Refusal::NotSupported, shared).await;
            }
        },
    }
}

/// Refuses what a client asked for, and counts and logs that.
async fn refuse_noted<C: Carrier>(
    carrier: C,
    client: &ClientIdentity,
    header: &Header,
    refusal: Refusal,
    shared: &Shared,
) {
    log_refusal(client, header, refusal);
    let destination = header.destination.to_string();
    // Only allowed destinations have counters of their own: others would fill the table.
    let tunnel = match refusal {
        Refusal::Forbidden => "forbidden",
        _ => &destination,
    };
    shared.counters.tunnel(tunnel).refused(refusal);
    refuse(carrier, refusal).await;
}

fn log_refusal(client: &ClientIdentity, header: &Header, refusal: Refusal) {
    let (name, address) = (client.name(), client.address());
    let destination = &header.destination;
    match refusal {
        // Who guesses destinations should be seen.
        Refusal::Forbidden => {
            tracing::warn!(client = name, %address, %destination, "refused: {refusal}");
        }
        _ => tracing::info!(client = name, %address, %destination, "not connected: {refusal}"),
    }
}

/// Reads the header; returns it with the bytes behind it.
///
/// # Errors
/// `None` where the carrier ended, else why the bytes are no header.
async fn read_header<C: Carrier>(
    carrier: &mut C,
) -> Result<(Header, Bytes), Option<crate::header::HeaderError>> {
    let mut chunks = VecDeque::new();
    let mut read = BytesMut::new();
    loop {
        let received = poll_fn(|cx| carrier.poll_receive(cx, LONGEST, &mut chunks)).await;
        let more = received.map_err(|_: Broken| None)?;
        for chunk in chunks.drain(..) {
            read.extend_from_slice(&chunk);
        }
        match Header::decode(&read).map_err(Some)? {
            Some((header, length)) => {
                let mut rest = read.freeze();
                drop(rest.split_to(length));
                return Ok((header, rest));
            }
            None if !more => return Err(None),
            None => {}
        }
    }
}

async fn send_all<C: Carrier>(carrier: &mut C, mut data: Bytes) -> Result<(), Broken> {
    poll_fn(|cx| carrier.poll_send(cx, &mut data)).await?;
    poll_fn(|cx| carrier.poll_flush(cx)).await
}

/// Tells the client why it has no connection.
async fn refuse<C: Carrier>(mut carrier: C, refusal: Refusal) {
    if !C::ANSWERS {
        return carrier.reset(refusal);
    }
    let answering = async {
        send_all(&mut carrier, Bytes::copy_from_slice(&[refusal.code()])).await?;
        poll_fn(|cx| carrier.poll_finish(cx)).await
    };
    // A client that does not read it gets no reason.
    let _ = timeout(HEADER_TIMEOUT, answering).await;
}
