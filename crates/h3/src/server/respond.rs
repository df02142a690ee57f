//! Sends a response.

use std::future::pending;
use std::pin::pin;

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use http::{Response, StatusCode};
use http_body::Body;
use tokio::time::{Instant, sleep_until};
use weir_net::StopNotice;

use super::stats::Counters;
use crate::error::{BoxError, ErrorCode};
use crate::fields::remove_connection_fields;
use crate::outgoing::{SendError, send_body};
use crate::quic::SendStream;

/// The sending half of a request.
pub(super) type Sender = h3::server::RequestStream<SendStream, Bytes>;

/// Until when a response may be sent: in the extensions of the response. What its client has not taken
/// by then is given up with `H3_REQUEST_CANCELLED`, and the body is dropped. It holds for HTTP/3 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseDeadline(pub Instant);

/// Sends what the service answered, until the client does not want it any more.
pub(super) async fn respond<B>(
    counters: &Counters,
    send: &mut Sender,
    notice: StopNotice,
    answered: Result<Response<B>, BoxError>,
) where
    B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send,
{
    let answer = answered.as_ref().ok();
    let deadline = answer.and_then(|response| response.extensions().get().copied());
    let sending = async {
        match answered {
            Ok(response) => {
                let (mut parts, body) = response.into_parts();
                remove_connection_fields(&mut parts.headers);
                send.send_response(Response::from_parts(parts, ())).await?;
                send_body(send, pin!(body)).await
            }
            Err(error) => {
                tracing::error!(%error, "a service failed");
                let mut response = Response::new(());
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                send.send_response(response).await?;
                Ok(send.finish().await?)
            }
        }
    };
    let sent = tokio::select! {
        biased;
        sent = sending => sent,
        stopped = notice => {
            if stopped.is_some() {
                Counters::add(&counters.cancelled);
            }
            return;
        }
        () = passed(deadline) => {
            Counters::add(&counters.expired);
            send.stop_stream(ErrorCode::REQUEST_CANCELLED.0.into());
            return;
        }
    };
    match sent {
        Ok(()) => {}
        // The client's limit; nothing was sent of it.
        Err(SendError::Stream(error @ StreamError::HeaderTooBig { .. })) => {
            Counters::add(&counters.failed);
            tracing::warn!(%error, "a header, or trailers, of a response are too large");
            send.stop_stream(ErrorCode::INTERNAL_ERROR.0.into());
        }
        Err(SendError::Stream(error)) => {
            Counters::add(&counters.cancelled);
            tracing::debug!(%error, "a response was not wanted any more");
        }
        Err(SendError::Body(error)) => {
            Counters::add(&counters.failed);
            tracing::warn!(%error, "the body of a response failed");
            // Its stream is reset, with the client's fault if there is one.
        }
    }
}

/// Waits for a deadline.
async fn passed(deadline: Option<ResponseDeadline>) {
    match deadline {
        Some(ResponseDeadline(at)) => sleep_until(at).await,
        None => pending().await,
    }
}
