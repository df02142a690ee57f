//! quiche, with BoringSSL (it has no other), driven over the same kind of socket loop as the floor.
//!
//! Pacing is off: quiche paces by time stamps for `SO_TXTIME`, which loopback does not honour. The
//! client accepts the same certificate as the others; X25519 is the only group; BoringSSL chooses
//! AES-128-GCM by itself where the processor has AES instructions.

use std::net::SocketAddr;

use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use quiche::{Config, ConnectionId};
use weir_traffic::calls::driver::{Client, ClientOptions, Driver, Listening, Phase, ServerOptions};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::ALPN;
use weir_traffic::calls::{Abilities, Error, Identity, TransportSpecification, Trust};

use crate::settings::{CONNECTION_WINDOW, DEFAULT_PACKET, STREAM_WINDOW, udp_notes};
use crate::udp::Udp;

mod client;
mod send;
mod server;

/// Milliseconds of silence after which either side gives up.
const IDLE_TIMEOUT_MS: u64 = 30_000;

/// Streams that a client may have open.
const STREAMS: u64 = 1000;

/// Bytes of our connection IDs.
const ID_LENGTH: usize = 16;

/// The driver of quiche.
pub(crate) struct Quiche;

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

    fn supports(&self, _phase: Phase) -> bool {
        true
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let mut config = config(&options.specification, server_tls(&options.identity)?)?;
        if options.early_data {
            config.enable_early_data();
        }
        let mut notes = udp_notes()?;
        notes.push("TLS by BoringSSL instead of rustls".to_owned());
        let udp = Udp::bind(options.bind, false)?;
        Ok(Listening {
            address: udp.address(),
            serve: Box::pin(server::serve(udp, config)),
            notes,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn Client>, Error> {
        let mut config = config(&options.specification, client_tls(&options.trust)?)?;
        config.verify_peer(true);
        if options.resumption {
            config.enable_early_data();
        }
        Ok(Box::new(client::QuicheClient::new(
            config,
            options.server,
            options.resumption,
        )))
    }
}

fn config(specification: &TransportSpecification, tls: SslContextBuilder) -> Result<Config, Error> {
    specification.require(
        "quiche",
        Abilities {
            packet_size: true,
            congestion: true,
            ..Abilities::default()
        },
    )?;
    let make = || {
        let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
        config.set_application_protos(&[ALPN])?;
        config.set_curves_list("X25519")?;
        config.set_cc_algorithm_name(specification.congestion.as_deref().unwrap_or("cubic"))?;
        config.enable_pacing(false);
        config.set_max_idle_timeout(IDLE_TIMEOUT_MS);
        config.set_initial_max_data(CONNECTION_WINDOW);
        config.set_max_connection_window(CONNECTION_WINDOW);
        config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
        config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
        config.set_max_stream_window(STREAM_WINDOW);
        config.set_initial_max_streams_bidi(STREAMS);
        let size = usize::from(specification.packet_size.unwrap_or(DEFAULT_PACKET));
        config.set_max_send_udp_payload_size(size);
        config.set_max_recv_udp_payload_size(size);
        Ok(config)
    };
    make().map_err(|error: quiche::Error| Error::transport("configuring quiche", error))
}

fn boring(error: boring::error::ErrorStack) -> Error {
    Error::transport("configuring BoringSSL", error)
}

fn server_tls(identity: &Identity) -> Result<SslContextBuilder, Error> {
    let mut tls = SslContextBuilder::new(SslMethod::tls()).map_err(boring)?;
    let certificate = X509::from_der(identity.certificate()).map_err(boring)?;
    let key = PKey::private_key_from_der(identity.key()).map_err(boring)?;
    tls.set_certificate(&certificate).map_err(boring)?;
    tls.set_private_key(&key).map_err(boring)?;
    Ok(tls)
}

fn client_tls(trust: &Trust) -> Result<SslContextBuilder, Error> {
    let Trust::Certificate(certificate) = trust else {
        return Err(Error::Unsupported {
            transport: "quiche",
            what: "believe a fingerprint; it needs the certificate".to_owned(),
        });
    };
    let mut tls = SslContextBuilder::new(SslMethod::tls()).map_err(boring)?;
    let mut store = X509StoreBuilder::new().map_err(boring)?;
    let certificate = X509::from_der(certificate).map_err(boring)?;
    store.add_cert(&certificate).map_err(boring)?;
    tls.set_cert_store_builder(store);
    Ok(tls)
}

fn new_connection_id() -> Result<ConnectionId<'static>, Error> {
    let mut bytes = vec![0; ID_LENGTH];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|error| Error::transport("making a connection ID", error))?;
    Ok(ConnectionId::from_vec(bytes))
}

/// The address pair of a datagram that `udp` received.
fn received_from(udp: &Udp, from: SocketAddr) -> quiche::RecvInfo {
    quiche::RecvInfo {
        from,
        to: udp.address(),
    }
}
