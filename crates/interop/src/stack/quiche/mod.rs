//! The quiche stack, with BoringSSL (its only TLS library).
//!
//! quiche is a state machine. In [`server`] the benchmarks' server loop drives it; in [`core`] the
//! benchmarks' sockets do, in a task that serves [`client`]. The configuration is that of the
//! benchmarks plus the options of the case.

use std::sync::Arc;

use boring::ssl::SslContextBuilder;
use quiche::{Config, Connection};
use weir_traffic::calls::identity::certificate;
use weir_traffic_peers::quiche::{Windows, client_tls, new_config, server_tls};

use super::key_log::{KeyLines, KeyWriter};
use super::{ALPN, Client, ConnectionStatus, Result, Server, Setup, Stack};

mod client;
mod core;
mod server;

const WINDOWS: Windows = Windows {
    connection: 4 << 20,
    stream: 1 << 20,
    streams: 100,
};
/// The capacity of the datagram send and receive queues.
const DATAGRAMS: usize = 100;
/// A reserved version, which no stack supports (RFC 9000, section 15).
const RESERVED_VERSION: u32 = 0xbaba_baba;

pub(super) struct Quiche;

impl Stack for Quiche {
    fn serve(&self, setup: &Setup) -> Result<Box<dyn Server>> {
        let tls = server_tls(&setup.identity)?;
        server::serve(setup, config(setup, quiche::PROTOCOL_VERSION, tls)?)
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>> {
        let version = if setup.unknown_version {
            RESERVED_VERSION
        } else {
            quiche::PROTOCOL_VERSION
        };
        let mut config = config(setup, version, client_tls(&certificate(&setup.identity))?)?;
        config.verify_peer(true);
        client::client(setup, config)
    }
}

fn config(setup: &Setup, version: u32, tls: SslContextBuilder) -> Result<Config> {
    let mut config = new_config(version, tls, ALPN, &WINDOWS, setup.packet_size)?;
    config.set_active_connection_id_limit(8);
    config.enable_dgram(true, DATAGRAMS, DATAGRAMS);
    if setup.early_data {
        config.enable_early_data();
    }
    if setup.key_log.is_some() {
        config.log_keys();
    }
    Ok(config)
}

/// Logs the keys of a connection to `lines`, if present.
fn log_keys(connection: &mut Connection, lines: Option<&Arc<KeyLines>>) {
    if let Some(lines) = lines {
        connection.set_keylog(Box::new(KeyWriter(Arc::clone(lines))));
    }
}

fn facts(connection: &Connection) -> ConnectionStatus {
    let active = connection.path_stats().find(|path| path.active);
    ConnectionStatus {
        peer: active.map(|path| path.peer_addr),
        resumed: Some(connection.is_resumed()),
        ..ConnectionStatus::default()
    }
}
