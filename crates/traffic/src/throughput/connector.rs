//! Opens the data connections of a test, on the client.
//!
//! A TCP connection begins with a greeting that contains the test's token. Over DCQUIC and DCUDP
//! the client's stream begins with the token; data follows it, or is received on it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use weir_net::Endpoint;
use weir_net::dcudp::interface_rate;
use weir_net::tls::{ClientTls, Fingerprint};

use super::error::Error;
use super::lane::DataConnection;
use super::options::ClientOptions;
use super::parameters::{Side, Transport};
use super::port;
use super::protocol::{Greeting, Token};
use super::settings::{self, PROTOCOL};
use crate::byte_stream::ByteStream;
use crate::dcquic::{Dcquic, DcquicClient};
use crate::dcudp::{Dcudp, DcudpClients};
use crate::tcp::Tcp;
use crate::tls::{Tls, Trust, client_config};
use crate::transport::{Client as _, Connection, Start, StreamKind, Transport as _, send_all};

/// The requested server name; only the pin is verified.
const SERVER_NAME: &str = "weir-perf";

/// Opens the data connections, one after the other.
///
/// # Errors
/// [`Error::PinMissing`], [`Error::WrongPin`], [`Error::NoAnswer`] or another error of the transport.
pub(super) async fn open(
    options: &ClientOptions,
    server: SocketAddr,
    token: Token,
) -> Result<Vec<DataConnection>, Error> {
    let connector = Connector::new(options, server)?;
    let sends = Side::Client.sends(&options.parameters);
    let mut lanes = Vec::new();
    for _ in 0..options.parameters.parallel {
        let opening = connector.open(server, token, sends);
        let opened = timeout(options.timeout.into(), opening).await;
        let opened = opened.unwrap_or(Err(crate::Error::NoAnswer { peer: server }));
        lanes.push(opened.map_err(|error| failure(options, error))?);
    }
    Ok(lanes)
}

/// Converts an error to one in terms of the user's options.
fn failure(options: &ClientOptions, error: crate::Error) -> Error {
    match error {
        crate::Error::NoAnswer { .. } if options.key.is_some() => Error::WrongKey,
        crate::Error::NoAnswer { .. } if options.parameters.transport.uses_kernel_tcp() => {
            Error::NoAnswer {
                host: options.host.clone(),
                port: options.port,
                limit: options.timeout,
            }
        }
        crate::Error::NoAnswer { .. } => Error::UdpUnanswered {
            host: options.host.clone(),
            port: options.port,
            limit: options.timeout,
        },
        crate::Error::Refused { .. } => Error::Connect {
            host: options.host.clone(),
            port: options.port,
            source: io::ErrorKind::ConnectionRefused.into(),
        },
        error => error.into(),
    }
}

/// A client of one of the transports.
enum Connector {
    Dcquic(DcquicClient),
    /// With the local address of its socket.
    Dcudp(DcudpClients, SocketAddr),
    Tcp(Tcp),
    TcpTls(Tls),
}

impl Connector {
    fn new(options: &ClientOptions, server: SocketAddr) -> Result<Self, Error> {
        let test = &options.parameters;
        Ok(match test.transport {
            Transport::Dcquic => {
                let dcquic = dcquic(options)?;
                Self::Dcquic(dcquic.client(&[port::local_address_to(server)?])?)
            }
            Transport::Dcudp => {
                let mut config = settings::dcudp(test)?;
                // The server does not know by which interface it will reach the client.
                let interface = interface_rate(server).filter(|_| test.rate.is_none());
                if let Some(rate) = interface.filter(|_| !config.transport.udp_mode) {
                    config.transport.rate = rate;
                }
                config.transport.handshake_timeout = options.timeout;
                config.transport.shared_key = options.key.clone().map(|key| key as Arc<_>);
                Self::Dcudp(
                    Dcudp { config }.client(&[])?,
                    port::local_address_to(server)?,
                )
            }
            Transport::Tcp => Self::Tcp(settings::tcp(test)),
            Transport::TcpTls => {
                let trust = Trust::Fingerprint(pin(options)?);
                let config = client_config(&trust, PROTOCOL, None);
                Self::TcpTls(Tls {
                    tcp: settings::tcp(test),
                    client: Some(Arc::new(config.map_err(Error::certificate)?)),
                    ..Tls::default()
                })
            }
        })
    }

    /// Opens a connection.
    async fn open(
        &self,
        server: SocketAddr,
        token: Token,
        sends: bool,
    ) -> Result<DataConnection, crate::Error> {
        match self {
            Self::Dcquic(client) => {
                let connection = client.connect(None, server, Start::Full).await?;
                open_with_token(connection, token, sends).await
            }
            Self::Dcudp(client, local) => {
                let connection = client.connect(Some(*local), server, Start::Full).await?;
                open_with_token(connection, token, sends).await
            }
            Self::Tcp(tcp) => {
                let stream = connect_with_greeting(tcp, server, token).await?;
                DataConnection::new(ByteStream::new(stream), sends)
            }
            Self::TcpTls(tls) => {
                let stream = connect_with_greeting(&tls.tcp, server, token).await?;
                let connection = tls.connect_over(stream, server, Start::Full).await?;
                DataConnection::new(connection, sends)
            }
        }
    }
}

fn dcquic(options: &ClientOptions) -> Result<Dcquic, Error> {
    let mut transport = settings::dcquic(&options.parameters)?;
    transport.handshake_timeout = options.timeout;
    let tls = ClientTls::pinned(pin(options)?)
        .application_protocols([PROTOCOL])
        .resumption(false)
        .build()
        .map_err(Error::certificate)?;
    let mut endpoint = Endpoint::builder().transport(transport).client(tls);
    if let Some(policy) = &options.policy {
        endpoint = endpoint.policy(policy.clone());
    }
    Ok(Dcquic {
        endpoint,
        server_name: SERVER_NAME.to_owned(),
        tickets: None,
        secrets: None,
        early_data: false,
    })
}

fn pin(options: &ClientOptions) -> Result<Fingerprint, Error> {
    let missing = Error::PinMissing(options.parameters.transport.name());
    options.pin.ok_or(missing)
}

/// Opens a TCP connection to the server's listener, and sends the greeting that identifies it.
async fn connect_with_greeting(
    tcp: &Tcp,
    server: SocketAddr,
    token: Token,
) -> Result<TcpStream, crate::Error> {
    let mut stream = tcp.open(None, server).await?;
    let sent = stream.write_all(&Greeting::Data(token).encode()).await;
    sent.map_err(crate::Error::failed("greeting the server"))?;
    Ok(stream)
}

/// Opens the stream and sends the token.
async fn open_with_token(
    mut connection: impl Connection,
    token: Token,
    sends: bool,
) -> Result<DataConnection, crate::Error> {
    let token = Bytes::copy_from_slice(&token);
    let introduced = async {
        if sends {
            connection.open(StreamKind::OneWay).await?;
            send_all(&mut connection, token).await?;
            connection.flush().await
        } else {
            connection.open(StreamKind::TwoWay).await?;
            connection.end_message(token).await
        }
    };
    introduced
        .await
        .map_err(crate::Error::failed("greeting the server"))?;
    DataConnection::new(connection, sends)
}
