//! The s2n-quic transport, with its rustls provider (aws-lc-rs) instead of s2n-tls, so that TLS is
//! the same for all stacks.

use std::io;
use std::net::SocketAddr;

use s2n_quic::client::{Builder as ClientBuilder, ClientProviders};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io::tokio::{Builder as IoBuilder, Provider as Io};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls::{Client as TlsClient, Server as TlsServer};
use s2n_quic::server::{Builder as ServerBuilder, ServerProviders};
use weir_traffic::calls::driver::{ClientOptions, Phase, ServerOptions, any_port};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::ALPN;
use weir_traffic::calls::preset::Preset;
use weir_traffic::calls::{Capabilities, Error, SOCKET_BUFFER, TransportSpecification};
use weir_traffic::tls::{EarlyData, client_config, server_config};
use weir_traffic::transport::Transport;

use crate::settings::{CONNECTION_WINDOW, STREAM_WINDOW, bound_to, gso_batch, udp_notes};

mod connection;

pub use connection::{S2nClient, S2nConnection, S2nListener};

/// IPv4 and UDP headers, which s2n-quic counts in its MTU.
const HEADERS: u16 = 28;

/// The preset of s2n-quic.
pub struct S2n;

impl Preset for S2n {
    type Transport = S2nTransport;

    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    fn version(&self) -> String {
        format!(
            "s2n-quic {} with rustls {}",
            locked_version("s2n-quic"),
            locked_version("rustls")
        )
    }

    fn supports(&self, phase: Phase) -> bool {
        !matches!(phase, Phase::Resumed | Phase::Known)
    }

    fn server(&self, options: &ServerOptions) -> Result<S2nTransport, Error> {
        let tls = server_config(&options.identity, ALPN, 1, EarlyData::Refused)?;
        S2nTransport::new(&options.specification, Tls::Server(tls))
    }

    fn client(&self, options: &ClientOptions) -> Result<S2nTransport, Error> {
        let tls = client_config(&options.trust, ALPN, None)?;
        S2nTransport::new(&options.specification, Tls::Client(tls))
    }

    fn local(&self, options: &ClientOptions) -> Vec<SocketAddr> {
        vec![any_port(options.server)]
    }

    fn notes(&self, _listener: &S2nListener) -> Result<Vec<String>, Error> {
        udp_notes()
    }
}

/// s2n-quic as a transport.
pub struct S2nTransport {
    tls: Tls,
    controller: Controller,
    /// UDP payload bytes per packet.
    packet_size: Option<u16>,
}

enum Tls {
    Client(rustls::ClientConfig),
    Server(rustls::ServerConfig),
}

/// The congestion control, which is a type parameter of an s2n-quic endpoint.
#[derive(Clone, Copy)]
enum Controller {
    Cubic,
    Bbr,
}

impl S2nTransport {
    fn new(specification: &TransportSpecification, tls: Tls) -> Result<Self, Error> {
        specification.require(
            "s2n-quic",
            Capabilities {
                packet_size: true,
                congestion: true,
                ..Capabilities::default()
            },
        )?;
        let controller = match specification.congestion.as_deref().unwrap_or("cubic") {
            "cubic" => Controller::Cubic,
            "bbr" => Controller::Bbr,
            other => {
                return Err(Error::Unsupported {
                    transport: "s2n-quic",
                    what: format!("use {other:?}: it has cubic and bbr"),
                });
            }
        };
        Ok(Self {
            tls,
            controller,
            packet_size: specification.packet_size,
        })
    }
}

/// The error of building an endpoint: each step of the builder has its own error type.
type Problem = Box<dyn std::error::Error + Send + Sync>;

impl Transport for S2nTransport {
    type Client = S2nClient;
    type Listener = S2nListener;

    fn client(&self, local: &[SocketAddr]) -> Result<S2nClient, weir_traffic::Error> {
        let address = bound_to(local)?;
        let start = || -> Result<_, Problem> {
            let Tls::Client(tls) = &self.tls else {
                return Err("this side of TLS is no client".into());
            };
            let client = client(tls.clone(), address, self.packet_size, limits()?)?;
            Ok(match self.controller {
                Controller::Cubic => client
                    .with_congestion_controller(Cubic::default())?
                    .start()?,
                Controller::Bbr => client.with_congestion_controller(Bbr::default())?.start()?,
            })
        };
        let client = start().map_err(weir_traffic::Error::setting)?;
        Ok(S2nClient { client })
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<S2nListener, weir_traffic::Error> {
        let address = bound_to(local)?;
        let start = || -> Result<_, Problem> {
            let Tls::Server(tls) = &self.tls else {
                return Err("this side of TLS is no server".into());
            };
            let server = server(tls.clone(), address, self.packet_size, limits()?)?;
            let server = match self.controller {
                Controller::Cubic => server
                    .with_congestion_controller(Cubic::default())?
                    .start()?,
                Controller::Bbr => server.with_congestion_controller(Bbr::default())?.start()?,
            };
            S2nListener::new(server)
        };
        start().map_err(weir_traffic::Error::setting)
    }
}

/// Returns a client builder with packets of at most `packet_size` bytes. The other providers are
/// s2n-quic's defaults.
///
/// # Errors
/// Fails if the socket cannot be opened.
pub fn client(
    tls: rustls::ClientConfig,
    bind: SocketAddr,
    packet_size: Option<u16>,
    limits: Limits,
) -> Result<ClientBuilder<impl ClientProviders>, weir_traffic::Error> {
    let make = || -> Result<_, Problem> {
        Ok(s2n_quic::Client::builder()
            .with_tls(TlsClient::from(tls))?
            .with_io(io(bind, packet_size)?)?
            .with_limits(limits)?)
    };
    make().map_err(weir_traffic::Error::setting)
}

/// Returns a server builder, like [`client`].
///
/// # Errors
/// Fails if the socket cannot be opened.
pub fn server(
    tls: rustls::ServerConfig,
    bind: SocketAddr,
    packet_size: Option<u16>,
    limits: Limits,
) -> Result<ServerBuilder<impl ServerProviders>, weir_traffic::Error> {
    let make = || -> Result<_, Problem> {
        Ok(s2n_quic::Server::builder()
            .with_tls(TlsServer::from(tls))?
            .with_io(io(bind, packet_size)?)?
            .with_limits(limits)?)
    };
    make().map_err(weir_traffic::Error::setting)
}

/// Returns a socket with large buffers for packets of `packet_size` bytes.
fn io(bind: SocketAddr, packet_size: Option<u16>) -> io::Result<Io> {
    let mut io = IoBuilder::default()
        .with_receive_address(bind)?
        .with_send_buffer_size(SOCKET_BUFFER.as_usize())?
        .with_recv_buffer_size(SOCKET_BUFFER.as_usize())?;
    if let Some(size) = packet_size {
        let mtu = size.saturating_add(HEADERS);
        io = io
            .with_max_mtu(mtu)?
            .with_initial_mtu(mtu)?
            .with_base_mtu(mtu)?;
        // If one packet fills a batch, s2n-quic's encoder copies overlapping memory (s2n-codec 0.91).
        if gso_batch(packet_size) == 1 {
            io = io.with_gso_disabled()?;
        }
    }
    io.build()
}

fn limits() -> Result<Limits, Problem> {
    Ok(Limits::new()
        .with_data_window(CONNECTION_WINDOW)?
        .with_bidirectional_local_data_window(STREAM_WINDOW)?
        .with_bidirectional_remote_data_window(STREAM_WINDOW)?)
}
