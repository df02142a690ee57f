//! Bodies that arrive.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::task::AbortHandle;
use weir_net::Connection;

use crate::error::{Error, ErrorCode};
use crate::fields::content_length;
use crate::quic::RecvStream;

/// The body of a request or a response that arrives. Dropping it before its end tells the peer that the
/// rest is not wanted; a client gives its request up thereby.
pub struct IncomingBody {
    source: Source,
    part: Part,
    length: Length,
    /// The task that sends the rest of the request.
    sending: Option<Sending>,
    /// What is to be kept until the end.
    _kept: Option<Box<dyn Send>>,
}

enum Source {
    Server(h3::server::RequestStream<RecvStream, Bytes>, Connection),
    Client(h3::client::RequestStream<RecvStream, Bytes>, Connection),
    #[cfg(feature = "http2")]
    Tcp(hyper::body::Incoming),
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Data,
    Trailers,
    End,
}

/// How much came, and has to come.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    expected: Option<u64>,
    received: u64,
}

/// Ends a task when it is dropped.
struct Sending(AbortHandle);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Length {
    fn new(headers: &HeaderMap) -> Self {
        Self {
            expected: content_length(headers).unwrap_or_default(),
            received: 0,
        }
    }

    fn check(&self, is_end: bool) -> Result<(), Error> {
        match self.expected {
            Some(expected) if self.received > expected || is_end && self.received < expected => {
                Err(Error::ContentLength {
                    expected,
                    received: self.received,
                })
            }
            _ => Ok(()),
        }
    }
}

impl IncomingBody {
    pub(crate) fn of_request(
        stream: h3::server::RequestStream<RecvStream, Bytes>,
        connection: Connection,
        headers: &HeaderMap,
    ) -> Self {
        Self::new(Source::Server(stream, connection), Length::new(headers))
    }

    /// The body of a response; that to a HEAD request is empty, whatever its header says.
    pub(crate) fn of_response(
        stream: h3::client::RequestStream<RecvStream, Bytes>,
        connection: Connection,
        headers: &HeaderMap,
        is_head: bool,
    ) -> Self {
        let length = if is_head {
            Length::default()
        } else {
            Length::new(headers)
        };
        Self::new(Source::Client(stream, connection), length)
    }

    /// The body of a request over TCP; hyper checks its length.
    #[cfg(feature = "http2")]
    pub(crate) fn of_tcp(body: hyper::body::Incoming) -> Self {
        Self::new(Source::Tcp(body), Length::default())
    }

    fn new(source: Source, length: Length) -> Self {
        Self {
            source,
            part: Part::Data,
            length,
            sending: None,
            _kept: None,
        }
    }

    /// Ends a task with the body.
    pub(crate) fn set_sending(&mut self, task: AbortHandle) {
        self.sending = Some(Sending(task));
    }

    /// Keeps a value until the body is dropped.
    pub(crate) fn keep(&mut self, kept: impl Send + 'static) {
        self._kept = Some(Box::new(kept));
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        let (data, connection) = match &mut self.source {
            Source::Server(stream, connection) => (
                ready!(stream.poll_recv_data(cx))
                    .map(|data| data.map(|mut data| data.copy_to_bytes(data.remaining()))),
                connection,
            ),
            Source::Client(stream, connection) => (
                ready!(stream.poll_recv_data(cx))
                    .map(|data| data.map(|mut data| data.copy_to_bytes(data.remaining()))),
                connection,
            ),
            #[cfg(feature = "http2")]
            Source::Tcp(_) => return Poll::Ready(Ok(None)),
        };
        Poll::Ready(data.map_err(|error| Error::of_stream(error, connection)))
    }

    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, Error>> {
        let (trailers, connection) = match &mut self.source {
            Source::Server(stream, connection) => {
                (ready!(stream.poll_recv_trailers(cx)), connection)
            }
            Source::Client(stream, connection) => {
                (ready!(stream.poll_recv_trailers(cx)), connection)
            }
            #[cfg(feature = "http2")]
            Source::Tcp(_) => return Poll::Ready(Ok(None)),
        };
        Poll::Ready(trailers.map_err(|error| Error::of_stream(error, connection)))
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Error>> {
        #[cfg(feature = "http2")]
        if let Source::Tcp(body) = &mut self.source {
            let frame = ready!(Pin::new(body).poll_frame(cx)).transpose();
            return Poll::Ready(frame.map_err(|error| Error::Tcp(error.to_string())));
        }
        if self.part == Part::Data {
            match ready!(self.poll_data(cx))? {
                Some(data) => {
                    self.length.received += data.len() as u64;
                    self.length.check(false)?;
                    return Poll::Ready(Ok(Some(Frame::data(data))));
                }
                None => self.part = Part::Trailers,
            }
        }
        if self.part == Part::Trailers {
            let trailers = ready!(self.poll_trailers(cx))?;
            self.part = Part::End;
            self.length.check(true)?;
            if let Some(trailers) = trailers {
                return Poll::Ready(Ok(Some(Frame::trailers(trailers))));
            }
        }
        Poll::Ready(Ok(None))
    }

    fn stop(&mut self, code: ErrorCode) {
        match &mut self.source {
            Source::Server(stream, _) => stream.stop_sending(code.0.into()),
            Source::Client(stream, _) => stream.stop_sending(code.0.into()),
            #[cfg(feature = "http2")]
            Source::Tcp(_) => {}
        }
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let body = self.get_mut();
        let part = ready!(body.poll_part(cx));
        if let Err(error) = &part {
            body.part = Part::End;
            if matches!(error, Error::ContentLength { .. }) {
                body.stop(ErrorCode::MESSAGE_ERROR);
            }
        }
        Poll::Ready(part.transpose())
    }

    fn is_end_stream(&self) -> bool {
        #[cfg(feature = "http2")]
        if let Source::Tcp(body) = &self.source {
            return body.is_end_stream();
        }
        self.part == Part::End
    }

    fn size_hint(&self) -> SizeHint {
        #[cfg(feature = "http2")]
        if let Source::Tcp(body) = &self.source {
            return body.size_hint();
        }
        match self.length.expected {
            Some(expected) => SizeHint::with_exact(expected.saturating_sub(self.length.received)),
            None => SizeHint::new(),
        }
    }
}

impl std::fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingBody")
            .field("part", &self.part)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
