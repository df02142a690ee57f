//! quiche, with BoringSSL (it has no other).
//!
//! quiche is a state machine: [`core`] drives it over sockets, [`link`] is one connection, [`client`]
//! and [`server`] are what the cases hold. Pacing is off: quiche paces by time stamps for
//! `SO_TXTIME`, which loopback does not honour.

use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use quiche::{Config, ConnectionId};

use super::{ALPN, Client, Result, Server, Setup, Stack};

mod client;
mod core;
mod link;
mod server;

/// Bytes of our connection IDs.
const ID_LENGTH: usize = 16;
/// Milliseconds of silence after which a connection ends.
const IDLE_TIMEOUT_MS: u64 = 30_000;
const CONNECTION_WINDOW: u64 = 4 << 20;
const STREAM_WINDOW: u64 = 1 << 20;
const STREAMS: u64 = 100;
/// How many datagrams wait to be sent or read.
const DATAGRAMS: usize = 100;
/// Of the reserved versions, which nobody speaks (RFC 9000, section 15).
const RESERVED_VERSION: u32 = 0xbaba_baba;

pub(super) struct Quiche;

impl Stack for Quiche {
    fn serve(&self, setup: &Setup) -> Result<Box<dyn Server>> {
        let mut tls = SslContextBuilder::new(SslMethod::tls())?;
        let chain = setup.identity.chain();
        let certificate = chain.first().ok_or("no certificate")?;
        tls.set_certificate(&*X509::from_der(certificate)?)?;
        let key = setup.identity.private_key().secret_der();
        tls.set_private_key(&*PKey::private_key_from_der(key)?)?;
        server::serve(setup, config(setup, quiche::PROTOCOL_VERSION, tls)?)
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>> {
        let mut tls = SslContextBuilder::new(SslMethod::tls())?;
        let mut store = X509StoreBuilder::new()?;
        for certificate in setup.identity.chain() {
            store.add_cert(X509::from_der(certificate)?)?;
        }
        tls.set_cert_store_builder(store);
        let version = if setup.unknown_version {
            RESERVED_VERSION
        } else {
            quiche::PROTOCOL_VERSION
        };
        let mut config = config(setup, version, tls)?;
        config.verify_peer(true);
        client::client(setup, config)
    }
}

fn config(setup: &Setup, version: u32, tls: SslContextBuilder) -> Result<Config> {
    let mut config = Config::with_boring_ssl_ctx_builder(version, tls)?;
    config.set_application_protos(&[ALPN])?;
    config.enable_pacing(false);
    config.set_max_idle_timeout(IDLE_TIMEOUT_MS);
    config.set_initial_max_data(CONNECTION_WINDOW);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_active_connection_id_limit(8);
    config.enable_dgram(true, DATAGRAMS, DATAGRAMS);
    if let Some(size) = setup.packet_size {
        config.set_max_send_udp_payload_size(size.into());
        config.set_max_recv_udp_payload_size(size.into());
    }
    if setup.early_data {
        config.enable_early_data();
    }
    if setup.key_log.is_some() {
        config.log_keys();
    }
    Ok(config)
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let provider = weir_quic::crypto::tls::provider();
    provider
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| "the system gives no randomness")?;
    Ok(bytes)
}

fn new_connection_id() -> Result<ConnectionId<'static>> {
    Ok(ConnectionId::from_vec(random::<ID_LENGTH>()?.to_vec()))
}
