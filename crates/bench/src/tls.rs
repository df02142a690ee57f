//! TLS 1.3 over kernel TCP: what DCQUIC is compared with.
//!
//! tokio-rustls does the work on both sides, except that a server that accepts early data is driven
//! by code of our own, because tokio-rustls hands out no early data and answers only after the handshake.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use weir_units::Duration;

use crate::driver::{
    Client, ClientOptions, Connection, Driver, FirstCall, Listening, LocalFuture, Phase,
    ServerOptions, Start,
};
use crate::environment::locked_version;
use crate::error::Error;
use crate::identity::{EarlyData, SERVER_NAME, Tickets};
use crate::payload::{Body, Library, Request};
use crate::specification::Abilities;
use crate::tcp;

mod early;

/// How long a closing client waits for its ticket.
const TICKET_LIMIT: Duration = Duration::from_secs(2);

/// The driver of TLS over TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpTls;

impl Driver for TcpTls {
    fn name(&self) -> &'static str {
        "tcp-tls"
    }

    fn version(&self) -> String {
        format!(
            "kernel TCP, rustls {}, tokio-rustls {}",
            locked_version("rustls"),
            locked_version("tokio-rustls")
        )
    }

    fn supports(&self, _phase: Phase) -> bool {
        true
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let specification = &options.specification;
        specification.require(
            self.name(),
            Abilities {
                congestion: true,
                ..Abilities::default()
            },
        )?;
        let early_data = if options.early_data {
            EarlyData::OverTcp
        } else {
            EarlyData::Refused
        };
        let config = Arc::new(options.identity.server_config(early_data)?);
        let (listener, address, note) =
            tcp::listen(options.bind, specification.congestion.as_deref())?;
        Ok(Listening {
            address,
            serve: Box::pin(async move {
                let library = Arc::new(Library::default());
                loop {
                    let stream = tcp::accept(&listener).await?;
                    let (config, library) = (Arc::clone(&config), Arc::clone(&library));
                    if early_data == EarlyData::Refused {
                        tokio::spawn(serve(stream, config, library));
                    } else {
                        tokio::spawn(early::serve(stream, config, library));
                    }
                }
            }),
            notes: vec![note],
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn Client>, Error> {
        let specification = &options.specification;
        specification.require(
            self.name(),
            Abilities {
                congestion: true,
                ..Abilities::default()
            },
        )?;
        let tickets = options.resumption.then(Arc::<Tickets>::default);
        Ok(Box::new(TlsClient {
            server: options.server,
            congestion: specification.congestion.clone(),
            config: Arc::new(options.trust.client_config(tickets.clone())?),
            tickets,
        }))
    }
}

/// Serves one connection. A client that fails the handshake ends its connection, not the server.
async fn serve(stream: TcpStream, config: Arc<ServerConfig>, library: Arc<Library>) {
    if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
        tcp::serve(stream, library).await;
    }
}

struct TlsClient {
    server: SocketAddr,
    congestion: Option<String>,
    config: Arc<ClientConfig>,
    tickets: Option<Arc<Tickets>>,
}

impl TlsClient {
    async fn connect(&self, start: Start) -> Result<TlsConnection, Error> {
        let stream = tcp::connect(self.server, self.congestion.as_deref()).await?;
        let name = ServerName::try_from(SERVER_NAME)
            .map_err(|error| Error::transport("reading the server's name", error))?;
        let stream = TlsConnector::from(Arc::clone(&self.config))
            .early_data(start == Start::Resumed)
            .connect(name, stream)
            .await
            .map_err(Error::io("handshake"))?;
        Ok(TlsConnection {
            stream,
            buffer: vec![0; tcp::READ_BUFFER],
            tickets: self.tickets.clone(),
        })
    }
}

impl Client for TlsClient {
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            let mut connection = Box::new(self.connect(start).await?);
            if let Some((request, body)) = first {
                connection.call(request, body).await?;
            }
            if start == Start::Resumed && !connection.stream.get_ref().1.is_early_data_accepted() {
                return Err(Error::EarlyDataRefused);
            }
            Ok(connection as Box<dyn Connection>)
        })
    }
}

struct TlsConnection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    tickets: Option<Arc<Tickets>>,
}

impl Connection for TlsConnection {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(tcp::call(&mut self.stream, &mut self.buffer, request, body))
    }

    fn close(mut self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            if let Some(tickets) = self.tickets.take() {
                // Tickets are taken in while reading; a server never sends anything else unasked.
                let mut nothing = [0; 1];
                tokio::select! {
                    biased;
                    arrived = tickets.wait(TICKET_LIMIT) => arrived?,
                    _ = tokio::io::AsyncReadExt::read(&mut self.stream, &mut nothing) => {}
                }
            }
            self.stream
                .shutdown()
                .await
                .map_err(Error::io("closing the connection"))
        })
    }
}
