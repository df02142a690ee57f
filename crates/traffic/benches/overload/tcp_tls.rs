//! TCP + TLS 1.3 by tokio-rustls. Requests are pipelined; a response follows its length, in the order of
//! the requests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use weir_traffic::calls::identity::{ALPN, SERVER_NAME};
use weir_traffic::tls::{EarlyData, Fingerprint, Trust, client_config, server_config};

use crate::Failure;
use crate::calls::{Calls, REQUEST, read_request};
use crate::client::{self, Counters, LOCAL};
use crate::server::{Role, listening};

/// Connections that wait to be accepted; the system may allow fewer.
const BACKLOG: u32 = 4096;
/// The bytes of a response's length.
const LENGTH: usize = 4;

/// Answers calls until it is stopped.
pub(crate) async fn serve(
    role: &Role,
    stopped: impl Future<Output = ()>,
) -> Result<Counters, Failure> {
    let config = server_config(&role.identity(), ALPN, 0, EarlyData::Refused)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let socket = TcpSocket::new_v4()?;
    socket.bind(LOCAL)?;
    let listener = socket.listen(BACKLOG)?;
    listening(listener.local_addr()?)?;
    let accepted = async {
        loop {
            let (stream, _) = listener.accept().await?;
            let acceptor = acceptor.clone();
            // A client that is gone is its own report.
            tokio::spawn(async move { answer(stream, &acceptor).await.ok() });
        }
    };
    tokio::select! {
        failed = accepted => return failed,
        () = stopped => {}
    }
    Ok(Counters::default())
}

/// Answers the calls of a connection, all in one task: the requests that wait while it writes are small.
async fn answer(stream: TcpStream, acceptor: &TlsAcceptor) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(acceptor.accept(stream).await?);
    let (mut request, mut response) = ([0; REQUEST], Vec::new());
    loop {
        stream.read_exact(&mut request).await?;
        let (number, size) = read_request(&request).ok_or("a malformed request")?;
        response.resize(LENGTH + size as usize, 0);
        response[..LENGTH].copy_from_slice(&size.to_le_bytes());
        response[LENGTH..][..number.len()].copy_from_slice(&number);
        stream.write_all(&response).await?;
        stream.flush().await?;
    }
}

/// The client.
pub(crate) struct Client {
    server: SocketAddr,
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl Client {
    pub(crate) fn new(server: SocketAddr, trusted: Fingerprint) -> Result<Self, Failure> {
        let config = client_config(&Trust::Fingerprint(trusted), ALPN, None)?;
        Ok(Self {
            server,
            name: ServerName::try_from(SERVER_NAME)?,
            connector: TlsConnector::from(Arc::new(config)),
        })
    }
}

impl client::Client for Client {
    type Connection = TlsStream<TcpStream>;

    async fn connect(&self) -> Result<Self::Connection, Failure> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        Ok(self.connector.connect(self.name.clone(), stream).await?)
    }

    async fn call(connection: Self::Connection, calls: Arc<Calls>, slots: Range<usize>) {
        let (read, write) = tokio::io::split(connection);
        let (requests, queue) = unbounded_channel();
        tokio::spawn(send(queue, write));
        let mut read = BufReader::new(read);
        let (mut response, mut failed) = (Vec::new(), None);
        let mut open: VecDeque<_> = slots.filter_map(|slot| calls.begin(slot)).collect();
        for call in &open {
            // A sender that has ended is an error of the reader too.
            let _ = requests.send(call.request());
        }
        while let Some(call) = open.pop_front() {
            let received = match &failed {
                Some(error) => Err(String::clone(error)),
                None => receive(&mut read, &mut response).await,
            };
            if let Err(error) = &received {
                failed = Some(error.clone());
            }
            let answered = received.and_then(|()| call.check(&response));
            if let Some(next) = calls.end(&call, answered) {
                let _ = requests.send(next.request());
                open.push_back(next);
            }
        }
    }

    fn counters(&self) -> Result<Counters, Failure> {
        Ok(Counters::default())
    }
}

/// Sends requests, with one write those that wait.
async fn send(
    mut queue: UnboundedReceiver<[u8; REQUEST]>,
    mut write: impl AsyncWriteExt + Unpin,
) -> std::io::Result<()> {
    let mut requests = Vec::new();
    while let Some(request) = queue.recv().await {
        requests.clear();
        requests.extend_from_slice(&request);
        while let Ok(request) = queue.try_recv() {
            requests.extend_from_slice(&request);
        }
        write.write_all(&requests).await?;
        write.flush().await?;
    }
    Ok(())
}

/// Receives a response.
async fn receive(
    read: &mut (impl AsyncReadExt + Unpin),
    response: &mut Vec<u8>,
) -> Result<(), String> {
    let received = async {
        let size = read.read_u32_le().await?;
        response.resize(size as usize, 0);
        read.read_exact(response).await
    };
    received.await.map(drop).map_err(|error| error.to_string())
}
