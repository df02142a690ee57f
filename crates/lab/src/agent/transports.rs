//! The transports of flows: each of [`weir_traffic`]'s transports with the settings of a scenario.

use weir_congestion::AlgorithmSpec;
use weir_net::dcudp::DcudpConfig;
use weir_net::tls::{ClientTls, Fingerprint, ServerTls};
use weir_net::{Endpoint, EndpointBuilder, KnownClientsConfig, RetryPolicy};
use weir_network::{dcudp_transport, quic_transport};
use weir_scenario::{DcudpOptions, QuicOptions, TlsOptions};
use weir_traffic::Error;
use weir_traffic::dcquic::Dcquic;
use weir_traffic::dcudp::Dcudp;
use weir_traffic::tcp::{Tcp, TcpSettings};
use weir_traffic::tls::Tls;
use weir_units::{ByteSize, Duration};

use super::context::FlowContext;
use super::partial_transfer::order_failure;
use super::tls::PROTOCOL;
use crate::control::{FlowFailure, FlowOrder, Role};

/// The server name that DCQUIC clients ask for. The pin authenticates the server.
const SERVER_NAME: &str = "weir-lab";
/// The limit for a TCP connect, and for a handshake, if the order sets none.
const PATIENCE: Duration = Duration::from_secs(30);
/// The limit on DCUDP connections: the addresses and ports of a scenario's clients allow no more.
const MOST_CONNECTIONS: usize = 100_000;
/// The number of DCUDP receive windows that fit into a socket's buffer.
const WINDOWS: u64 = 8;

/// Returns kernel TCP for an order.
pub(super) fn tcp(order: &FlowOrder, settings: &TcpSettings) -> Tcp {
    Tcp {
        settings: settings.clone(),
        connect_timeout: Some(order.failover.unwrap_or(PATIENCE)),
    }
}

/// Returns TLS over kernel TCP for an order.
pub(super) fn tls(
    order: &FlowOrder,
    context: &FlowContext,
    settings: &TcpSettings,
    options: &TlsOptions,
) -> Result<Tls, FlowFailure> {
    let mut tls = Tls {
        tcp: tcp(order, settings),
        ..Tls::default()
    };
    match order.role {
        Role::Client => {
            let config = context.tls.client(pin(order)?, options);
            tls.client = Some(config.map_err(order_failure)?);
        }
        Role::Server => {
            let config = context.tls.server(&context.identity, options);
            tls.server = Some(config.map_err(order_failure)?);
        }
    }
    Ok(tls)
}

/// Returns DCQUIC for an order.
pub(super) fn quic(
    order: &FlowOrder,
    context: &FlowContext,
    options: &QuicOptions,
    congestion: &AlgorithmSpec,
) -> Result<Dcquic, FlowFailure> {
    let transport = quic_transport(options, congestion).map_err(order_failure)?;
    let mut builder = Endpoint::builder().transport(transport);
    if let Some(size) = options.socket_buffers {
        builder = builder.receive_buffer(size).send_buffer(size);
    }
    let endpoint = match order.role {
        Role::Client => quic_client(builder, order, options.known_peers)?,
        Role::Server => quic_server(builder, context, options.known_peers)?,
    };
    Ok(Dcquic {
        endpoint,
        server_name: SERVER_NAME.to_owned(),
        tickets: None,
        secrets: None,
        early_data: false,
    })
}

fn quic_client(
    builder: EndpointBuilder,
    order: &FlowOrder,
    known_peers: bool,
) -> Result<EndpointBuilder, FlowFailure> {
    let tls = ClientTls::pinned(pin(order)?)
        .application_protocols([PROTOCOL])
        .resumption(false)
        .known_peers(known_peers)
        .build()
        .map_err(order_failure)?;
    // Also with a single address, because it may change.
    Ok(builder.client(tls).watch_interfaces(true))
}

fn quic_server(
    builder: EndpointBuilder,
    context: &FlowContext,
    known_peers: bool,
) -> Result<EndpointBuilder, FlowFailure> {
    let mut tls = ServerTls::new(context.identity.clone())
        .application_protocols([PROTOCOL])
        .tickets(0);
    if known_peers {
        tls = tls.known_peers(KnownClientsConfig::default());
    }
    let tls = tls.build().map_err(order_failure)?;
    Ok(builder.server(tls).retry(RetryPolicy::Never))
}

/// Returns DCUDP for an order. Unless the order has another quantum, packets less than 100 us apart leave in
/// batches, which the host's link spaces at its own rate.
pub(super) fn dcudp(
    order: &FlowOrder,
    options: &DcudpOptions,
    congestion: &AlgorithmSpec,
) -> Result<Dcudp, FlowFailure> {
    let rate = options
        .rate
        .ok_or_else(|| order_failure("the rate of the link is missing"))?;
    let transport = dcudp_transport(options, congestion, rate).map_err(order_failure)?;
    let mut config = DcudpConfig::new(rate);
    let quantum = (options.pacing_quantum).unwrap_or(config.transport.pacing_quantum);
    let window = transport.packet_size.bytes() * u64::from(transport.receive_window);
    config.transport = transport;
    config.transport.pacing_quantum = quantum;
    config.transport.seed = order.seed;
    // All connections of a flow share one socket. Simulated hosts do not drop packets there either.
    config.buffers.receive = ByteSize::from_bytes(window * WINDOWS);
    config.max_connections = MOST_CONNECTIONS;
    Ok(Dcudp { config })
}

fn pin(order: &FlowOrder) -> Result<Fingerprint, FlowFailure> {
    let pin = order
        .server_fingerprint
        .as_deref()
        .ok_or_else(|| order_failure("the server's fingerprint is missing"))?;
    pin.parse().map_err(order_failure)
}

/// Converts an error at the set-up of a client or a listener.
pub(super) fn setup_failure(error: Error) -> FlowFailure {
    order_failure(error)
}

/// Converts an error at connection set-up.
pub(super) fn connect_failure(error: Error) -> FlowFailure {
    match error {
        Error::Refused { peer } => FlowFailure::Refused { peer },
        Error::NoAnswer { peer } => FlowFailure::NoAnswer { peer },
        Error::Failed { doing, source } => FlowFailure::Lost {
            doing: doing.to_owned(),
            cause: source.to_string(),
        },
        error @ Error::WrongCertificate { .. } => FlowFailure::Lost {
            doing: "shaking hands".to_owned(),
            cause: error.to_string(),
        },
        error => order_failure(error),
    }
}
