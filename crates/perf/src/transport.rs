//! Opening the data connections of a test, on both sides, whatever carries them.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use weir_units::Duration;

use crate::client::ClientOptions;
use crate::dcquic;
use crate::dcudp;
use crate::error::Error;
use crate::lane::{Ends, Lane, Side};
use crate::parameters::{Parameters, Transport};
use crate::path::Probe;
use crate::protocol::{Greeting, Token};
use crate::server::ServerOptions;
use crate::tcp::{self, ByteSink, ByteSource};
use crate::tls;

/// All data connections of a test.
pub(crate) struct Opened {
    pub(crate) lanes: Vec<Lane>,
    /// The congestion control that they use.
    pub(crate) congestion: String,
}

/// The client opens its data connections, one after the other.
///
/// # Errors
/// [`Error::PinMissing`], [`Error::WrongPin`], [`Error::NoAnswer`] or what else the transport says.
pub(crate) async fn open(
    options: &ClientOptions,
    server: SocketAddr,
    token: Token,
) -> Result<Opened, Error> {
    let test = &options.parameters;
    match test.transport {
        Transport::Dcquic => return dcquic::open(options, server, token).await,
        Transport::Dcudp => return dcudp::open(options, server, token).await,
        Transport::Tcp | Transport::TcpTls => {}
    }
    let tls = match (test.transport.is_secure(), options.pin) {
        (false, _) => None,
        (true, Some(pin)) => Some(tls::connector(pin)?),
        (true, None) => return Err(Error::PinMissing(test.transport.name())),
    };
    let mut opened = Opened {
        lanes: Vec::new(),
        congestion: String::new(),
    };
    for _ in 0..test.parallel {
        let lane = async {
            let mut stream = tcp::connect(options, server).await?;
            stream
                .write_all(&Greeting::Data(token).encode())
                .await
                .map_err(Error::stream("greeting the server"))?;
            opened.congestion = tcp::congestion(&stream);
            let (ends, probe) = (ends(&stream)?, tcp::probe(&stream)?);
            Ok(match &tls {
                None => lane(Side::Client, test, ends, probe, stream),
                Some(connector) => {
                    let stream = tls::connect(connector, server, stream).await?;
                    lane(Side::Client, test, ends, probe, stream)
                }
            })
        };
        let lane = timeout(options.timeout.into(), lane)
            .await
            .map_err(|_| Error::NoAnswer {
                host: options.host.clone(),
                port: options.port,
                limit: options.timeout,
            })?;
        opened.lanes.push(lane?);
    }
    Ok(opened)
}

/// How a server takes the data connections of one test.
pub(crate) enum Acceptor {
    Dcquic(dcquic::Acceptor),
    Dcudp(dcudp::Acceptor),
    Tcp,
    TcpTls(TlsAcceptor),
}

impl Acceptor {
    /// Prepares to take them. `address` is the server's; DCQUIC and DCUDP take the same
    /// one over UDP.
    ///
    /// # Errors
    /// What the transport needs and cannot have.
    pub(crate) async fn new(
        test: &Parameters,
        options: &ServerOptions,
        address: SocketAddr,
        token: Token,
    ) -> Result<Self, Error> {
        Ok(match test.transport {
            Transport::Dcquic => {
                Self::Dcquic(dcquic::Acceptor::bind(test, options, address, token).await?)
            }
            Transport::Dcudp => {
                Self::Dcudp(dcudp::Acceptor::bind(test, options, address, token).await?)
            }
            Transport::Tcp => Self::Tcp,
            Transport::TcpTls => Self::TcpTls(tls::acceptor(&options.identity)?),
        })
    }

    /// Takes all of them. `streams` are the TCP connections that greeted with the test's token.
    ///
    /// # Errors
    /// [`Error::TimedOut`] where one does not come within `limit` of the one before.
    pub(crate) async fn accept_all(
        &self,
        test: &Parameters,
        streams: &mut mpsc::Receiver<TcpStream>,
        limit: Duration,
    ) -> Result<Opened, Error> {
        let tls = match self {
            Self::Dcquic(acceptor) => return acceptor.accept_all(test, limit).await,
            Self::Dcudp(acceptor) => return acceptor.accept_all(test, limit).await,
            Self::Tcp => None,
            Self::TcpTls(acceptor) => Some(acceptor),
        };
        let mut opened = Opened {
            lanes: Vec::new(),
            congestion: String::new(),
        };
        for _ in 0..test.parallel {
            let lane = async {
                let stream = streams
                    .recv()
                    .await
                    .ok_or(Error::Closed("its data connections were awaited"))?;
                tcp::set_congestion(&(&stream).into(), test)?;
                opened.congestion = tcp::congestion(&stream);
                let (ends, probe) = (ends(&stream)?, tcp::probe(&stream)?);
                Ok(match tls {
                    None => lane(Side::Server, test, ends, probe, stream),
                    Some(acceptor) => {
                        let stream = tls::accept(acceptor, stream).await?;
                        lane(Side::Server, test, ends, probe, stream)
                    }
                })
            };
            let lane = timeout(limit.into(), lane)
                .await
                .map_err(|_| Error::TimedOut {
                    what: "the opening of a data connection",
                    limit,
                })?;
            opened.lanes.push(lane?);
        }
        Ok(opened)
    }
}

fn lane<S>(side: Side, test: &Parameters, ends: Ends, probe: Box<dyn Probe>, stream: S) -> Lane
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if side.sends(test) {
        Lane::sending(ends, probe, ByteSink(stream))
    } else {
        Lane::receiving(ends, probe, ByteSource::new(stream))
    }
}

fn ends(stream: &TcpStream) -> Result<Ends, Error> {
    let canonical =
        |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let ends = stream
        .local_addr()
        .and_then(|local| Ok((local, stream.peer_addr()?)));
    let (local, remote) = ends.map_err(Error::stream("reading a connection's addresses"))?;
    Ok(Ends {
        local: canonical(local),
        remote: canonical(remote),
    })
}
