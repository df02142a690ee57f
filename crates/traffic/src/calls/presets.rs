//! The presets of this crate's transports.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use weir_congestion::AlgorithmSpec;
use weir_net::tls::{ClientTls, Roots, ServerTls};
use weir_net::{Endpoint, EndpointBuilder, KnownClientsConfig};
use weir_quic::PacketSizePolicy;
use weir_units::{ByteSize, Duration};

use crate::calls::driver::{ClientMemory, ClientOptions, Phase, ServerOptions, any_port};
use crate::calls::environment::locked_version;
use crate::calls::error::Error;
use crate::calls::identity::{ALPN, SERVER_NAME};
use crate::calls::preset::Preset;
use crate::calls::specification::{Capabilities, TransportSpecification};
use crate::dcquic::{Dcquic, DcquicListener, settings};
use crate::tcp::{Tcp, TcpListeners, TcpSettings, check_fast_open};
use crate::tls::{EarlyData, Tls, TlsListeners, Trust, client_config, server_config};

/// Kernel TCP without encryption. The default congestion control is CUBIC, independent of the
/// system's: the paper's comparison used CUBIC, and results must not depend on a sysctl.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpPreset;

/// The kernel's congestion control if none is named.
const KERNEL_CONGESTION: &str = "cubic";

fn tcp(transport: &'static str, specification: &TransportSpecification) -> Result<Tcp, Error> {
    specification.require(
        transport,
        Capabilities {
            congestion: true,
            fast_open: true,
            ..Capabilities::default()
        },
    )?;
    if specification.fast_open {
        check_fast_open()?;
    }
    let congestion = specification.congestion.as_deref();
    Ok(Tcp {
        settings: TcpSettings {
            congestion: Some(congestion.unwrap_or(KERNEL_CONGESTION).to_owned()),
            fast_open: specification.fast_open,
            ..TcpSettings::default()
        },
        connect_timeout: None,
    })
}

fn kernel_note(sockets: &TcpListeners) -> Vec<String> {
    let congestion = sockets.congestion().unwrap_or_default();
    vec![format!("kernel congestion control {congestion}")]
}

impl Preset for TcpPreset {
    type Transport = Tcp;

    fn name(&self) -> &'static str {
        "tcp"
    }

    fn version(&self) -> String {
        "kernel TCP".to_owned()
    }

    fn supports(&self, phase: Phase) -> bool {
        !matches!(phase, Phase::Resumed | Phase::Known)
    }

    fn is_authenticated(&self) -> bool {
        false
    }

    fn server(&self, options: &ServerOptions) -> Result<Tcp, Error> {
        tcp(self.name(), &options.specification)
    }

    fn client(&self, options: &ClientOptions) -> Result<Tcp, Error> {
        tcp(self.name(), &options.specification)
    }

    fn notes(&self, listener: &TcpListeners) -> Result<Vec<String>, Error> {
        Ok(kernel_note(listener))
    }
}

/// TLS 1.3 over kernel TCP: the baseline of DCQUIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpTlsPreset;

impl Preset for TcpTlsPreset {
    type Transport = Tls;

