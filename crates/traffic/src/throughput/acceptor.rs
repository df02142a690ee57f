//! Accepts the data connections of a test, on the server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use weir_net::Endpoint;
use weir_net::tls::ServerTls;
use weir_units::Duration;

use super::error::Error;
use super::lane::DataConnection;
use super::options::ServerOptions;
use super::parameters::{Parameters, Side, Transport};
use super::port;
use super::protocol::Token;
use super::settings::{self, PROTOCOL};
use crate::dcquic::{Dcquic, DcquicListener};
use crate::dcudp::{Dcudp, DcudpListeners};
use crate::tcp::Tcp;
use crate::tls::{EarlyData, Tls, server_config};
use crate::transport::{Connection, Incoming, Listener, StreamKind, receive_exactly};

/// Accepts the connections of one test.
pub(super) struct Acceptor {
    listener: TestListener,
    parallel: u16,
    sends: bool,
    token: Token,
}

/// TCP connections arrive at the server's own listener, and begin with the token.
enum TestListener {
    Dcquic(DcquicListener),
    Dcudp(DcudpListeners),
    Tcp(Tcp),
    TcpTls(Tls),
}

impl Acceptor {
    /// Prepares to accept. `address` is the server's; DCQUIC and DCUDP listen on the same one over UDP.
    ///
    /// # Errors
    /// The error of the transport.
    pub(super) async fn new(
        test: &Parameters,
        options: &ServerOptions,
        address: SocketAddr,
        token: Token,
    ) -> Result<Self, Error> {
        let listener = match test.transport {
            Transport::Dcquic => TestListener::Dcquic(
                port::listen_when_free(&dcquic(test, options)?, address).await?,
            ),
            Transport::Dcudp => {
                TestListener::Dcudp(port::listen_when_free(&dcudp(test, options)?, address).await?)
            }
            Transport::Tcp => TestListener::Tcp(settings::tcp(test)),
            Transport::TcpTls => {
                let config = server_config(&options.identity, PROTOCOL, 0, EarlyData::Refused);
                TestListener::TcpTls(Tls {
                    tcp: settings::tcp(test),
                    server: Some(Arc::new(config.map_err(Error::certificate)?)),
                    ..Tls::default()
                })
            }
        };
        Ok(Self {
            listener,
            parallel: test.parallel,
            sends: Side::Server.sends(test),
            token,
        })
    }

    /// Accepts all connections. `streams` are the TCP connections that sent the test's token.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if one does not arrive within `limit` of the previous one.
    pub(super) async fn accept_all(
        &self,
        streams: &mut mpsc::Receiver<TcpStream>,
        limit: Duration,
    ) -> Result<Vec<DataConnection>, Error> {
        let mut lanes = Vec::new();
        for _ in 0..self.parallel {
            let accepted = timeout(limit.into(), self.accept(streams)).await;
            lanes.push(accepted.map_err(|_| Error::TimedOut {
                what: "the opening of a data connection",
                limit,
            })??);
        }
        Ok(lanes)
    }

    async fn accept(
        &self,
        streams: &mut mpsc::Receiver<TcpStream>,
    ) -> Result<DataConnection, Error> {
        let mut greeted = async || {
            let closed = Error::Closed("its data connections were awaited");
            streams.recv().await.ok_or(closed)
        };
        Ok(match &self.listener {
            TestListener::Dcquic(listener) => self.accept_one(listener).await?,
            TestListener::Dcudp(listener) => self.accept_one(listener).await?,
            TestListener::Tcp(tcp) => {
                DataConnection::new(tcp.adopt(greeted().await?)?, self.sends)?
            }
            TestListener::TcpTls(tls) => {
                DataConnection::new(tls.accept_over(greeted().await?).await?, self.sends)?
            }
        })
    }

    /// Returns the next connection with the test's token. Others are dropped.
    async fn accept_one(&self, listener: &impl Listener) -> Result<DataConnection, crate::Error> {
        loop {
            match self.accept_with_token(listener.accept().await?).await {
                Ok(lane) => return Ok(lane),
                Err(error) => tracing::info!(%error, "a data connection belongs to no test"),
            }
        }
    }

    /// Accepts the client's stream and reads the token.
    async fn accept_with_token(
        &self,
        incoming: impl Incoming,
    ) -> Result<DataConnection, crate::Error> {
        let mut connection = incoming.establish().await?;
        let read = self.read_token(&mut connection).await;
        read.map_err(crate::Error::failed("reading the token"))?;
        DataConnection::new(connection, self.sends)
    }

    async fn read_token(&self, connection: &mut impl Connection) -> io::Result<()> {
        let kind = if self.sends {
            StreamKind::TwoWay
        } else {
            StreamKind::OneWay
        };
        let mut token = Token::default();
        let came =
            connection.accept(kind).await? && receive_exactly(connection, &mut token).await?;
        if !came || token != self.token {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if self.sends {
            connection.message_ended().await?;
        }
        Ok(())
    }
}

fn dcquic(test: &Parameters, options: &ServerOptions) -> Result<Dcquic, Error> {
    let tls = ServerTls::new(options.identity.clone())
        .application_protocols([PROTOCOL])
        .build()
        .map_err(Error::certificate)?;
    let transport = settings::dcquic(test)?;
    let mut endpoint = Endpoint::builder().transport(transport).server(tls);
    if let Some(registry) = &options.metrics {
        endpoint = endpoint.metrics(registry);
    }
    if let Some(policy) = &options.policy {
        endpoint = endpoint.policy(policy.clone());
    }
    Ok(Dcquic {
        endpoint,
        server_name: String::new(),
        tickets: None,
        secrets: None,
        early_data: false,
    })
}

fn dcudp(test: &Parameters, options: &ServerOptions) -> Result<Dcudp, Error> {
    match (test.keyed, options.key.is_some()) {
        (true, false) => return Err(Error::KeyUnknown),
        (false, true) => return Err(Error::KeyNeeded),
        _ => {}
    }
    let mut config = settings::dcudp(test)?;
    config.transport.shared_key = options.key.clone().map(|key| key as Arc<_>);
    Ok(Dcudp { config })
}
