//! rustls configurations for quinn and s2n-quic: those of the benchmarks, with all ciphers and the
//! options of the case.

use std::sync::Arc;

use rustls::{ClientConfig, ServerConfig};
use weir_quic::crypto::tls::provider;
use weir_traffic::calls::identity::certificate;
use weir_traffic::tls::{EarlyData, Tickets, Trust, client_config_with, server_config_with};

use super::{ALPN, Result, Setup};

/// Session tickets that a server sends on each connection.
const TICKETS: usize = 2;

/// Returns the server's configuration.
pub(super) fn server(setup: &Setup) -> Result<ServerConfig> {
    let early_data = EarlyData::OverQuic.when(setup.early_data);
    let mut config = server_config_with(provider(), &setup.identity, ALPN, TICKETS, early_data)?;
    if let Some(lines) = &setup.key_log {
        config.key_log = lines.clone();
    }
    Ok(config)
}

/// Returns the client's configuration, which stores sessions.
pub(super) fn client(setup: &Setup) -> Result<ClientConfig> {
    let trust = Trust::Certificate(certificate(&setup.identity));
    let tickets = Some(Arc::<Tickets>::default());
    let mut config = client_config_with(provider(), &trust, ALPN, tickets)?;
    config.enable_early_data = setup.early_data;
    if let Some(lines) = &setup.key_log {
        config.key_log = lines.clone();
    }
    Ok(config)
}
