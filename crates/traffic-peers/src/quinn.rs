//! The quinn transport, with rustls and aws-lc-rs like the other rustls stacks here.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, Runtime, ServerConfig,
    TokioRuntime, TransportConfig, VarInt,
};
use weir_traffic::calls::driver::{ClientOptions, ServerOptions, any_port};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::ALPN;
use weir_traffic::calls::preset::Preset;
use weir_traffic::calls::{Capabilities, Error, TransportSpecification};
use weir_traffic::tls::{EarlyData, Tickets, client_config, server_config};
use weir_traffic::transport::Transport;

use crate::settings::{
    CONNECTION_WINDOW, STREAM_WINDOW, bound_to, gso_batch, initial_window, udp_notes, udp_socket,
};

mod connection;
mod socket;

pub use connection::{QuinnClient, QuinnConnection, QuinnIncoming, QuinnListener};
use socket::LimitedBatches;

/// The largest initial packet size: quinn panics when it pads a handshake packet to 16 KB or more.
/// Its path MTU discovery finds larger sizes.
const LARGEST_FIRST_PACKET: u16 = 16_000;

/// The preset of quinn.
pub struct Quinn;

impl Preset for Quinn {
    type Transport = QuinnTransport;

    fn name(&self) -> &'static str {
        "quinn"
    }

    fn version(&self) -> String {
        format!(
            "quinn {}, rustls {}",
            locked_version("quinn"),
            locked_version("rustls")
        )
    }

    fn server(&self, options: &ServerOptions) -> Result<QuinnTransport, Error> {
        let early_data = EarlyData::OverQuic.when(options.early_data);
        let tls = server_config(&options.identity, ALPN, 1, early_data)?;
        Ok(QuinnTransport {
            client: None,
            server: Some(new_server(tls, transport(&options.specification)?)?),
            packet_size: options.specification.packet_size,
            tickets: None,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<QuinnTransport, Error> {
        let tickets = options.tickets();
        let tls = client_config(&options.trust, ALPN, tickets.clone())?;
        Ok(QuinnTransport {
            client: Some(new_client(tls, transport(&options.specification)?)?),
            server: None,
            packet_size: options.specification.packet_size,
            tickets,
        })
    }

    fn local(&self, options: &ClientOptions) -> Vec<SocketAddr> {
        vec![any_port(options.server)]
    }

    fn notes(&self, _listener: &QuinnListener) -> Result<Vec<String>, Error> {
        udp_notes()
    }
}

fn transport(specification: &TransportSpecification) -> Result<TransportConfig, Error> {
    specification.require(
        "quinn",
        Capabilities {
            packet_size: true,
            congestion: true,
            ..Capabilities::default()
        },
    )?;
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(window(STREAM_WINDOW))
        .receive_window(window(CONNECTION_WINDOW))
        .send_window(CONNECTION_WINDOW);
    if let Some(size) = specification.packet_size {
        let first = size.min(LARGEST_FIRST_PACKET);
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(size);
        config
            .initial_mtu(first)
            .min_mtu(first)
            .mtu_discovery_config((size > first).then_some(discovery));
    }
    let initial = initial_window(specification.packet_size);
    let factory: Arc<dyn ControllerFactory + Send + Sync> =
        match specification.congestion.as_deref().unwrap_or("cubic") {
            "cubic" => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(initial);
                Arc::new(cubic)
            }
            "newreno" => {
                let mut newreno = NewRenoConfig::default();
                newreno.initial_window(initial);
                Arc::new(newreno)
            }
            "bbr" => Arc::new(BbrConfig::default()),
            other => {
                return Err(Error::Unsupported {
                    transport: "quinn",
                    what: format!("use {other:?}: it has cubic, newreno and bbr"),
                });
            }
        };
    config.congestion_controller_factory(factory);
    Ok(config)
}

fn window(bytes: u64) -> VarInt {
    VarInt::from_u64(bytes).unwrap_or(VarInt::MAX)
}

/// Returns a server's configuration.
///
/// # Errors
/// Fails if the TLS configuration does not fit QUIC.
pub fn new_server(
    tls: rustls::ServerConfig,
    transport: TransportConfig,
) -> Result<ServerConfig, weir_traffic::Error> {
    let tls = QuicServerConfig::try_from(tls).map_err(weir_traffic::Error::setting)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Returns a client's configuration.
///
/// # Errors
/// Fails if the TLS configuration does not fit QUIC.
pub fn new_client(
    tls: rustls::ClientConfig,
    transport: TransportConfig,
) -> Result<ClientConfig, weir_traffic::Error> {
    let tls = QuicClientConfig::try_from(tls).map_err(weir_traffic::Error::setting)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Opens an endpoint with packets of at most `packet_size` bytes.
///
/// # Errors
/// Fails if the address cannot be bound.
pub fn endpoint(
    bind: SocketAddr,
    packet_size: Option<u16>,
    server: Option<ServerConfig>,
) -> Result<Endpoint, weir_traffic::Error> {
    let unusable = |error: io::Error| weir_traffic::Error::setting(error);
    let mut config = EndpointConfig::default();
    if let Some(size) = packet_size {
        config
            .max_udp_payload_size(size)
            .map_err(weir_traffic::Error::setting)?;
    }
    let socket: UdpSocket = udp_socket(bind).map_err(unusable)?.into();
    let runtime = Arc::new(TokioRuntime);
    let inner = runtime.wrap_udp_socket(socket).map_err(unusable)?;
    let socket = Arc::new(LimitedBatches {
        inner,
        limit: gso_batch(packet_size),
    });
    Endpoint::new_with_abstract_socket(config, server, socket, runtime).map_err(unusable)
}

/// quinn as a transport.
pub struct QuinnTransport {
    client: Option<ClientConfig>,
    server: Option<ServerConfig>,
    /// UDP payload bytes per packet.
    packet_size: Option<u16>,
    tickets: Option<Arc<Tickets>>,
}

impl Transport for QuinnTransport {
    type Client = QuinnClient;
    type Listener = QuinnListener;

    fn client(&self, local: &[SocketAddr]) -> Result<QuinnClient, weir_traffic::Error> {
        let mut endpoint = endpoint(bound_to(local)?, self.packet_size, None)?;
        if let Some(config) = &self.client {
            endpoint.set_default_client_config(config.clone());
        }
        Ok(QuinnClient {
            local: endpoint
                .local_addr()
                .map_err(weir_traffic::Error::setting)?,
            endpoint,
            tickets: self.tickets.clone(),
        })
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<QuinnListener, weir_traffic::Error> {
        let endpoint = endpoint(bound_to(local)?, self.packet_size, self.server.clone())?;
        Ok(QuinnListener {
            local: endpoint
                .local_addr()
                .map_err(weir_traffic::Error::setting)?,
            endpoint,
        })
    }
}
