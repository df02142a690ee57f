//! TCP + TLS 1.3 in the storm, by tokio-rustls: sessions are resumed, without early data.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::HandshakeKind;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use weir_net::tls::Identity;

use super::call::{Failed, Progress, request};
use super::execution::{Journal, Role};
use super::{Plan, REQUEST};
use crate::calls::error::Error;
use crate::calls::identity::{ALPN, SERVER_NAME};
use crate::tls::{EarlyData, Tickets, Trust, client_config, server_config};
use crate::transport::Start;

/// Connections that wait to be accepted; the system may allow fewer.
const BACKLOG: u32 = 4096;
/// Tickets per connection: rustls's default.
const TICKETS: usize = 2;
/// How long a client waits for its first ticket.
const TICKET_LIMIT: Duration = Duration::from_secs(20);
/// The time before a server tries again to accept connections where the system refuses.
const RETRY: Duration = Duration::from_millis(1);

/// Answers calls.
pub(super) async fn serve(role: &Role, journal: Journal) -> Result<(), Error> {
    let mut config = server_config(&role.identity(), ALPN, TICKETS, EarlyData::Refused)?;
    // The default remembers fewer sessions than there are clients. The key of these tickets ends with the
    // process, as path secrets do.
    config.ticketer = Ticketer::new()?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = (|| {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(role.address)?;
        socket.listen(BACKLOG)
    })()
    .map_err(Error::io("listening"))?;
    let address = listener.local_addr().map_err(Error::io("listening"))?;
    journal.listening(address)?;
    let journal = Arc::new(journal);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let (acceptor, journal) = (acceptor.clone(), journal.clone());
        // A client that is gone is its own report.
        tokio::spawn(async move { answer(stream, &acceptor, &journal).await.ok() });
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    journal: &Journal,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = acceptor.accept(stream).await?;
    let mut request = [0; REQUEST];
    stream.read_exact(&mut request).await?;
    if journal.execute(&request) {
        stream.write_all(&request).await?;
        stream.flush().await?;
        // The client closes first.
        let _end = stream.read(&mut request).await?;
    }
    Ok(())
}

/// The clients.
pub(super) struct Clients {
    server: SocketAddr,
    name: ServerName<'static>,
    clients: Vec<(TlsConnector, Arc<Tickets>)>,
}

impl Clients {
    pub(super) fn new(plan: &Plan, server: SocketAddr, trusted: &Identity) -> Result<Self, Error> {
        let trust = Trust::Fingerprint(trusted.fingerprint());
        let client = |_| -> Result<_, Error> {
            let tickets = Arc::new(Tickets::default());
            let config = client_config(&trust, ALPN, Some(tickets.clone()))?;
            Ok((TlsConnector::from(Arc::new(config)), tickets))
        };
        Ok(Self {
            server,
            name: ServerName::try_from(SERVER_NAME)
                .map_err(|error| Error::transport("reading the server's name", error))?,
            clients: (0..plan.clients).map(client).collect::<Result<_, _>>()?,
        })
    }

    /// Makes a call, and waits for a ticket.
    pub(super) async fn meet(&self, client: usize) -> Result<(), Failed> {
        let (number, mut progress) = (client as u64, Progress::default());
        self.call(client, number, &mut progress).await?;
        let tickets = &self.clients[client].1;
        tickets.wait(TICKET_LIMIT.into()).await.map_err(Failed::new)
    }

    pub(super) async fn call(
        &self,
        client: usize,
        number: u64,
        progress: &mut Progress,
    ) -> Result<(), Failed> {
        self.exchange(client, number, progress)
            .await
            .map_err(Failed::new)?
    }

    async fn exchange(
        &self,
        client: usize,
        number: u64,
        progress: &mut Progress,
    ) -> std::io::Result<Result<(), Failed>> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        // Dropping the stream resets the connection: thousands of calls per second would otherwise use up
        // the ports.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        let connector = &self.clients[client].0;
        let mut stream = connector.connect(self.name.clone(), stream).await?;
        progress.start = Some(match stream.get_ref().1.handshake_kind() {
            Some(HandshakeKind::Resumed) => Start::Resumed,
            _ => Start::Full,
        });
        let request = request(number);
        progress.sent = true;
        stream.write_all(&request).await?;
        stream.flush().await?;
        let mut answer = [0; REQUEST];
        stream.read_exact(&mut answer).await?;
        Ok(progress.check(&request, &answer))
    }
}
