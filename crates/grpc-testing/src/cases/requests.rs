//! Requests, and what the cases check of every response.

use futures_util::{Stream, stream};
use tokio::sync::mpsc;

use super::{LARGE_REQUEST, LARGE_RESPONSE};
use crate::failure::{Failure, expect};
use crate::proto::{
    Payload, ResponseParameters, SimpleRequest, StreamingInputCallRequest,
    StreamingOutputCallRequest, StreamingOutputCallResponse,
};

pub(super) fn payload(size: usize) -> Option<Payload> {
    Some(Payload {
        body: vec![0; size],
        ..Payload::default()
    })
}

pub(super) fn large_request() -> SimpleRequest {
    SimpleRequest {
        response_size: LARGE_RESPONSE,
        payload: payload(LARGE_REQUEST),
        ..SimpleRequest::default()
    }
}

pub(super) fn input_request(size: usize) -> StreamingInputCallRequest {
    StreamingInputCallRequest {
        payload: payload(size),
        ..StreamingInputCallRequest::default()
    }
}

/// A request of so many bytes that asks for responses.
pub(super) fn output_request(size: usize, responses: &[i32]) -> StreamingOutputCallRequest {
    let parameters = |size: &i32| ResponseParameters {
        size: *size,
        ..ResponseParameters::default()
    };
    StreamingOutputCallRequest {
        response_parameters: responses.iter().map(parameters).collect(),
        payload: payload(size),
        ..StreamingOutputCallRequest::default()
    }
}

/// A stream of requests that are sent one by one; it ends when the sender is dropped.
pub(super) fn one_by_one<R: Send + 'static>()
-> (mpsc::Sender<R>, impl Stream<Item = R> + Send + 'static) {
    let (sender, mut receiver) = mpsc::channel(1);
    (sender, stream::poll_fn(move |cx| receiver.poll_recv(cx)))
}

pub(super) fn expect_size(payload: Option<&Payload>, size: i32) -> Result<(), Failure> {
    let found = payload.map_or(0, |payload| payload.body.len());
    expect(
        "bytes of a response",
        found as u64,
        size.unsigned_abs().into(),
    )
}

/// Expects a response of this size, or the end.
pub(super) fn expect_response(
    response: Option<StreamingOutputCallResponse>,
    size: Option<i32>,
) -> Result<(), Failure> {
    match (&response, size) {
        (Some(response), Some(size)) => expect_size(response.payload.as_ref(), size),
        _ => expect("is a response", response.is_some(), size.is_some()),
    }
}
