//! Connects to a controller.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use crate::credentials::Credentials;

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a connection may be silent before an HTTP/2 ping, and how long the reply may take.
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
