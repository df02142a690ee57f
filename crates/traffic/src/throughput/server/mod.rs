//! The server: one test at a time, and one port for all connections.

mod test;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weir_net::tls::Fingerprint;
use weir_units::Duration;

use super::control::Control;
use super::error::Error;
use super::measurement::Measurement;
use super::options::ServerOptions;
use super::parameters::{MAX_PARALLEL, Parameters};
use super::protocol::{FromClient, FromServer, Greeting, Token};

/// The maximum number of connections without a greeting; further ones wait in the kernel.
const MAX_GREETINGS: usize = 64;

/// An event of a server.
#[derive(Debug)]
pub enum ServerEvent {
    /// A client requested a test, and it begins.
    Began {
        /// The client's address.
        client: SocketAddr,
        /// The test.
        parameters: Parameters,
    },
    /// A test has succeeded.
    Ended {
        /// The client's address.
        client: SocketAddr,
        /// Its result.
        measurement: Box<Measurement>,
    },
    /// A test has failed, or did not begin.
    Failed {
        /// The client's address.
        client: SocketAddr,
        /// The error.
        error: Error,
    },
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    options: Arc<ServerOptions>,
}

impl Server {
    /// Starts to listen.
    ///
    /// # Errors
    /// [`Error::AddressInUse`] or [`Error::Listen`].
    pub async fn bind(options: ServerOptions) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::AddressInUse(options.bind),
            _ => Error::Listen {
                address: options.bind,
                source,
            },
        };
        let listener = TcpListener::bind(options.bind).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            options: Arc::new(options),
        })
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the fingerprint that clients pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.options.identity.fingerprint()
    }

    /// Serves until `stop` is ready and the test that runs then has ended; further ones are refused. A
    /// failed test does not end it.
    pub async fn serve_until(
        self,
        stop: impl Future<Output = ()>,
        observe: &mut (dyn FnMut(ServerEvent) + Send),
    ) {
        let mut desk = Dispatcher::new(self);
        let mut stop = pin!(stop);
        while !(desk.is_stopping && desk.tests.is_empty()) {
            let event = tokio::select! {
                biased;
                () = &mut stop, if !desk.is_stopping => {
                    desk.is_stopping = true;
                    None
                }
                event = desk.next() => event,
            };
            if let Some(event) = event {
                observe(event);
            }
        }
    }

    /// Serves one test.
    ///
    /// # Errors
    /// The error of that test.
    pub async fn serve_one(
        self,
        observe: &mut (dyn FnMut(ServerEvent) + Send),
    ) -> Result<(), Error> {
        let mut desk = Dispatcher::new(self);
        loop {
            match desk.next().await {
                Some(ServerEvent::Failed { error, .. }) => return Err(error),
                Some(event @ ServerEvent::Ended { .. }) => {
                    observe(event);
                    return Ok(());
                }
                Some(event) => observe(event),
                None => {}
            }
        }
    }
}

/// Accepts all connections and assigns them to their test.
struct Dispatcher {
    server: Server,
    /// Connections that have not sent their greeting yet.
    greetings: JoinSet<Option<(TcpStream, SocketAddr, Greeting)>>,
    current: Option<Current>,
    /// Further tests are refused.
    is_stopping: bool,
    /// The running test, if any.
    tests: JoinSet<(SocketAddr, Result<Measurement, Error>)>,
    events: (mpsc::Sender<ServerEvent>, mpsc::Receiver<ServerEvent>),
}

struct Current {
    token: Token,
    streams: mpsc::Sender<TcpStream>,
}

impl Dispatcher {
    fn new(server: Server) -> Self {
        Self {
            server,
            greetings: JoinSet::new(),
            current: None,
            is_stopping: false,
            tests: JoinSet::new(),
            events: mpsc::channel(1),
        }
    }

    /// Waits for the next event and handles it.
    async fn next(&mut self) -> Option<ServerEvent> {
        tokio::select! {
            biased;
            Some(event) = self.events.1.recv() => Some(event),
            Some(ended) = self.tests.join_next() => {
                self.current = None;
                let (client, result) = ended.ok()?;
                Some(match result {
                    Ok(measurement) => ServerEvent::Ended { client, measurement: Box::new(measurement) },
                    Err(error) => ServerEvent::Failed { client, error },
                })
            }
            Some(greeted) = self.greetings.join_next() => {
                let (stream, client, greeting) = greeted.ok()??;
                match greeting {
                    Greeting::Control => self.take_control(stream, client),
                    Greeting::Data(token) => self.assign_data_connection(stream, &token),
                }
                None
            }
            accepted = self.server.listener.accept(), if self.greetings.len() < MAX_GREETINGS => {
                match accepted {
                    Ok((stream, client)) => {
                        let limit = self.server.options.timeout;
                        self.greetings.spawn(greet(stream, client, limit));
                    }
                    // Most likely out of file descriptors: wait until other connections end.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    }
                }
                None
            }
        }
    }

    fn take_control(&mut self, stream: TcpStream, client: SocketAddr) {
        let mut token = Token::default();
        let refusal = if self.is_stopping {
            Some("the server shuts down")
        } else if self.current.is_some() {
            Some("another test is running: try again when it has ended")
        } else if default_provider().secure_random.fill(&mut token).is_err() {
            Some("the server's system gives no random numbers")
        } else {
            None
        };
        let limit = self.server.options.timeout;
        if let Some(reason) = refusal {
            self.greetings.spawn(async move {
                refuse(stream, limit, reason.to_owned()).await;
                None
            });
            return;
        }
        let (sender, streams) = mpsc::channel(usize::from(MAX_PARALLEL));
        self.current = Some(Current {
            token,
            streams: sender,
        });
        let test = test::Test {
            options: Arc::clone(&self.server.options),
            address: self.server.address,
            client,
            token,
            streams,
            news: self.events.0.clone(),
        };
        self.tests
            .spawn(async move { (client, test.run(stream).await) });
    }

    fn assign_data_connection(&self, stream: TcpStream, token: &Token) {
        match &self.current {
            // Connections beyond the requested number are dropped.
            Some(current) if current.token == *token => drop(current.streams.try_send(stream)),
            _ => tracing::info!("a data connection belongs to no test"),
        }
    }
}

/// Waits for a connection's greeting. Connections without one are dropped.
async fn greet(
    mut stream: TcpStream,
    client: SocketAddr,
    limit: Duration,
) -> Option<(TcpStream, SocketAddr, Greeting)> {
    let mut greeting = [0; Greeting::LENGTH];
    let read = timeout(limit.into(), stream.read_exact(&mut greeting)).await;
    if !matches!(read, Ok(Ok(_))) {
        tracing::info!(%client, "a connection did not introduce itself");
        return None;
    }
    match Greeting::decode(&greeting) {
        Ok(greeting) => Some((stream, client, greeting)),
        Err(error) => {
            tracing::info!(%client, %error, "a connection is refused");
            if Greeting::is_greeting(&greeting) {
                refuse(stream, limit, error.to_string()).await;
            }
            None
        }
    }
}

/// Sends a client the reason for rejecting its test, once it has requested one.
async fn refuse(stream: TcpStream, limit: Duration, reason: String) {
    let mut control: Control<FromServer, FromClient> = Control::new(stream, limit);
    let doing = "waiting for the client's request";
    // The request is ignored, and the client may be gone by now.
    let _ = control.next_within(limit, doing).await;
    let _ = control.send(&FromServer::Refused(reason)).await;
}
