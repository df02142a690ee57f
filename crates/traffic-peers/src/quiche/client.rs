//! The quiche client: each connection drives its own sockets while it is in use.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use quiche::Config;
use tokio::time::timeout;
use weir_traffic::calls::Error;
use weir_traffic::calls::driver::{
    FirstCall, LocalFuture, RequestClient, RequestConnection, any_port,
};
use weir_traffic::calls::payload::{Body, Request};
use weir_traffic::tls::TICKET_LIMIT;
use weir_traffic::transport::Start;

use super::{Port, Sockets, connect, took_early_data, why_over};

/// Bytes per read from a stream.
const READ_BUFFER: usize = 64 * 1024;

pub(super) struct QuicheClient {
    config: RefCell<Config>,
    server: SocketAddr,
    shared: Rc<Shared>,
}

/// State that connections return to the client when they close.
#[derive(Default)]
struct Shared {
    /// Free sockets for reuse, as the endpoints of other stacks reuse theirs.
    sockets: RefCell<Vec<Parts>>,
    /// The newest session, if sessions are kept.
    session: RefCell<Option<Vec<u8>>>,
    keeps_sessions: bool,
}

/// The sockets and buffers of a connection.
struct Parts {
    sockets: Sockets,
    read_buffer: Vec<u8>,
}

impl QuicheClient {
    pub(super) fn new(config: Config, server: SocketAddr, keeps_sessions: bool) -> Self {
        Self {
            config: RefCell::new(config),
            server,
            shared: Rc::new(Shared {
                keeps_sessions,
                ..Shared::default()
            }),
        }
    }

    fn begin(&self, start: Start) -> Result<QuicheConnection, Error> {
        let free = self.shared.sockets.borrow_mut().pop();
        let parts = match free {
            Some(parts) => parts,
            None => Parts {
                sockets: Sockets::new(Port::bind(any_port(self.server))?),
                read_buffer: vec![0; READ_BUFFER],
            },
        };
        let session = match start {
            Start::Full | Start::Known => None,
            Start::Resumed => {
                let session = self.shared.session.borrow_mut().take();
                Some(session.ok_or(weir_traffic::Error::NoTicket(TICKET_LIMIT))?)
            }
        };
        let mut config = self.config.borrow_mut();
        let local = parts.sockets.address();
        let connection = connect(&mut config, local, self.server, session.as_deref())?;
        Ok(QuicheConnection {
            connection,
            parts,
            shared: Rc::clone(&self.shared),
            next_stream: 0,
        })
    }
}

impl RequestClient for QuicheClient {
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn RequestConnection>, Error>> {
        Box::pin(async move {
            let mut connection = Box::new(self.begin(start)?);
            connection.flush().await?;
            if start != Start::Resumed {
                while !connection.connection.is_established() {
                    connection.step().await?;
                }
            }
            if let Some((request, body)) = first {
                connection.call(request, body).await?;
            }
            if start == Start::Resumed {
                while !connection.connection.is_established() {
                    connection.step().await?;
                }
                if !took_early_data(&connection.connection) {
                    return Err(weir_traffic::Error::EarlyDataRefused.into());
                }
            }
            Ok(connection as Box<dyn RequestConnection>)
        })
    }
}

struct QuicheConnection {
    connection: quiche::Connection,
    parts: Parts,
    shared: Rc<Shared>,
    next_stream: u64,
}

impl QuicheConnection {
    async fn flush(&mut self) -> Result<(), Error> {
        self.parts.sockets.flush(&mut self.connection).await
    }

    /// Waits for datagrams or a timer, processes them, and sends the resulting packets.
    async fn step(&mut self) -> Result<(), Error> {
        let connections = std::slice::from_mut(&mut self.connection);
        self.parts.sockets.step(connections).await?;
        self.flush().await?;
        match why_over(&self.connection) {
            None => Ok(()),
            Some(reason) => Err(Error::transport("waiting for the reply", reason)),
        }
    }
}

impl RequestConnection for QuicheConnection {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let stream = self.next_stream;
            self.next_stream += 4;
            self.connection
                .stream_send(stream, &request.encode(), true)
                .map_err(|error| Error::transport("sending the request", error))?;
            self.flush().await?;
            loop {
                while self.connection.stream_readable(stream) {
                    match self
                        .connection
                        .stream_recv(stream, &mut self.parts.read_buffer)
                    {
                        Ok((length, ended)) => {
                            body.take(self.parts.read_buffer.get(..length).unwrap_or_default());
                            if ended {
                                return self.flush().await;
                            }
                        }
                        Err(quiche::Error::Done) => break,
                        Err(error) => return Err(Error::transport("reading the reply", error)),
                    }
                }
                // Reading may have opened flow-control windows.
                self.flush().await?;
                self.step().await?;
            }
        })
    }

    fn close(mut self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            if self.shared.keeps_sessions {
                while self.connection.session().is_none() {
                    timeout(TICKET_LIMIT.into(), self.step())
                        .await
                        .map_err(|_| weir_traffic::Error::NoTicket(TICKET_LIMIT))??;
                }
                let session = self.connection.session().map(<[u8]>::to_vec);
                *self.shared.session.borrow_mut() = session;
            }
            match self.connection.close(true, 0, b"") {
                Ok(()) | Err(quiche::Error::Done) => {}
                Err(error) => return Err(Error::transport("closing", error)),
            }
            self.flush().await?;
            let Self { parts, shared, .. } = *self;
            shared.sockets.borrow_mut().push(parts);
            Ok(())
        })
    }
}
