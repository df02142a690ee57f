//! Clients: requests on one connection, or over a channel to several servers.

mod builder;
mod channel;
mod protocol;
mod replay;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use bytes::{Buf, Bytes};
use h3::client::RequestStream;
use h3::error::StreamError;
use http::{Method, Request, Response, Version, request};
use http_body::Body;
use tokio::task::AbortHandle;
use weir_net::Connection;

use crate::APPLICATION_PROTOCOL;
use crate::body::IncomingBody;
use crate::error::{BoxError, Error, ErrorCode};
use crate::fields::{is_malformed, remove_connection_fields};
use crate::outgoing::{SendError, send_body};
use crate::quic::{BidiStream, Opener, PeerState, Quic, SendStream};

pub use builder::ChannelBuilder;
pub use channel::Channel;

/// The largest header of a response, in bytes as RFC 9114, section 4.2.2, counts them.
const MAX_HEADER_SIZE: u64 = 64 * 1024;

/// A connection to an HTTP/3 server. Clones are handles to the same one, which closes with the last
/// handle and response.
#[derive(Clone)]
pub struct Client {
    sender: h3::client::SendRequest<Opener, Bytes>,
    connection: Connection,
    peer: Arc<PeerState>,
    _control: Arc<Control>,
}

/// A request whose header is sent.
struct Opened {
    stream: RequestStream<BidiStream, Bytes>,
    is_head: bool,
}

/// The task that follows the server's control stream.
struct Control(AbortHandle);

impl Drop for Control {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Client {
    /// Makes a client of an established connection. Its TLS configuration has to offer
    /// [`APPLICATION_PROTOCOL`].
    ///
    /// # Errors
    /// [`Error`] where the server does not speak HTTP/3, or the connection is over.
    pub async fn new(connection: Connection) -> Result<Self, Error> {
        let protocol = connection.peer_identity().application_protocol;
        if protocol.as_deref() != Some(APPLICATION_PROTOCOL) {
            return Err(Error::Protocol("the server does not speak h3".to_owned()));
        }
        connection.set_drain_codes(ErrorCode::REQUEST_REJECTED.0, ErrorCode::NO_ERROR.0);
        let peer = Arc::new(PeerState::default());
        let quic = Quic::new(connection.clone(), 4 * MAX_HEADER_SIZE, peer.clone());
        let mut builder = h3::client::builder();
        builder.max_field_section_size(MAX_HEADER_SIZE);
        builder.send_grease(false);
        let (mut http, sender) = builder
            .build(quic)
            .await
            .map_err(|error| Error::of_connection(error, &connection))?;
        let control = tokio::spawn(async move {
            let error = poll_fn(|cx| http.poll_close(cx)).await;
            tracing::debug!(%error, "an HTTP/3 connection ended");
        });
        Ok(Self {
            sender,
            connection,
            peer,
            _control: Arc::new(Control(control.abort_handle())),
        })
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns whether the connection takes no new requests: it is over, or one of its ends shuts down.
    pub fn is_draining(&self) -> bool {
        self.peer.is_going_away()
            || self.connection.is_draining()
            || self.connection.error().is_some()
    }

    /// Waits until the connection takes no new requests.
    pub async fn draining(&self) {
        tokio::select! {
            () = self.peer.going_away() => {}
            () = self.connection.draining() => {}
        }
    }

    /// Sends a request and returns the response, as soon as its header has arrived. The rest of the
    /// request is sent for as long as the response, or its body, is held; dropping that gives the
    /// request up (`H3_REQUEST_CANCELLED`).
    ///
    /// The request's URI has a scheme and an authority.
    ///
    /// # Errors
    /// [`Error`]; [`Error::executed`] says whether the server may have executed the request.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<IncomingBody>, Error>
    where
        B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let opened = self.open(parts).await?;
        self.exchange(opened, body).await
    }

    /// Opens a stream and sends the header of a request.
    async fn open(&self, mut parts: request::Parts) -> Result<Opened, Error> {
        parts.version = Version::HTTP_3;
        remove_connection_fields(&mut parts.headers);
        let is_head = parts.method == Method::HEAD;
        let request = Request::from_parts(parts, ());
        let stream = self.sender.clone().send_request(request).await;
        let stream = stream.map_err(|error| match error {
            StreamError::HeaderTooBig {
                actual_size,
                max_size,
            } => Error::RequestHeader {
                size: actual_size,
                limit: max_size,
            },
            error => Error::of_stream(error, &self.connection),
        })?;
        Ok(Opened { stream, is_head })
    }

    /// Sends the body of a request, and receives the header of the response.
    async fn exchange<B>(&self, opened: Opened, body: B) -> Result<Response<IncomingBody>, Error>
    where
        B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
    {
        let id = opened.stream.id().into_inner();
        tokio::select! {
            biased;
            exchanged = self.send_and_receive(opened, body) => {
                exchanged.map_err(|error| self.judge(error, id))
            }
            // The server need not say it of each request.
            () = self.peer.refusing(id) => Err(Error::Stream(ErrorCode::REQUEST_REJECTED)),
        }
    }

    async fn send_and_receive<B>(
        &self,
        Opened { stream, is_head }: Opened,
        body: B,
    ) -> Result<Response<IncomingBody>, Error>
    where
        B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
    {
        let (send, mut recv) = stream.split();
        let mut sending = Box::pin(send_request_body(send, body));
        let mut sent = None;
        let response = {
            let receiving = recv.recv_response();
            let mut receiving = std::pin::pin!(receiving);
            poll_fn(|cx| {
                if sent.is_none()
                    && let Poll::Ready(result) = sending.as_mut().poll(cx)
                {
                    let failed = result.as_ref().err().cloned();
                    sent = Some(result);
                    if let Some(error) = failed {
                        return Poll::Ready(Err(error));
                    }
                }
                let received = receiving.as_mut().poll(cx);
                received.map_err(|error| Error::of_stream(error, &self.connection))
            })
            .await?
        };
        let (parts, ()) = response.into_parts();
        if is_malformed(&parts.headers) {
            recv.stop_sending(ErrorCode::MESSAGE_ERROR.0.into());
            return Err(Error::Protocol("a malformed response".to_owned()));
        }
        let connection = self.connection.clone();
        let mut body = IncomingBody::of_response(recv, connection, &parts.headers, is_head);
        if sent.is_none() {
            body.set_sending(tokio::spawn(sending).abort_handle());
        }
        Ok(Response::from_parts(parts, body))
    }

    /// A request that the server has said not to serve was not executed, whatever ended it.
    fn judge(&self, error: Error, stream: u64) -> Error {
        if self.peer.refuses(stream) {
            Error::Stream(ErrorCode::REQUEST_REJECTED)
        } else {
            error
        }
    }
}

/// Sends the body of a request. That the server stops it is no failure: its response says why.
async fn send_request_body<B>(
    mut send: RequestStream<SendStream, Bytes>,
    body: B,
) -> Result<(), Error>
where
    B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send,
{
    match send_body(&mut send, std::pin::pin!(body)).await {
        Ok(()) | Err(SendError::Stream(_)) => Ok(()),
        Err(SendError::Body(error)) => {
            send.stop_stream(ErrorCode::REQUEST_CANCELLED.0.into());
            Err(Error::Body(error.into()))
        }
    }
}
