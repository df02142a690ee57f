//! The server's side of connections: where a flow listens, and how a client gets in.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use weir_net::dcudp::{DcudpListener, DcudpStream};
use weir_net::{Connecting, Endpoint};

use super::context::Context;
use super::dcudp;
use super::dial::{describe, describe_quic};
use super::link::{Carrier, Link};
use super::meter::Meter;
use super::quic::{self, QuicStreams};
use super::tcp::socket;
use crate::control::{FlowFailure, FlowOrder, KernelTcp, LiveTransport};

/// Where a flow's connections come in.
pub(super) enum Door {
    /// At each address a listener.
    Tcp(Vec<TcpListener>, KernelTcp),
    /// The same, with TLS on it.
    Tls(Vec<TcpListener>, KernelTcp, TlsAcceptor),
    /// At all addresses.
    Quic(Endpoint),
    /// At each address a listener, and the name of their congestion control.
    Dcudp(Vec<DcudpListener>, &'static str),
}

/// A client at the door.
pub(super) enum Incoming {
    Tcp(TcpStream, KernelTcp),
    Tls(TcpStream, KernelTcp, TlsAcceptor),
    Quic(Connecting),
    Dcudp(DcudpStream, &'static str),
}

impl Door {
    /// Listens at the order's addresses.
    pub(super) fn open(order: &FlowOrder, context: &Context) -> Result<Self, FlowFailure> {
        let listen = |settings: &KernelTcp| {
            let listeners = order
                .local
                .iter()
                .map(|local| socket::listen(settings, *local));
            listeners.collect::<Result<Vec<_>, _>>()
        };
        match &order.transport {
            LiveTransport::Tcp(settings) => Ok(Self::Tcp(listen(settings)?, settings.clone())),
            LiveTransport::Tls { tcp, tls } => {
                let acceptor = context.tls.acceptor(&context.identity, tls);
                let acceptor = acceptor.map_err(|error| wrong(error.to_string()))?;
                Ok(Self::Tls(listen(tcp)?, tcp.clone(), acceptor))
            }
            LiveTransport::Quic {
                options,
                congestion,
            } => Ok(Self::Quic(quic::server(
                options,
                congestion,
                &order.local,
                &context.identity,
            )?)),
            LiveTransport::Dcudp {
                options,
                congestion,
            } => {
                let config = dcudp::config(options, congestion, order.seed)?;
                let listeners = dcudp::listen(&config, &order.local)?;
                Ok(Self::Dcudp(listeners, congestion.name()))
            }
            LiveTransport::Udp { .. } => Err(wrong("UDP carries `cbr` alone".to_owned())),
        }
    }

    /// Where it listens.
    pub(super) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        match self {
            Self::Tcp(listeners, _) | Self::Tls(listeners, ..) => {
                listeners.iter().map(TcpListener::local_addr).collect()
            }
            Self::Quic(endpoint) => Ok(endpoint.local_addresses()),
            Self::Dcudp(listeners, _) => {
                Ok(listeners.iter().map(DcudpListener::local_address).collect())
            }
        }
    }

    /// Waits for the next client.
    pub(super) async fn next(&self) -> Result<Incoming, FlowFailure> {
        match self {
            Self::Tcp(listeners, settings) => {
                let stream = accept(listeners).await?;
                Ok(Incoming::Tcp(stream, settings.clone()))
            }
            Self::Tls(listeners, settings, acceptor) => {
                let stream = accept(listeners).await?;
                Ok(Incoming::Tls(stream, settings.clone(), acceptor.clone()))
            }
            Self::Quic(endpoint) => {
                let connecting = endpoint.accept().await;
                let connecting = connecting.ok_or_else(|| wrong("the endpoint is gone".into()))?;
                Ok(Incoming::Quic(connecting))
            }
            Self::Dcudp(listeners, congestion) => {
                let mut arriving: FuturesUnordered<_> =
                    listeners.iter().map(DcudpListener::accept).collect();
                let stream = arriving.next().await.flatten();
                let stream = stream.ok_or_else(|| wrong("the sockets are gone".into()))?;
                Ok(Incoming::Dcudp(stream, congestion))
            }
        }
    }
}

impl Incoming {
    /// Lets the client in: shakes hands.
    pub(super) async fn enter(self, meter: &Arc<Meter>) -> Result<Link, FlowFailure> {
        let (carrier, probe, congestion) = match self {
            Self::Tcp(stream, settings) => {
                socket::adopt(&settings, &stream)?;
                let (probe, congestion) = describe(&stream)?;
                (Carrier::Tcp(stream), probe, congestion)
            }
            Self::Tls(stream, settings, acceptor) => {
                socket::adopt(&settings, &stream)?;
                let (probe, congestion) = describe(&stream)?;
                let stream = acceptor.accept(stream).await.map_err(no_handshake)?;
                let carrier = Carrier::Tls(Box::new(stream.into()));
                (carrier, probe, congestion)
            }
            Self::Dcudp(stream, congestion) => {
                let probe = dcudp::describe(&stream);
                (Carrier::Dcudp(stream), probe, Some(congestion.to_owned()))
            }
            Self::Quic(connecting) => {
                let connection = connecting.await.map_err(no_handshake)?;
                let (probe, congestion) = describe_quic(&connection);
                (
                    Carrier::Quic(QuicStreams::new(connection)),
                    probe,
                    congestion,
                )
            }
        };
        meter.note(|outcome| outcome.congestion = congestion);
        let watch = meter.watch(probe);
        Ok(Link::new(carrier, meter.clone(), watch))
    }
}

/// The next connection at any of the listeners.
async fn accept(listeners: &[TcpListener]) -> Result<TcpStream, FlowFailure> {
    poll_fn(|cx| {
        for listener in listeners {
            match listener.poll_accept(cx) {
                Poll::Ready(Ok((stream, _))) => return Poll::Ready(Ok(stream)),
                // The client has gone again; the kernel says so of the one that it was.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    cx.waker().wake_by_ref();
                }
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(wrong(format!("no connection is taken: {error}"))));
                }
                Poll::Pending => {}
            }
        }
        Poll::Pending
    })
    .await
}

fn wrong(problem: String) -> FlowFailure {
    FlowFailure::Order { problem }
}

fn no_handshake(error: impl std::fmt::Display) -> FlowFailure {
    FlowFailure::Lost {
        doing: "shaking hands".to_owned(),
        cause: error.to_string(),
    }
}
