//! Settings of a server of all versions.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::HeaderValue;
use weir_net::tls::ServerCredentials;
use weir_net::{Duration, Endpoint, EndpointBuilder};

use super::accept::Limits;
use super::drain::Draining;
use super::listen::{self, BindError};
use super::stats::TcpCounters;
use super::tls::TcpTls;
use super::{HttpsServer, Inner, Server};

/// How long a TLS handshake over TCP may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a TCP connection may have no request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// TCP connections at once.
const MAX_CONNECTIONS: usize = 10_000;

/// Builds an [`HttpsServer`].
#[must_use = "nothing happens before `bind`"]
pub struct HttpsServerBuilder {
    tls: ServerCredentials,
    endpoint: EndpointBuilder,
    http3: Server,
    alt_svc: AltSvc,
    max_connections: usize,
    settings: Settings,
}

/// Times of TCP connections, and what their responses have.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) handshake_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) alt_svc: Option<HeaderValue>,
}

enum AltSvc {
    /// HTTP/3 at the port that is bound.
    Own,
    Given(Option<HeaderValue>),
}

impl HttpsServerBuilder {
    pub(super) fn new(tls: ServerCredentials) -> Self {
        Self {
            tls,
            endpoint: Endpoint::builder(),
            http3: Server::default(),
            alt_svc: AltSvc::Own,
            max_connections: MAX_CONNECTIONS,
            settings: Settings {
                handshake_timeout: HANDSHAKE_TIMEOUT,
                idle_timeout: IDLE_TIMEOUT,
                alt_svc: None,
            },
        }
    }

    /// Takes the settings of an endpoint for HTTP/3: further addresses, which TCP gets as well,
    /// transport, limits, metrics. It gets the server's TLS configuration.
    pub fn endpoint(mut self, endpoint: EndpointBuilder) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Takes the HTTP/3 server with its limits. Those of header sizes and times are TCP's as well.
    pub fn http3(mut self, server: Server) -> Self {
        self.http3 = server;
        self
    }

    /// Sets how long a TLS handshake over TCP may take; 10 s by default. The first request has to
    /// follow within [`ServerBuilder::header_timeout`](crate::ServerBuilder::header_timeout).
    pub fn handshake_timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.settings.handshake_timeout = timeout.into();
        self
    }

    /// Sets after which time without a request a TCP connection is closed; 60 s by default. A request
    /// runs until its response is sent.
    pub fn idle_timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.settings.idle_timeout = timeout.into();
        self
    }

    /// Sets how many TCP connections there may be; 10,000 by default. More wait in the kernel.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = count;
        self
    }

    /// Sets the field `Alt-Svc` (RFC 7838) of responses over TCP, such as `h3=":443"; ma=86400` where
    /// clients reach the server at another port than it is bound to; none with `None`. By default
    /// it names the bound port, for a day. A service that sets the field itself overrides it.
    pub fn alt_svc(mut self, value: impl Into<Option<HeaderValue>>) -> Self {
        self.alt_svc = AltSvc::Given(value.into());
        self
    }

    /// Binds a UDP and a TCP port of the same number; 0 takes one that both have free.
    ///
    /// # Errors
    /// [`BindError`], which describes the remedy.
    pub fn bind(self, address: SocketAddr) -> Result<HttpsServer, BindError> {
        let tls = TcpTls::new(self.tls.clone())?;
        let endpoint = self.endpoint.server(self.tls);
        let (endpoint, listeners) = listen::bind(&endpoint, address)?;
        let mut settings = self.settings;
        settings.alt_svc = match self.alt_svc {
            AltSvc::Own => own_alt_svc(endpoint.local_address().port()),
            AltSvc::Given(value) => value,
        };
        Ok(HttpsServer {
            inner: Arc::new(Inner {
                http3: self.http3,
                endpoint,
                tls,
                settings,
                limits: Limits::new(self.max_connections),
                counters: TcpCounters::default(),
                listeners: Mutex::new(Some(listeners)),
                draining: Draining::default(),
            }),
        })
    }
}

fn own_alt_svc(port: u16) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).ok()
}

impl std::fmt::Debug for HttpsServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpsServerBuilder")
            .field("max_connections", &self.max_connections)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
