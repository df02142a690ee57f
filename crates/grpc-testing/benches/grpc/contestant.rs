//! The two transports: a server and a channel of each.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use rustls::crypto::aws_lc_rs;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::{Certificate, ClientTlsConfig, ServerTlsConfig};
use tower_service::Service;
use weir_grpc_testing::TestServer;
use weir_net::tls::{ClientCredentials, ClientTls, ServerTls};
use weir_net::{Endpoint, KnownClientsConfig};

use crate::Failure;

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Http2,
    Dcquic,
}

/// A certificate for `localhost`, with its key.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A channel of either transport.
#[derive(Clone)]
pub(crate) enum Channel {
    Http2(tonic::transport::Channel),
    Dcquic(weir_grpc::Channel),
}

/// Offers one cipher suite only, for both transports: TLS_AES_128_GCM_SHA256.
pub(crate) fn same_ciphers() {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    // Only the first one counts.
    let _ = provider.install_default();
}

impl Identity {
    pub(crate) fn new() -> Result<Self, Failure> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        Ok(Self {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        })
    }
}

impl Contestant {
    pub(crate) const ALL: [Self; 2] = [Self::Http2, Self::Dcquic];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http2 => "HTTP/2 + TLS",
            Self::Dcquic => "DCQUIC",
        }
    }

    /// Serves the test service; calls `bound` with the address first.
    pub(crate) async fn serve(
        self,
        identity: &Identity,
        address: SocketAddr,
        bound: impl FnOnce(SocketAddr),
    ) -> Result<(), Failure> {
        let routes = Routes::new(TestServer::default());
        match self {
            Self::Http2 => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                bound(listener.local_addr()?);
                let identity =
                    tonic::transport::Identity::from_pem(&identity.certificate, &identity.key);
                let incoming = tonic::transport::server::TcpIncoming::from(
                    tokio::net::TcpListener::from_std(listener)?,
                );
                tonic::transport::Server::builder()
                    .tls_config(ServerTlsConfig::new().identity(identity))?
                    .add_routes(routes)
                    .serve_with_incoming(incoming.with_nodelay(Some(true)))
                    .await?;
            }
            Self::Dcquic => {
                let identity =
                    weir_net::tls::Identity::from_pem(&identity.certificate, &identity.key)?;
                let tls = ServerTls::new(identity)
                    .known_peers(KnownClientsConfig::default())
                    .application_protocols([weir_grpc::APPLICATION_PROTOCOL]);
                let builder = Endpoint::builder().client_limits(weir_net::ClientLimits::NONE);
                let endpoint = builder.server(tls.build()?).bind(address)?;
                bound(endpoint.local_address());
                weir_grpc::Server::on(endpoint).serve(routes).await;
            }
        }
        Ok(())
    }

    /// Returns a channel to a server; it is connected when the first call is.
    pub(crate) async fn channel(
        self,
        identity: &Identity,
        server: SocketAddr,
    ) -> Result<Channel, Failure> {
        match self {
            Self::Http2 => {
                let trusted = Certificate::from_pem(&identity.certificate);
                let tls = ClientTlsConfig::new()
                    .ca_certificate(trusted)
                    .domain_name("localhost");
                let endpoint =
                    tonic::transport::Endpoint::from_shared(format!("https://{server}"))?
                        .tcp_nodelay(true)
                        .tls_config(tls)?;
                Ok(Channel::Http2(endpoint.connect_lazy()))
            }
            Self::Dcquic => {
                let endpoint = dcquic_endpoint(identity, server, &[])?;
                Ok(Channel::dcquic(&endpoint, server)?)
            }
        }
    }
}

impl Channel {
    /// Returns a channel of an endpoint.
    pub(crate) fn dcquic(endpoint: &Endpoint, server: SocketAddr) -> Result<Self, Failure> {
        let channel = weir_grpc::weir_h3::Channel::to_addresses([server]);
        let channel = channel.server_name("localhost").connect(endpoint)?;
        Ok(Self::Dcquic(channel.into()))
    }
}

/// Returns a client's endpoint, at these addresses, or at any.
pub(crate) fn dcquic_endpoint(
    identity: &Identity,
    server: SocketAddr,
    local: &[SocketAddr],
) -> Result<Endpoint, Failure> {
    let any = SocketAddr::new(
        match server {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        },
        0,
    );
    let mut builder = Endpoint::builder().client(credentials(identity)?);
    for address in local.iter().skip(1) {
        builder = builder.also_at(*address);
    }
    Ok(builder.bind(local.first().copied().unwrap_or(any))?)
}

/// Returns what a client trusts.
pub(crate) fn credentials(identity: &Identity) -> Result<ClientCredentials, Failure> {
    let roots = weir_net::tls::Roots::from_pem(&identity.certificate)?;
    let tls =
        ClientTls::with_roots(roots)?.application_protocols([weir_grpc::APPLICATION_PROTOCOL]);
    Ok(tls.build()?)
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = tonic::Status;
    type Future = BoxFuture<'static, Result<Response<Body>, tonic::Status>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), tonic::Status>> {
        match self {
            Self::Http2(channel) => {
                let ready = channel.poll_ready(cx);
                ready.map_err(|error| tonic::Status::unavailable(error.to_string()))
            }
            Self::Dcquic(channel) => Service::<Request<Body>>::poll_ready(channel, cx),
        }
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self {
            Self::Http2(channel) => {
                let calling = channel.call(request);
                Box::pin(async move {
                    calling
                        .await
                        .map_err(|error| tonic::Status::unavailable(error.to_string()))
                })
            }
            Self::Dcquic(channel) => {
                let calling = channel.call(request);
                Box::pin(async move { Ok(calling.await?.map(Body::new)) })
            }
        }
    }
}
