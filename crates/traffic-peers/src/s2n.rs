//! s2n-quic, with its rustls provider (aws-lc-rs) instead of s2n-tls, so that TLS is the same.

use std::net::SocketAddr;

use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io::tokio::{Builder as IoBuilder, Provider as Io};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls::{Client as TlsClient, Server as TlsServer};
use s2n_quic::stream::BidirectionalStream;
use weir_traffic::calls::driver::{
    Client, ClientOptions, Connection, Driver, FirstCall, Listening, LocalFuture, Phase,
    ServerOptions, Start,
};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::{EarlyData, SERVER_NAME};
use weir_traffic::calls::payload::{Body, Library, Request};
use weir_traffic::calls::{Abilities, Error, TransportSpecification};

use crate::settings::{CONNECTION_WINDOW, SOCKET_BUFFER, STREAM_WINDOW, any_port, udp_notes};

/// IPv4 and UDP headers, which s2n-quic counts in its MTU.
const HEADERS: u16 = 28;

/// The driver of s2n-quic.
pub(crate) struct S2n;

impl Driver for S2n {
    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    fn version(&self) -> String {
        format!(
            "s2n-quic {} with rustls {}",
            locked_version("s2n-quic"),
            locked_version("rustls")
        )
    }

    fn supports(&self, phase: Phase) -> bool {
        phase != Phase::Resumed
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let specification = &options.specification;
        let tls = TlsServer::from(options.identity.server_config(EarlyData::Refused)?);
        let server = s2n_quic::Server::builder()
            .with_tls(tls)
            .map_err(|error| Error::transport("configuring TLS", error))?
            .with_io(io(options.bind, specification)?)
            .map_err(|error| Error::transport("configuring sockets", error))?
            .with_limits(limits()?)
            .map_err(|error| Error::transport("configuring limits", error))?;
        // The controller is part of the server's type.
        let server = match controller(specification)? {
            Controller::Cubic => server
                .with_congestion_controller(Cubic::default())
                .map(|server| server.start()),
            Controller::Bbr => server
                .with_congestion_controller(Bbr::default())
                .map(|server| server.start()),
        };
        let mut server = server
            .map_err(|error| Error::transport("configuring congestion control", error))?
            .map_err(|error| Error::transport("listening", error))?;
        let address = server.local_addr().map_err(Error::io("listening"))?;
        Ok(Listening {
            address,
            serve: Box::pin(async move {
                let library = std::sync::Arc::new(Library::default());
                while let Some(connection) = server.accept().await {
                    tokio::spawn(serve(connection, std::sync::Arc::clone(&library)));
                }
                Ok(())
            }),
            notes: udp_notes()?,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn Client>, Error> {
        let specification = &options.specification;
        let tls = TlsClient::from(options.trust.client_config(None)?);
        let client = s2n_quic::Client::builder()
            .with_tls(tls)
            .map_err(|error| Error::transport("configuring TLS", error))?
            .with_io(io(any_port(options.server), specification)?)
            .map_err(|error| Error::transport("configuring sockets", error))?
            .with_limits(limits()?)
            .map_err(|error| Error::transport("configuring limits", error))?;
        let client = match controller(specification)? {
            Controller::Cubic => client
                .with_congestion_controller(Cubic::default())
                .map(|client| client.start()),
            Controller::Bbr => client
                .with_congestion_controller(Bbr::default())
                .map(|client| client.start()),
        };
        let client = client
            .map_err(|error| Error::transport("configuring congestion control", error))?
            .map_err(|error| Error::transport("starting the client", error))?;
        Ok(Box::new(S2nClient {
            client,
            server: options.server,
        }))
    }
}

enum Controller {
    Cubic,
    Bbr,
}

fn controller(specification: &TransportSpecification) -> Result<Controller, Error> {
    match specification.congestion.as_deref().unwrap_or("cubic") {
        "cubic" => Ok(Controller::Cubic),
        "bbr" => Ok(Controller::Bbr),
        other => Err(Error::Unsupported {
            transport: "s2n-quic",
            what: format!("use {other:?}: it has cubic and bbr"),
        }),
    }
}

fn io(bind: SocketAddr, specification: &TransportSpecification) -> Result<Io, Error> {
    specification.require(
        "s2n-quic",
        Abilities {
            packet_size: true,
            congestion: true,
            ..Abilities::default()
        },
    )?;
    let build = || {
        let mut io = IoBuilder::default()
            .with_receive_address(bind)?
            .with_send_buffer_size(SOCKET_BUFFER)?
            .with_recv_buffer_size(SOCKET_BUFFER)?;
        if let Some(size) = specification.packet_size {
            let mtu = size.saturating_add(HEADERS);
            io = io
                .with_max_mtu(mtu)?
                .with_initial_mtu(mtu)?
                .with_base_mtu(mtu)?;
        }
        io.build()
    };
    build().map_err(Error::io("configuring sockets"))
}

fn limits() -> Result<Limits, Error> {
    Limits::new()
        .with_data_window(CONNECTION_WINDOW)
        .and_then(|limits| limits.with_bidirectional_local_data_window(STREAM_WINDOW))
        .and_then(|limits| limits.with_bidirectional_remote_data_window(STREAM_WINDOW))
        .map_err(|error| Error::transport("configuring limits", error.to_string()))
}

/// Serves one connection. A client that goes away ends its connection, not the server.
async fn serve(mut connection: s2n_quic::Connection, library: std::sync::Arc<Library>) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        if answer(stream, &library).await.is_err() {
            return;
        }
    }
}

async fn answer(mut stream: BidirectionalStream, library: &Library) -> Result<(), Error> {
    let mut request = Vec::with_capacity(Request::LENGTH);
    while let Some(chunk) = stream
        .receive()
        .await
        .map_err(|error| Error::transport("reading the request", error))?
    {
        if request.len() + chunk.len() > Request::LENGTH {
            return Err(Error::MalformedRequest);
        }
        request.extend_from_slice(&chunk);
    }
    for chunk in library.reply(Request::decode(&request)?) {
        stream
            .send(chunk)
            .await
            .map_err(|error| Error::transport("sending the reply", error))?;
    }
    stream
        .finish()
        .map_err(|error| Error::transport("ending the reply", error))
}

struct S2nClient {
    client: s2n_quic::Client,
    server: SocketAddr,
}

impl Client for S2nClient {
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            if start == Start::Resumed {
                return Err(Error::Unsupported {
                    transport: "s2n-quic",
                    what: "send early data".to_owned(),
                });
            }
            let connection = self
                .client
                .connect(Connect::new(self.server).with_server_name(SERVER_NAME))
                .await
                .map_err(|error| Error::transport("handshake", error))?;
            let mut connection = Box::new(S2nConnection { connection });
            if let Some((request, body)) = first {
                connection.call(request, body).await?;
            }
            Ok(connection as Box<dyn Connection>)
        })
    }
}

struct S2nConnection {
    connection: s2n_quic::Connection,
}

impl Connection for S2nConnection {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut stream = self
                .connection
                .open_bidirectional_stream()
                .await
                .map_err(|error| Error::transport("opening a stream", error))?;
            stream
                .send(bytes::Bytes::copy_from_slice(&request.encode()))
                .await
                .map_err(|error| Error::transport("sending the request", error))?;
            stream
                .finish()
                .map_err(|error| Error::transport("ending the request", error))?;
            while let Some(chunk) = stream
                .receive()
                .await
                .map_err(|error| Error::transport("reading the reply", error))?
            {
                body.take(&chunk);
            }
            Ok(())
        })
    }

    fn close(self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            self.connection.close(0_u32.into());
            // The endpoint's task sends the close.
            tokio::task::yield_now().await;
            Ok(())
        })
    }
}
