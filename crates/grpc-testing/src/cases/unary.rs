//! Cases with one request and one response.

use tonic::codec::CompressionEncoding;
use tonic::metadata::{Ascii, Binary, MetadataMap, MetadataValue};
use tonic::{Code, Request};

use super::requests::{expect_size, large_request, one_by_one, output_request};
use super::{LARGE_REQUEST, LARGE_RESPONSE, client};
use crate::channel::{TestChannel, WatchedChannel};
use crate::failure::{Failure, expect};
use crate::proto::{BoolValue, Empty, SimpleRequest};
use crate::server::{ECHO_INITIAL, ECHO_TRAILING};

/// An empty request and an empty response.
///
/// # Errors
/// [`Failure`].
pub async fn empty_unary<T: TestChannel>(channel: T) -> Result<(), Failure> {
    client(channel).empty_call(Empty {}).await?;
    Ok(())
}

/// A large request and a large response.
///
/// # Errors
/// [`Failure`].
pub async fn large_unary<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let response = client(channel).unary_call(large_request()).await?;
    expect_size(response.get_ref().payload.as_ref(), LARGE_RESPONSE)
}

/// Compressed and uncompressed requests, of which the server knows the difference.
///
/// # Errors
/// [`Failure`].
pub async fn client_compressed_unary<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let expecting = |value| SimpleRequest {
        expect_compressed: Some(BoolValue { value }),
        ..large_request()
    };
    let mut plain = client(channel.clone());
    let mut compressed = client(channel).send_compressed(CompressionEncoding::Gzip);
    // A server that does not know what was compressed would accept this one.
    let refused = plain.unary_call(expecting(true)).await;
    let code = refused.err().map(|status| status.code());
    expect(
        "status of a false request",
        code,
        Some(Code::InvalidArgument),
    )?;
    let response = compressed.unary_call(expecting(true)).await?;
    expect_size(response.get_ref().payload.as_ref(), LARGE_RESPONSE)?;
    let response = plain.unary_call(expecting(false)).await?;
    expect_size(response.get_ref().payload.as_ref(), LARGE_RESPONSE)
}

/// Compressed and uncompressed responses, as the request asks for them.
///
/// # Errors
/// [`Failure`].
pub async fn server_compressed_unary<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let channel = WatchedChannel::new(channel);
    let client = crate::proto::test_service_client::TestServiceClient::new(channel.clone());
    let mut client = client.accept_compressed(CompressionEncoding::Gzip);
    for value in [true, false] {
        let request = SimpleRequest {
            response_compressed: Some(BoolValue { value }),
            ..large_request()
        };
        let response = client.unary_call(request).await?;
        expect_size(response.get_ref().payload.as_ref(), LARGE_RESPONSE)?;
        expect("is compressed", channel.was_compressed(), Some(value))?;
    }
    Ok(())
}

/// Metadata that the server returns, in the header and in the trailers; by one response and by a stream
/// of responses.
///
/// # Errors
/// [`Failure`].
pub async fn custom_metadata<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let mut client = client(channel);
    let response = client.unary_call(with_metadata(large_request())).await?;
    expect_size(response.get_ref().payload.as_ref(), LARGE_RESPONSE)?;
    // Tonic has the header and the trailers of a single response in one map.
    expect_initial(response.metadata())?;
    expect_trailing(response.metadata())?;

    let (requests, stream) = one_by_one();
    let _ = requests
        .send(output_request(LARGE_REQUEST, &[LARGE_RESPONSE]))
        .await;
    drop(requests);
    let response = client.full_duplex_call(with_metadata(stream)).await?;
    expect_initial(response.metadata())?;
    let mut responses = response.into_inner();
    let first = responses.message().await?;
    expect_size(first.and_then(|it| it.payload).as_ref(), LARGE_RESPONSE)?;
    expect("is a response", responses.message().await?.is_some(), false)?;
    expect_trailing(&responses.trailers().await?.unwrap_or_default())
}

fn initial() -> MetadataValue<Ascii> {
    MetadataValue::from_static("test_initial_metadata_value")
}

fn trailing() -> MetadataValue<Binary> {
    MetadataValue::from_bytes(&[0xab, 0xab, 0xab])
}

fn with_metadata<R>(message: R) -> Request<R> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert(ECHO_INITIAL, initial());
    metadata.insert_bin(ECHO_TRAILING, trailing());
    request
}

fn expect_initial(metadata: &MetadataMap) -> Result<(), Failure> {
    let found = metadata.get(ECHO_INITIAL).cloned();
    expect("initial metadata", found, Some(initial()))
}

fn expect_trailing(metadata: &MetadataMap) -> Result<(), Failure> {
    let found = metadata.get_bin(ECHO_TRAILING).cloned();
    expect("trailing metadata", found, Some(trailing()))
}
