//! The s2n-quic stack, with its rustls provider.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::connection::{Handle, StreamAcceptor};
use s2n_quic::provider::datagram::default::{
    DatagramError, Endpoint as Datagrams, Receiver, Sender,
};
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic::provider::limits::Limits;
use s2n_quic::stream::BidirectionalStream;
use weir_traffic_peers::s2n::{client, server};

use super::{
    Client, Connection, ConnectionStatus, HANDSHAKE_TIMEOUT, LARGEST_ECHO, Local, Result,
    SERVER_NAME, Server, Setup, Stack, tls,
};

mod events;

use events::{Counts, Events};

/// The capacity of the datagram send and receive queues.
const DATAGRAMS: usize = 100;

pub(super) struct S2n;

impl Stack for S2n {
    fn serve(&self, setup: &Setup) -> Result<Box<dyn Server>> {
        let (bind, size) = (setup.bind(), setup.packet_size);
        let mut server = server(tls::server(setup)?, bind, size, limits()?)?
            .with_event(Events)?
            .with_datagram(datagrams()?)?
            .with_endpoint_limits(Gate { retry: setup.retry })?
            .start()?;
        let address = server.local_addr()?;
        let connections = Rc::<RefCell<Vec<Handle>>>::default();
        let accepted = Rc::clone(&connections);
        tokio::task::spawn_local(async move {
            while let Some(connection) = server.accept().await {
                let (handle, streams) = connection.split();
                accepted.borrow_mut().push(handle.clone());
                tokio::spawn(echo_datagrams(handle));
                tokio::spawn(echo_streams(streams));
            }
        });
        Ok(Box::new(S2nServer {
            address,
            connections,
        }))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>> {
        let (bind, size) = (setup.bind(), setup.packet_size);
        let client = client(tls::client(setup)?, bind, size, limits()?)?
            .with_event(Events)?
            .with_datagram(datagrams()?)?
            .start()?;
        Ok(Box::new(S2nClient { client }))
    }
}

fn datagrams() -> Result<Datagrams> {
    let builder = Datagrams::builder().with_send_capacity(DATAGRAMS)?;
    Ok(builder.with_recv_capacity(DATAGRAMS)?.build()?)
}

fn limits() -> Result<Limits> {
    Ok(Limits::new().with_max_handshake_duration(HANDSHAKE_TIMEOUT)?)
}

/// Answers clients with a Retry packet if `retry` is set. s2n-quic calls it only for clients without
/// a token.
struct Gate {
    retry: bool,
}

impl Limiter for Gate {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt) -> Outcome {
        if self.retry {
            Outcome::retry()
        } else {
            Outcome::allow()
        }
    }
}

async fn echo_datagrams(handle: Handle) {
    while let Ok(data) = receive_datagram(&handle).await {
        // A datagram that does not fit counts as lost.
        let _ = handle.datagram_mut(|sender: &mut Sender| sender.send_datagram(data));
    }
}

async fn receive_datagram(handle: &Handle) -> Result<Bytes> {
    let received = poll_fn(|cx| {
        let polled = handle.datagram_mut(|receiver: &mut Receiver| receiver.poll_recv_datagram(cx));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(received)) => Poll::Ready(Ok(received)),
            Err(error) => Poll::Ready(Err(error)),
        }
    });
    let received: std::result::Result<Bytes, DatagramError> =
        received.await.map_err(|error| error.to_string())?;
    received.map_err(|error| error.to_string().into())
}

async fn echo_streams(mut streams: StreamAcceptor) {
    while let Ok(Some(stream)) = streams.accept_bidirectional_stream().await {
        tokio::spawn(echo_back(stream));
    }
}

async fn echo_back(stream: BidirectionalStream) {
    let (mut receive, mut send) = stream.split();
    while let Ok(Some(chunk)) = receive.receive().await {
        if send.send(chunk).await.is_err() {
            return;
        }
    }
    // The client may have closed the connection.
    let _ = send.finish();
}

struct S2nServer {
    address: SocketAddr,
    connections: Rc<RefCell<Vec<Handle>>>,
}

impl Server for S2nServer {
    fn address(&self) -> Result<SocketAddr> {
        Ok(self.address)
    }

    fn newest(&self) -> Option<ConnectionStatus> {
        self.connections.borrow().last().map(facts)
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        Box::pin(async { Err("s2n-quic updates keys near the cipher's limit only".into()) })
    }
}

struct S2nClient {
    client: s2n_quic::Client,
}

impl Client for S2nClient {
    fn connect(&self, to: SocketAddr) -> Local<'_, Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let connect = Connect::new(to).with_server_name(SERVER_NAME);
            let connection = self.client.connect(connect).await?;
            Ok(Box::new(S2nConnection(connection.handle())) as Box<dyn Connection>)
        })
    }

    fn connect_early(
        &self,
        _: SocketAddr,
        _: Bytes,
    ) -> Local<'_, Result<(Box<dyn Connection>, Bytes)>> {
        Box::pin(async { Err("s2n-quic sends no early data".into()) })
    }

    fn migrate(&self) -> Local<'_, Result<()>> {
        Box::pin(async { Err("s2n-quic's client does not migrate".into()) })
    }
}

struct S2nConnection(Handle);

impl Connection for S2nConnection {
    fn echo(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        let mut handle = self.0.clone();
        Box::pin(async move {
            let stream = handle.open_bidirectional_stream().await?;
            let (mut receive, mut send) = stream.split();
            let sending = async {
                send.send(data).await?;
                send.finish()?;
                Ok(())
            };
            let receiving = async {
                let mut received = Vec::new();
                while let Some(chunk) = receive.receive().await? {
                    received.extend_from_slice(&chunk);
                    if received.len() > LARGEST_ECHO {
                        return Err("the echo is longer than what was sent".into());
                    }
                }
                Result::Ok(received)
            };
            let ((), received) = tokio::try_join!(sending, receiving)?;
            Ok(received.into())
        })
    }

    fn datagram(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        Box::pin(async move {
            let sent = self
                .0
                .datagram_mut(|sender: &mut Sender| sender.send_datagram(data));
            sent.map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
            receive_datagram(&self.0).await
        })
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        Box::pin(async { Err("s2n-quic updates keys near the cipher's limit only".into()) })
    }

    fn facts(&self) -> ConnectionStatus {
        facts(&self.0)
    }

    fn close(&self) {
        self.0.close(0_u32.into());
    }
}

fn facts(handle: &Handle) -> ConnectionStatus {
    let counts = handle.query_event_context(|counts: &Counts| *counts);
    let counts = counts.unwrap_or_default();
    ConnectionStatus {
        peer: handle.remote_addr().ok(),
        key_updates: Some(counts.key_updates),
        ecn_works: Some(counts.ecn_works),
        ecn_marks: Some(counts.ecn_marks),
        ..ConnectionStatus::default()
    }
}
