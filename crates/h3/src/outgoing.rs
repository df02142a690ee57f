//! Bodies that are sent.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use http::HeaderMap;
use http_body::Body;

use crate::error::BoxError;
use crate::quic::SendStream;

/// Why a body was not sent to its end.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The stream takes no more.
    Stream(StreamError),
    /// The body failed.
    Body(BoxError),
}

impl From<StreamError> for SendError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

/// The sending half of a request stream, of a server or a client.
pub(crate) trait Outgoing: Send {
    fn send_data(&mut self, data: Bytes) -> impl Future<Output = Result<(), StreamError>> + Send;
    fn send_trailers(
        &mut self,
        trailers: HeaderMap,
    ) -> impl Future<Output = Result<(), StreamError>> + Send;
    fn finish(&mut self) -> impl Future<Output = Result<(), StreamError>> + Send;
}

impl Outgoing for h3::server::RequestStream<SendStream, Bytes> {
    async fn send_data(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.send_data(data).await
    }

    async fn send_trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamError> {
        self.send_trailers(trailers).await
    }

    async fn finish(&mut self) -> Result<(), StreamError> {
        self.finish().await
    }
}

impl Outgoing for h3::client::RequestStream<SendStream, Bytes> {
    async fn send_data(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.send_data(data).await
    }

    async fn send_trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamError> {
        self.send_trailers(trailers).await
    }

    async fn finish(&mut self) -> Result<(), StreamError> {
        self.finish().await
    }
}

/// Sends a body and its trailers, and ends the stream.
pub(crate) async fn send_body<B>(
    stream: &mut impl Outgoing,
    mut body: Pin<&mut B>,
) -> Result<(), SendError>
where
    B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send,
{
    loop {
        let next = poll_fn(|cx| {
            let polled = body.as_mut().poll_frame(cx);
            polled.map_err(|error| SendError::Body(error.into()))
        });
        let Some(frame) = next.await.transpose()? else {
            break;
        };
        match frame.into_data() {
            Ok(mut data) => {
                if data.has_remaining() {
                    stream
                        .send_data(data.copy_to_bytes(data.remaining()))
                        .await?;
                }
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    stream.send_trailers(trailers).await?;
                    // Nothing may follow them.
                    break;
                }
            }
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(stream.finish().await?)
}
