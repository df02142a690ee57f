//! The quiche driver: quiche with BoringSSL (its only TLS library), in a socket loop like the floor's.
//!
//! Pacing is off: quiche paces with `SO_TXTIME` time stamps, which loopback ignores. The client
//! accepts the same certificate as the other stacks; X25519 is the only group; BoringSSL chooses
//! AES-128-GCM by itself if the CPU has AES instructions.

use boring::error::ErrorStack;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use quiche::Config;
use weir_traffic::calls::driver::{
    ClientMemory, ClientOptions, Driver, Listening, Phase, RequestClient, ServerOptions,
};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::ALPN;
use weir_traffic::calls::{Capabilities, Error, TransportSpecification};
use weir_traffic::tls::{Identity, Trust};

use crate::settings::{CONNECTION_WINDOW, DEFAULT_PACKET, STREAM_WINDOW, udp_notes};

mod client;
mod clients;
mod connection;
mod replies;
mod send;
mod server;
mod sockets;

pub use connection::{connect, expire, offer_connection_ids, took_early_data, why_over};
pub use server::{Application, Server, Service};
pub use sockets::{Driven, Port, Sockets};

use replies::Replies;

/// The idle timeout of both sides in milliseconds.
const IDLE_TIMEOUT_MS: u64 = 30_000;

/// The stream limit of a client.
const STREAMS: u64 = 1000;

/// The driver of quiche.
pub struct Quiche;

impl Driver for Quiche {
    fn name(&self) -> &'static str {
        "quiche"
    }

    fn version(&self) -> String {
        format!(
            "quiche {} with BoringSSL (boring {})",
            locked_version("quiche"),
            locked_version("boring")
        )
    }

    fn supports(&self, phase: Phase) -> bool {
        phase != Phase::Known
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let mut config = config(
            &options.specification,
            server_tls(&options.identity).map_err(boring)?,
        )?;
        if options.early_data {
            config.enable_early_data();
        }
        let mut notes = udp_notes()?;
        notes.push("TLS by BoringSSL instead of rustls".to_owned());
        let service = Service::default();
        let server = Server::bind(options.bind, config, service, Replies::default())?;
        Ok(Listening {
            address: server.address(),
            serve: Box::pin(server.run()),
            notes,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn RequestClient>, Error> {
        let Trust::Certificate(certificate) = &options.trust else {
            return Err(Error::Unsupported {
                transport: "quiche",
                what: "believe a fingerprint; it needs the certificate".to_owned(),
            });
        };
        let tls = client_tls(certificate).map_err(boring)?;
        let mut config = config(&options.specification, tls)?;
        config.verify_peer(true);
        let keeps_tickets = options.memory == ClientMemory::Tickets;
        if keeps_tickets {
            config.enable_early_data();
        }
        Ok(Box::new(client::QuicheClient::new(
            config,
            options.server,
            keeps_tickets,
        )))
    }
}

fn config(specification: &TransportSpecification, tls: SslContextBuilder) -> Result<Config, Error> {
    specification.require(
        "quiche",
        Capabilities {
            packet_size: true,
            congestion: true,
            ..Capabilities::default()
        },
    )?;
    let windows = Windows {
        connection: CONNECTION_WINDOW,
        stream: STREAM_WINDOW,
        streams: STREAMS,
    };
    let make = || {
        let size = specification.packet_size.unwrap_or(DEFAULT_PACKET);
        let mut config = new_config(quiche::PROTOCOL_VERSION, tls, ALPN, &windows, Some(size))?;
        config.set_curves_list("X25519")?;
        config.set_cc_algorithm_name(specification.congestion.as_deref().unwrap_or("cubic"))?;
        config.set_max_connection_window(CONNECTION_WINDOW);
        config.set_max_stream_window(STREAM_WINDOW);
        Ok(config)
    };
    make().map_err(|error: quiche::Error| Error::transport("configuring quiche", error))
}

/// The flow-control limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Bytes on all streams of a connection.
    pub connection: u64,
    /// Bytes on each stream.
    pub stream: u64,
    /// Concurrent bidirectional streams.
    pub streams: u64,
}

/// Returns the base configuration. Packets have at most `packet_size` bytes, or quiche's default
/// size.
///
/// # Errors
/// Returns quiche's error.
pub fn new_config(
    version: u32,
    tls: SslContextBuilder,
    protocol: &[u8],
    windows: &Windows,
    packet_size: Option<u16>,
) -> quiche::Result<Config> {
    let mut config = Config::with_boring_ssl_ctx_builder(version, tls)?;
    config.set_application_protos(&[protocol])?;
    config.enable_pacing(false);
    config.set_max_idle_timeout(IDLE_TIMEOUT_MS);
    config.set_initial_max_data(windows.connection);
    config.set_initial_max_stream_data_bidi_local(windows.stream);
    config.set_initial_max_stream_data_bidi_remote(windows.stream);
    config.set_initial_max_streams_bidi(windows.streams);
    if let Some(size) = packet_size {
        config.set_max_send_udp_payload_size(size.into());
        config.set_max_recv_udp_payload_size(size.into());
    }
    Ok(config)
}

/// Returns the BoringSSL configuration of a server with this identity.
///
/// # Errors
/// Returns BoringSSL's error.
pub fn server_tls(identity: &Identity) -> Result<SslContextBuilder, ErrorStack> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    if let Some(certificate) = identity.chain().first() {
        tls.set_certificate(&*X509::from_der(certificate)?)?;
    }
    let key = identity.private_key().secret_der();
    tls.set_private_key(&*PKey::private_key_from_der(key)?)?;
    Ok(tls)
}

/// Returns the BoringSSL configuration of a client that trusts only this certificate (DER).
///
/// # Errors
/// Returns BoringSSL's error.
pub fn client_tls(certificate: &[u8]) -> Result<SslContextBuilder, ErrorStack> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    let mut store = X509StoreBuilder::new()?;
    store.add_cert(X509::from_der(certificate)?)?;
    tls.set_cert_store_builder(store);
    Ok(tls)
}

fn boring(error: ErrorStack) -> Error {
    Error::transport("configuring BoringSSL", error)
}
