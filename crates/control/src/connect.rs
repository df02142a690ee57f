//! The way to a controller.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use crate::credentials::Credentials;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a connection may be silent before HTTP asks whether anybody is there, and for an answer.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Connects to the controller at `HOST:PORT`.
pub(crate) async fn connect(
    controller: &str,
    credentials: &Credentials,
) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("https://{controller}"))?
        .tls_config(credentials.client())?
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE);
    endpoint.connect().await
}
