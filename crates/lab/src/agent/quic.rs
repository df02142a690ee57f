//! DCQUIC endpoints and the streams of their connections.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use weir_congestion::AlgorithmSpec;
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Connection, Endpoint, EndpointBuilder, RecvStream, RetryPolicy, SendStream};
use weir_network::quic_transport;
use weir_scenario::QuicOptions;

use super::payload::BLOCK;
use crate::control::FlowFailure;

/// The application protocol (RFC 7301).
pub(super) const PROTOCOL: &[u8] = b"weir-lab";
/// The name that clients ask for; the pin decides.
pub(super) const SERVER_NAME: &str = "weir-lab";
/// The code with which connections are closed that are done.
const DONE: u64 = 0;

/// An endpoint that begins connections from these addresses.
pub(super) fn client(
    options: &QuicOptions,
    congestion: &AlgorithmSpec,
    local: &[SocketAddr],
    pin: Fingerprint,
) -> Result<Endpoint, FlowFailure> {
    let tls = ClientTls::pinned(pin)
        .application_protocols([PROTOCOL])
        .resumption(false)
        .build()
        .map_err(order)?;
    // Also with one address, which may change.
    let builder = builder(options, congestion)?
        .client(tls)
        .watch_interfaces(true);
    bind(builder, local)
}

/// An endpoint that takes connections at these addresses.
pub(super) fn server(
    options: &QuicOptions,
    congestion: &AlgorithmSpec,
    local: &[SocketAddr],
    identity: &Identity,
) -> Result<Endpoint, FlowFailure> {
    let tls = ServerTls::new(identity.clone())
        .application_protocols([PROTOCOL])
        .tickets(0)
        .build()
        .map_err(order)?;
    let builder = builder(options, congestion)?.server(tls);
    bind(builder.retry(RetryPolicy::Never), local)
}

fn builder(
    options: &QuicOptions,
    congestion: &AlgorithmSpec,
) -> Result<EndpointBuilder, FlowFailure> {
    let mut builder =
        Endpoint::builder().transport(quic_transport(options, congestion).map_err(order)?);
    if let Some(size) = options.socket_buffers {
        builder = builder.receive_buffer(size).send_buffer(size);
    }
    Ok(builder)
}

fn bind(builder: EndpointBuilder, local: &[SocketAddr]) -> Result<Endpoint, FlowFailure> {
    let (first, others) = local
        .split_first()
        .ok_or_else(|| order("the flow has no local address"))?;
    let builder = others
        .iter()
        .fold(builder, |builder, address| builder.also_at(*address));
    builder.bind(*first).map_err(order)
}

fn order(error: impl ToString) -> FlowFailure {
    FlowFailure::Order {
        problem: error.to_string(),
    }
}

/// The streams of a connection that are in use.
#[derive(Debug)]
pub(super) struct QuicStreams {
    connection: Connection,
    outgoing: Option<SendStream>,
    incoming: Option<RecvStream>,
}

impl QuicStreams {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            outgoing: None,
            incoming: None,
        }
    }

    /// One-way data, all on one stream; they leave at once.
    pub(super) async fn send(&mut self, head: &[u8], count: u64) -> io::Result<()> {
        let stream = match &mut self.outgoing {
            Some(stream) => stream,
            none => {
                let opened = self.connection.open_uni().await;
                none.insert(opened.map_err(io::Error::other)?)
            }
        };
        stream.write_all(head).await?;
        write(stream, count).await?;
        stream.flush();
        Ok(())
    }

    /// Ends one-way data, and waits until the peer has taken them and closed the connection.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        if let Some(stream) = &mut self.outgoing {
            stream.finish()?;
        }
        let end = self.connection.closed().await;
        match end.peer_code() {
            Some(DONE) => Ok(()),
            _ => Err(io::Error::other(end)),
        }
    }

    /// Sends a request on a stream of its own.
    pub(super) async fn request(&mut self, size: u64) -> io::Result<()> {
        let opened = self.connection.open_bi().await;
        let (mut send, receive) = opened.map_err(io::Error::other)?;
        self.incoming = Some(receive);
        write_and_finish(&mut send, size).await
    }

    /// Waits for the stream of the next request; `false` where the peer has closed the connection.
    pub(super) async fn accept(&mut self) -> io::Result<bool> {
        match self.connection.accept_bi().await {
            Ok((send, receive)) => {
                (self.outgoing, self.incoming) = (Some(send), Some(receive));
                Ok(true)
            }
            Err(end) if end.peer_code() == Some(DONE) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Responds on the stream of the request.
    pub(super) async fn respond(&mut self, size: u64) -> io::Result<()> {
        let stream = self.outgoing.take();
        let mut stream = stream.ok_or(io::ErrorKind::NotConnected)?;
        write_and_finish(&mut stream, size).await
    }

    /// The next piece of what arrives: how many bytes, 0 at its end.
    pub(super) async fn receive(&mut self) -> io::Result<usize> {
        let stream = self.stream().await?;
        let chunk = stream.read_chunk(BLOCK.len()).await?;
        Ok(chunk.map_or(0, |chunk| chunk.len()))
    }

    pub(super) async fn receive_exactly(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let stream = self.stream().await?;
        tokio::io::AsyncReadExt::read_exact(stream, buffer).await?;
        Ok(())
    }

    /// Reads the end of a message whose bytes have all arrived. A stream that is left without that
    /// would ask the peer to stop.
    pub(super) async fn end_message(&mut self) -> io::Result<()> {
        let ended = match &mut self.incoming {
            Some(stream) => stream.read_chunk(1).await?.is_none(),
            None => true,
        };
        self.incoming = None;
        match ended {
            true => Ok(()),
            false => Err(io::Error::other("the message is longer than it should be")),
        }
    }

    /// Ends the connection: all has arrived.
    pub(super) fn close(&self) {
        self.connection.close(DONE, b"");
    }

    /// Waits until the connection is over.
    pub(super) async fn closed(&self) {
        self.connection.closed().await;
    }

    /// What is being received: of the request, or else one-way data.
    async fn stream(&mut self) -> io::Result<&mut RecvStream> {
        match &mut self.incoming {
            Some(stream) => Ok(stream),
            none => {
                let accepted = self.connection.accept_uni().await;
                Ok(none.insert(accepted.map_err(io::Error::other)?))
            }
        }
    }
}

async fn write(stream: &mut SendStream, count: u64) -> io::Result<()> {
    let mut left = count;
    while left > 0 {
        let block = block(left);
        left -= block.len() as u64;
        stream.write_bytes(block).await?;
    }
    Ok(())
}

async fn write_and_finish(stream: &mut SendStream, count: u64) -> io::Result<()> {
    let last = count % BLOCK.len() as u64;
    write(stream, count - last).await?;
    Ok(stream.finish_with(block(last)).await?)
}

/// As much of so many bytes as goes at once.
fn block(count: u64) -> Bytes {
    let most = BLOCK
        .len()
        .min(usize::try_from(count).unwrap_or(usize::MAX));
    Bytes::from_static(&BLOCK[..most])
}
