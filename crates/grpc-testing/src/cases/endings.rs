//! Cases of calls that end early, or with an error.

use std::time::Duration;

use futures_util::stream;
use tokio::time::timeout;
use tonic::{Code, Request, Status};

use super::requests::{expect_response, input_request, one_by_one, output_request};
use super::{REQUESTS, RESPONSES, client, empty_unary};
use crate::channel::TestChannel;
use crate::failure::{Failure, expect};
use crate::proto::unimplemented_service_client::UnimplementedServiceClient;
use crate::proto::{EchoStatus, Empty, SimpleRequest, StreamingOutputCallRequest};

/// The time in which a call certainly gets under way, and ends if it can.
const UNDER_WAY: Duration = Duration::from_millis(50);

/// A status that the request asks for; by one response and by a stream.
///
/// # Errors
/// [`Failure`].
pub async fn status_code_and_message<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let message = "test status message";
    expect_echo(channel.clone(), message).await?;
    let request = StreamingOutputCallRequest {
        response_status: Some(echo(message)),
        ..StreamingOutputCallRequest::default()
    };
    let mut client = client(channel);
    let ended = match client.full_duplex_call(stream::iter([request])).await {
        Ok(response) => response.into_inner().message().await.err(),
        Err(status) => Some(status),
    };
    expect_status(ended, message)
}

/// A status whose message has to be escaped on the wire.
///
/// # Errors
/// [`Failure`].
pub async fn special_status_message<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let message = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
    expect_echo(channel, message).await
}

fn echo(message: &str) -> EchoStatus {
    EchoStatus {
        code: Code::Unknown.into(),
        message: message.to_owned(),
    }
}

async fn expect_echo<T: TestChannel>(channel: T, message: &str) -> Result<(), Failure> {
    let request = SimpleRequest {
        response_status: Some(echo(message)),
        ..SimpleRequest::default()
    };
    let answered = client(channel).unary_call(request).await;
    expect_status(answered.err(), message)
}

fn expect_status(status: Option<Status>, message: &str) -> Result<(), Failure> {
    let found = status.map(|status| (status.code(), status.message().to_owned()));
    let expected = (Code::Unknown, message.to_owned());
    expect("status", found, Some(expected))
}

/// A method that the server does not have.
///
/// # Errors
/// [`Failure`].
pub async fn unimplemented_method<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let answered = client(channel).unimplemented_call(Empty {}).await;
    let code = answered.err().map(|status| status.code());
    expect("status", code, Some(Code::Unimplemented))
}

/// A service that the server does not have.
///
/// # Errors
/// [`Failure`].
pub async fn unimplemented_service<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let mut client = UnimplementedServiceClient::new(channel);
    let answered = client.unimplemented_call(Empty {}).await;
    let code = answered.err().map(|status| status.code());
    expect("status", code, Some(Code::Unimplemented))
}

/// A call that is cancelled before it has a response; tonic cancels calls that are dropped, without a
/// status. The connection goes on.
///
/// # Errors
/// [`Failure`].
pub async fn cancel_after_begin<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let (requests, stream) = one_by_one();
    let _ = requests.send(input_request(REQUESTS[0])).await;
    let mut client = client(channel.clone());
    let answered = timeout(UNDER_WAY, client.streaming_input_call(stream)).await;
    expect("has ended by itself", answered.is_ok(), false)?;
    drop(requests);
    empty_unary(channel).await
}

/// A call that is cancelled after its first response. The connection goes on.
///
/// # Errors
/// [`Failure`].
pub async fn cancel_after_first_response<T: TestChannel>(channel: T) -> Result<(), Failure> {
    let (requests, stream) = one_by_one();
    let request = output_request(REQUESTS[0], &RESPONSES[..1]);
    let _ = requests.send(request).await;
    let call = client(channel.clone()).full_duplex_call(stream).await?;
    let mut responses = call.into_inner();
    expect_response(responses.message().await?, Some(RESPONSES[0]))?;
    drop(responses);
    empty_unary(channel).await
}

/// A call whose deadline passes while the server waits for its client. The connection goes on.
///
/// # Errors
/// [`Failure`].
pub async fn timeout_on_sleeping_server<T: TestChannel>(channel: T) -> Result<(), Failure> {
    // So that connecting takes none of the call's time.
    empty_unary(channel.clone()).await?;
    let (requests, stream) = one_by_one();
    let _ = requests.send(output_request(REQUESTS[0], &[])).await;
    let mut request = Request::new(stream);
    request.set_timeout(Duration::from_millis(1));
    let ended = match client(channel.clone()).full_duplex_call(request).await {
        Ok(response) => response.into_inner().message().await.err(),
        Err(status) => Some(status),
    };
    let code = ended.map(|status| status.code());
    expect("status", code, Some(Code::DeadlineExceeded))?;
    empty_unary(channel).await
}
