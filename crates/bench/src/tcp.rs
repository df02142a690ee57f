//! Kernel TCP without encryption.
//!
//! Requests and replies follow one another on the connection; both ends know the lengths. `TCP_NODELAY`
//! is on; the congestion control is CUBIC unless another of the kernel's is named, whatever the system's
//! default is: the paper's comparison used CUBIC, and results must not depend on a sysctl.

use std::net::SocketAddr;
use std::sync::Arc;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::driver::{
    Client, ClientOptions, Connection, Driver, FirstCall, Listening, LocalFuture, Phase,
    ServerOptions, Start,
};
use crate::error::Error;
use crate::payload::{Body, Library, Request};
use crate::specification::Abilities;

/// Pending connections that a listener keeps; more than any mix opens at once.
const BACKLOG: u32 = 1024;

/// The kernel's congestion control unless one is named.
const CONGESTION: &str = "cubic";

/// Bytes that a client reads at most at once.
pub(crate) const READ_BUFFER: usize = 64 * 1024;

/// The driver of plain TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Driver for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn version(&self) -> String {
        "kernel TCP".to_owned()
    }

    fn supports(&self, phase: Phase) -> bool {
        phase != Phase::Resumed
    }

    fn is_authenticated(&self) -> bool {
        false
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
        let (listener, address, note) = listen(options.bind, specification.congestion.as_deref())?;
        Ok(Listening {
            address,
            serve: Box::pin(async move {
                let library = Arc::new(Library::default());
                loop {
                    let stream = accept(&listener).await?;
                    tokio::spawn(serve(stream, Arc::clone(&library)));
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
        Ok(Box::new(TcpClient {
            server: options.server,
            congestion: specification.congestion.clone(),
        }))
    }
}

/// Answers requests until the client closes or breaks the connection.
pub(crate) async fn serve<S>(mut stream: S, library: Arc<Library>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = [0; Request::LENGTH];
    // A client that goes away ends its connection, not the server.
    while stream.read_exact(&mut request).await.is_ok() {
        let Ok(request) = Request::decode(&request) else {
            return;
        };
        for chunk in library.reply(request) {
            if stream.write_all(&chunk).await.is_err() {
                return;
            }
        }
        if stream.flush().await.is_err() {
            return;
        }
    }
}

/// Makes one call on a stream, reading through `buffer`; the body tells whether the reply is whole.
pub(crate) async fn call<S>(
    stream: &mut S,
    buffer: &mut [u8],
    request: Request,
    body: &mut Body,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream
        .write_all(&request.encode())
        .await
        .map_err(Error::io("sending the request"))?;
    stream
        .flush()
        .await
        .map_err(Error::io("sending the request"))?;
    while !body.is_complete() {
        let length = stream
            .read(buffer)
            .await
            .map_err(Error::io("reading the reply"))?;
        if length == 0 {
            break;
        }
        body.take(buffer.get(..length).unwrap_or_default());
    }
    Ok(())
}

/// Binds a listener whose connections use the named congestion control, and reports which it is.
pub(crate) fn listen(
    bind: SocketAddr,
    congestion: Option<&str>,
) -> Result<(TcpListener, SocketAddr, String), Error> {
    let doing = "listening";
    let socket = new_socket(bind, congestion)?;
    socket.set_reuseaddr(true).map_err(Error::io(doing))?;
    socket.bind(bind).map_err(Error::io(doing))?;
    let listener = socket.listen(BACKLOG).map_err(Error::io(doing))?;
    let address = listener.local_addr().map_err(Error::io(doing))?;
    let name = SockRef::from(&listener)
        .tcp_congestion()
        .map_err(Error::io("reading the congestion control"))?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let note = format!(
        "kernel congestion control {}",
        String::from_utf8_lossy(name)
    );
    Ok((listener, address, note))
}

/// Accepts a connection.
pub(crate) async fn accept(listener: &TcpListener) -> Result<TcpStream, Error> {
    let (stream, _) = listener.accept().await.map_err(Error::io("accepting"))?;
    stream
        .set_nodelay(true)
        .map_err(Error::io("setting TCP_NODELAY"))?;
    Ok(stream)
}

/// Connects.
pub(crate) async fn connect(
    server: SocketAddr,
    congestion: Option<&str>,
) -> Result<TcpStream, Error> {
    let stream = new_socket(server, congestion)?
        .connect(server)
        .await
        .map_err(Error::io("connecting"))?;
    stream
        .set_nodelay(true)
        .map_err(Error::io("setting TCP_NODELAY"))?;
    Ok(stream)
}

fn new_socket(address: SocketAddr, congestion: Option<&str>) -> Result<TcpSocket, Error> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
    .map_err(Error::io("opening a socket"))?;
    SockRef::from(&socket)
        .set_tcp_congestion(congestion.unwrap_or(CONGESTION).as_bytes())
        .map_err(Error::io("setting the kernel's congestion control"))?;
    Ok(socket)
}

struct TcpClient {
    server: SocketAddr,
    congestion: Option<String>,
}

impl Client for TcpClient {
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            if start == Start::Resumed {
                return Err(Error::Unsupported {
                    transport: "tcp",
                    what: "resume".to_owned(),
                });
            }
            let stream = connect(self.server, self.congestion.as_deref()).await?;
            let mut connection = Box::new(TcpConnection {
                stream,
                buffer: vec![0; READ_BUFFER],
            });
            if let Some((request, body)) = first {
                connection.call(request, body).await?;
            }
            Ok(connection as Box<dyn Connection>)
        })
    }
}

struct TcpConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection for TcpConnection {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(call(&mut self.stream, &mut self.buffer, request, body))
    }

    fn close(mut self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            self.stream
                .shutdown()
                .await
                .map_err(Error::io("closing the connection"))
        })
    }
}
