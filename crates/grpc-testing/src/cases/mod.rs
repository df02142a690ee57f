//! The cases of the client, by the names of gRPC's description of its interoperability tests
//! (<https://github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md>). Those that need
//! credentials of a cloud are missing, and those that compress single messages of a stream, which tonic
//! cannot.

mod endings;
mod requests;
mod streaming;
mod unary;

pub use endings::{
    cancel_after_begin, cancel_after_first_response, special_status_message,
    status_code_and_message, timeout_on_sleeping_server, unimplemented_method,
    unimplemented_service,
};
pub use streaming::{client_streaming, empty_stream, half_duplex, ping_pong, server_streaming};
pub use unary::{
    client_compressed_unary, custom_metadata, empty_unary, large_unary, server_compressed_unary,
};

use crate::channel::TestChannel;
use crate::failure::Failure;
use crate::proto::test_service_client::TestServiceClient;

/// The names of all cases.
pub const NAMES: [&str; 17] = [
    "empty_unary",
    "large_unary",
    "client_compressed_unary",
    "server_compressed_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "half_duplex",
    "empty_stream",
    "custom_metadata",
    "status_code_and_message",
    "special_status_message",
    "unimplemented_method",
    "unimplemented_service",
    "cancel_after_begin",
    "cancel_after_first_response",
    "timeout_on_sleeping_server",
];

/// The sizes in bytes of a large request and its response.
const LARGE_REQUEST: usize = 271_828;
const LARGE_RESPONSE: i32 = 314_159;
/// The sizes in bytes of a stream's requests and responses.
const REQUESTS: [usize; 4] = [27_182, 8, 1_828, 45_904];
const RESPONSES: [i32; 4] = [31_415, 9, 2_653, 58_979];

/// Runs a case by its name.
///
/// # Errors
/// [`Failure`] where the server does not answer as it should, or there is no such case.
pub async fn run<T: TestChannel>(name: &str, channel: T) -> Result<(), Failure> {
    match name {
        "empty_unary" => empty_unary(channel).await,
        "large_unary" => large_unary(channel).await,
        "client_compressed_unary" => client_compressed_unary(channel).await,
        "server_compressed_unary" => server_compressed_unary(channel).await,
        "client_streaming" => client_streaming(channel).await,
        "server_streaming" => server_streaming(channel).await,
        "ping_pong" => ping_pong(channel).await,
        "half_duplex" => half_duplex(channel).await,
        "empty_stream" => empty_stream(channel).await,
        "custom_metadata" => custom_metadata(channel).await,
        "status_code_and_message" => status_code_and_message(channel).await,
        "special_status_message" => special_status_message(channel).await,
        "unimplemented_method" => unimplemented_method(channel).await,
        "unimplemented_service" => unimplemented_service(channel).await,
        "cancel_after_begin" => cancel_after_begin(channel).await,
        "cancel_after_first_response" => cancel_after_first_response(channel).await,
        "timeout_on_sleeping_server" => timeout_on_sleeping_server(channel).await,
        other => Err(Failure::NoSuchCase(other.to_owned())),
    }
}

fn client<T: TestChannel>(channel: T) -> TestServiceClient<T> {
    TestServiceClient::new(channel)
}