    fn name(&self) -> &'static str {
        "tcp-tls"
    }

    fn version(&self) -> String {
        format!(
            "kernel TCP, rustls {}, tokio-rustls {}",
            locked_version("rustls"),
            locked_version("tokio-rustls")
        )
    }

    fn server(&self, options: &ServerOptions) -> Result<Tls, Error> {
        let early_data = EarlyData::OverTcp.when(options.early_data);
        let config = server_config(&options.identity, ALPN, 1, early_data)?;
        Ok(Tls {
            tcp: tcp(self.name(), &options.specification)?,
            server: Some(Arc::new(config)),
            ..Tls::default()
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Tls, Error> {
        let tickets = options.tickets();
        let config = client_config(&options.trust, ALPN, tickets.clone())?;
        let name = ServerName::try_from(SERVER_NAME)
            .map_err(|error| Error::transport("reading the server's name", error))?;
        Ok(Tls {
            tcp: tcp(self.name(), &options.specification)?,
            client: Some(Arc::new(config)),
            server_name: Some(name),
            tickets,
            ..Tls::default()
        })
    }

    fn notes(&self, listener: &TlsListeners) -> Result<Vec<String>, Error> {
        Ok(kernel_note(&listener.sockets))
    }
}

/// DCQUIC. A call is a bidirectional stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct DcquicPreset;

/// The requested size of the UDP socket buffers, for all stacks that are compared.
pub const SOCKET_BUFFER: ByteSize = ByteSize::from_mib(4);
/// The second address of a client that holds a path ready: another address of the loopback interface.
const STANDBY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);
/// The UDP payload over IPv4 with an MTU of 9000.
const JUMBO: ByteSize = ByteSize::from_bytes(8972);
/// The time that the low-latency setting polls for a reply before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

impl DcquicPreset {
    fn builder(self, specification: &TransportSpecification) -> Result<EndpointBuilder, Error> {
        specification.require(
            self.name(),
            Capabilities {
                packet_size: true,
                congestion: true,
                spin: true,
                fast_open: false,
                paths_and_sizes: true,
            },
        )?;
        let packet_size = specification.packet_size;
        let mut transport = settings(packet_size.map(|size| ByteSize::from_bytes(size.into())));
        if specification.by_task {
            transport.packet_size = Some(JUMBO);
            transport.packet_size_policy = PacketSizePolicy::ByTask;
        }
        if let Some(text) = &specification.congestion {
            let algorithm: AlgorithmSpec = text
                .parse()
                .map_err(|error| Error::transport("choosing the congestion control", error))?;
            transport.congestion = algorithm.into();
        }
        let buffer = specification.socket_buffer.unwrap_or(SOCKET_BUFFER);
        Ok(Endpoint::builder()
            .transport(transport)
            .receive_buffer(buffer)
            .send_buffer(buffer)
            .low_latency(specification.spin.then_some(SPIN)))
    }
}

impl Preset for DcquicPreset {
    type Transport = Dcquic;

    fn name(&self) -> &'static str {
        "dcquic"
    }

    fn version(&self) -> String {
        format!("weir {}", env!("CARGO_PKG_VERSION"))
    }

    fn supports(&self, _phase: Phase) -> bool {
        true
    }

    fn server(&self, options: &ServerOptions) -> Result<Dcquic, Error> {
        let tls = ServerTls::new(options.identity.clone())
            .application_protocols([ALPN])
            .early_data(options.early_data)
            .tickets(1)
            .known_peers(KnownClientsConfig::default())
            .build()
            .map_err(|error| Error::transport("configuring TLS", error))?;
        Ok(Dcquic {
            endpoint: self.builder(&options.specification)?.server(tls),
            server_name: SERVER_NAME.to_owned(),
            tickets: None,
            secrets: None,
            early_data: true,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Dcquic, Error> {
        let tickets = options.tickets();
        let unusable = |error| Error::transport("configuring TLS", error);
        let tls = match &options.trust {
            Trust::Certificate(certificate) => {
                let certificate = CertificateDer::from(certificate.clone());
                let roots = Roots::from_certificates(&[certificate]).map_err(unusable)?;
                ClientTls::with_roots(roots).map_err(unusable)?
            }
            Trust::Fingerprint(fingerprint) => ClientTls::pinned(*fingerprint),
        };
        let tls = tls.application_protocols([ALPN]);
        let tls = match &tickets {
            Some(tickets) => tls.early_data(true).session_store(tickets.clone()),
            None => tls.resumption(false),
        };
        let remembers = options.memory == ClientMemory::Secrets;
        let tls = tls.known_peers(remembers);
        let tls = tls.build().map_err(unusable)?;
        Ok(Dcquic {
            endpoint: self.builder(&options.specification)?.client(tls.clone()),
            server_name: SERVER_NAME.to_owned(),
            tickets,
            secrets: remembers.then_some(tls),
            early_data: false,
        })
    }

    fn local(&self, options: &ClientOptions) -> Vec<SocketAddr> {
        let standby = options.specification.armed.then_some(STANDBY);
        let first = any_port(options.server);
        [first].into_iter().chain(standby).collect()
    }

    fn notes(&self, listener: &DcquicListener) -> Result<Vec<String>, Error> {
        let buffers = listener.socket_buffers();
        Ok(vec![format!(
            "UDP socket buffers: {} to receive, {} to send",
            buffers.receive, buffers.send
        )])
    }
}
