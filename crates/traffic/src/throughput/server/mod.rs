//! The server: one test at a time, one port for everything.

mod test;

use std::io;
use std::net::SocketAddr;
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

/// Connections that have not said yet what they want; further ones wait in the kernel.
const MAX_GREETINGS: usize = 64;

/// What happens at a server.
#[derive(Debug)]
pub enum ServerEvent {
    /// A client asked for a test, and it begins.
    Began {
        /// The client's address.
        client: SocketAddr,
        /// The test.
        parameters: Parameters,
    },
    /// A test has ended well.
    Ended {
        /// The client's address.
        client: SocketAddr,
        /// Its result.
        measurement: Box<Measurement>,
    },
    /// A test has failed, or never began.
    Failed {
        /// The client's address.
        client: SocketAddr,
        /// Why.
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
    /// Begins to listen.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The fingerprint that clients pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.options.identity.fingerprint()
    }

    /// Serves until the future is dropped. A failed test does not end it.
    pub async fn serve(self, observe: &mut (dyn FnMut(ServerEvent) + Send)) {
        let mut desk = Desk::new(self);
        loop {
            if let Some(event) = desk.next().await {
                observe(event);
            }
        }
    }

    /// Serves one test.
    ///
    /// # Errors
    /// Why that test failed.
    pub async fn serve_one(
        self,
        observe: &mut (dyn FnMut(ServerEvent) + Send),
    ) -> Result<(), Error> {
        let mut desk = Desk::new(self);
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

/// Where all connections come in and find the test that they belong to.
struct Desk {
    server: Server,
    /// Connections that are saying what they want.
    greetings: JoinSet<Option<(TcpStream, SocketAddr, Greeting)>>,
    current: Option<Current>,
    /// The test that is running, if one is.
    tests: JoinSet<(SocketAddr, Result<Measurement, Error>)>,
    news: (mpsc::Sender<ServerEvent>, mpsc::Receiver<ServerEvent>),
}

struct Current {
    token: Token,
    streams: mpsc::Sender<TcpStream>,
}

impl Desk {
    fn new(server: Server) -> Self {
        Self {
            server,
            greetings: JoinSet::new(),
            current: None,
            tests: JoinSet::new(),
            news: mpsc::channel(1),
        }
    }

    /// Waits for the next thing to happen and does what it asks for.
    async fn next(&mut self) -> Option<ServerEvent> {
        tokio::select! {
            biased;
            Some(event) = self.news.1.recv() => Some(event),
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
                    Greeting::Data(token) => self.take_data(stream, &token),
                }
                None
            }
            accepted = self.server.listener.accept(), if self.greetings.len() < MAX_GREETINGS => {
                match accepted {
                    Ok((stream, client)) => {
                        let limit = self.server.options.timeout;
                        self.greetings.spawn(greet(stream, client, limit));
                    }
                    // Out of descriptors, most likely: others have to end first.
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
        let refusal = if self.current.is_some() {
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
            news: self.news.0.clone(),
        };
        self.tests
            .spawn(async move { (client, test.run(stream).await) });
    }

    fn take_data(&self, stream: TcpStream, token: &Token) {
        match &self.current {
            // A client that opens more than it asked for loses the rest.
            Some(current) if current.token == *token => drop(current.streams.try_send(stream)),
            _ => tracing::info!("a data connection belongs to no test"),
        }
    }
}

/// Waits until a connection says what it wants. Those that do not, are dropped.
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

/// Tells a client why there is no test for it, once it has asked.
async fn refuse(stream: TcpStream, limit: Duration, reason: String) {
    let mut control: Control<FromServer, FromClient> = Control::new(stream, limit);
    let doing = "waiting for the client's request";
    // What it asks for does not matter, and it may be gone by now.
    let _ = control.next_within(limit, doing).await;
    let _ = control.send(&FromServer::Refused(reason)).await;
}
