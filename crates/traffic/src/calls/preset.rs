//! Calls over any [`Transport`]: a server that answers, and a client that sends requests.
//!
//! A [`Preset`] converts the settings of a measurement to those of a transport, which makes it a
//! [`Driver`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::calls::driver::{
    ClientOptions, Driver, FirstCall, Listening, LocalFuture, Phase, RequestClient,
    RequestConnection, ServerOptions,
};
use crate::calls::error::Error;
use crate::calls::payload::{Body, Library, Request};
use crate::transport::{
    Client, Connection, Incoming, Listener, Start, StreamKind, Transport, receive_exactly, send_all,
};

/// The maximum number of bytes that a client reads at once.
const READ_AT_ONCE: usize = 64 * 1024;

/// The set-up of a transport for calls.
pub trait Preset {
    /// The transport.
    type Transport: Transport;

    /// See [`Driver::name`].
    fn name(&self) -> &'static str;

    /// See [`Driver::version`].
    fn version(&self) -> String;

    /// See [`Driver::supports`]. By default everything but connections without a handshake.
    fn supports(&self, phase: Phase) -> bool {
        phase != Phase::Known
    }

    /// See [`Driver::is_authenticated`].
    fn is_authenticated(&self) -> bool {
        true
    }

    /// Returns the server's transport.
    ///
    /// # Errors
    /// A setting is not supported.
    fn server(&self, options: &ServerOptions) -> Result<Self::Transport, Error>;

    /// Returns the client's transport.
    ///
    /// # Errors
    /// A setting is not supported.
    fn client(&self, options: &ClientOptions) -> Result<Self::Transport, Error>;

    /// Returns the client's own addresses; empty if the kernel chooses.
    fn local(&self, _options: &ClientOptions) -> Vec<SocketAddr> {
        Vec::new()
    }

    /// Returns [`Listening::notes`].
    ///
    /// # Errors
    /// The system does not provide the information.
    fn notes(
        &self,
        listener: &<Self::Transport as Transport>::Listener,
    ) -> Result<Vec<String>, Error>;
}

impl<P: Preset> Driver for P {
    fn name(&self) -> &'static str {
        Preset::name(self)
    }

    fn version(&self) -> String {
        Preset::version(self)
    }

    fn supports(&self, phase: Phase) -> bool {
        Preset::supports(self, phase)
    }

    fn is_authenticated(&self) -> bool {
        Preset::is_authenticated(self)
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let listener = self.server(options)?.listen(&[options.bind])?;
        let addresses = listener.addresses().map_err(Error::io("listening"))?;
        Ok(Listening {
            address: addresses.first().copied().unwrap_or(options.bind),
            notes: self.notes(&listener)?,
            serve: Box::pin(serve(listener)),
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn RequestClient>, Error> {
        let client = Preset::client(self, options)?.client(&self.local(options))?;
        Ok(Box::new(CallClient {
            client,
            server: options.server,
        }))
    }
}

/// Serves clients until the listener fails, each connection in its own task.
async fn serve<L: Listener>(listener: L) -> Result<(), Error> {
    let library = Arc::new(Library::default());
    loop {
        let incoming = listener.accept().await?;
        tokio::spawn(serve_client(incoming, Arc::clone(&library)));
    }
}

/// Answers one call after the other. A client that fails or disconnects ends its connection, not
/// the server.
async fn serve_client<I: Incoming>(incoming: I, library: Arc<Library>) {
    if let Ok(mut connection) = incoming.establish().await {
        while let Ok(true) = answer(&mut connection, &library).await {}
    }
}

/// Answers the next call; returns `false` if there is none.
async fn answer(connection: &mut impl Connection, library: &Library) -> io::Result<bool> {
    let mut request = [0; Request::LENGTH];
    if !connection.accept(StreamKind::TwoWay).await?
        || !receive_exactly(connection, &mut request).await?
    {
        return Ok(false);
    }
    connection.message_ended().await?;
    let request = Request::decode(&request)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut reply = library.reply(request);
    let mut chunk = reply.next().unwrap_or_default();
    for next in reply {
        send_all(connection, std::mem::replace(&mut chunk, next)).await?;
    }
    connection.end_message(chunk).await?;
    Ok(true)
}

/// A client and the address of its server.
struct CallClient<C> {
    client: C,
    server: SocketAddr,
}

impl<C: Client> RequestClient for CallClient<C> {
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn RequestConnection>, Error>> {
        Box::pin(async move {
            let connection = self.client.connect(None, self.server, start).await?;
            let mut connection = Box::new(CallConnection(connection));
            if let Some((request, body)) = first {
                call(&mut connection.0, request, body).await?;
            }
            if start == Start::Resumed && !connection.0.early_data_accepted().await? {
                return Err(crate::Error::EarlyDataRefused.into());
            }
            if start == Start::Known && !connection.0.is_without_handshake() {
                return Err(crate::Error::SecretRefused.into());
            }
            Ok(connection as Box<dyn RequestConnection>)
        })
    }
}

/// Makes one call; the body records whether the reply is complete.
async fn call(
    connection: &mut impl Connection,
    request: Request,
    body: &mut Body,
) -> Result<(), Error> {
    let opened = connection.open(StreamKind::TwoWay).await;
    opened.map_err(Error::io("opening a stream"))?;
    let request = Bytes::copy_from_slice(&request.encode());
    let sent = connection.end_message(request).await;
    sent.map_err(Error::io("sending the request"))?;
    let reading = "reading the reply";
    while !body.is_complete() {
        let most = usize::try_from(body.remaining()).unwrap_or(usize::MAX);
        let most = most.min(READ_AT_ONCE);
        let mut take = |piece: &[u8]| body.take(piece);
        let received = connection.receive(most, &mut take).await;
        if received.map_err(Error::io(reading))? == 0 {
            return Ok(());
        }
    }
    let ended = connection.message_ended().await;
    ended.map_err(Error::io(reading))
}

struct CallConnection<C>(C);

impl<C: Connection> RequestConnection for CallConnection<C> {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(call(&mut self.0, request, body))
    }

    fn close(mut self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        Box::pin(async move { Ok(self.0.close().await?) })
    }
}
