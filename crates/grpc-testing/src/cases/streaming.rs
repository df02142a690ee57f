//! Cases with several requests or responses.

use std::iter::zip;

use futures_util::stream;

use super::requests::{expect_response, input_request, one_by_one, output_request};
use super::{REQUESTS, RESPONSES, client};
use crate::channel::TestChannel;
use crate::failure::{Failure, expect};

/// Several requests, and one response.
///
/// # Errors
/// [`Failure`].
pub async fn client_streaming<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let requests = stream::iter(REQUESTS.map(input_request));
    let response = client(channel).streaming_input_call(requests).await?;
    let size = response.get_ref().aggregated_payload_size;
    expect("bytes of all requests", size, 74_922)
}

/// One request, and several responses.
///
/// # Errors
/// [`Failure`].
pub async fn server_streaming<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let request = output_request(0, &RESPONSES);
    let response = client(channel).streaming_output_call(request).await?;
    let mut responses = response.into_inner();
    for size in RESPONSES {
        expect_response(responses.message().await?, Some(size))?;
    }
    expect_response(responses.message().await?, None)
}

/// Each request is sent after the response to the one before.
///
/// # Errors
/// [`Failure`].
pub async fn ping_pong<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let (requests, stream) = one_by_one();
    let mut pairs = zip(REQUESTS, RESPONSES);
    // A server may answer with its header as late as with its first response.
    if let Some((request, response)) = pairs.next() {
        let _ = requests.send(output_request(request, &[response])).await;
    }
    let mut responses = client(channel).full_duplex_call(stream).await?.into_inner();
    expect_response(responses.message().await?, Some(RESPONSES[0]))?;
    for (request, response) in pairs {
        // The call is over where it cannot be sent, and says why.
        let _ = requests.send(output_request(request, &[response])).await;
        expect_response(responses.message().await?, Some(response))?;
    }
    drop(requests);
    expect_response(responses.message().await?, None)
}

/// The responses to all requests come after the last request.
///
/// # Errors
/// [`Failure`].
pub async fn half_duplex<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let requests = zip(REQUESTS, RESPONSES)
        .map(|(request, response)| output_request(request, &[response]))
        .collect::<Vec<_>>();
    let call = client(channel)
        .half_duplex_call(stream::iter(requests))
        .await?;
    let mut responses = call.into_inner();
    for size in RESPONSES {
        expect_response(responses.message().await?, Some(size))?;
    }
    expect_response(responses.message().await?, None)
}

/// No request, and no response.
///
/// # Errors
/// [`Failure`].
pub async fn empty_stream<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let call = client(channel).full_duplex_call(stream::empty()).await?;
    expect_response(call.into_inner().message().await?, None)
}
