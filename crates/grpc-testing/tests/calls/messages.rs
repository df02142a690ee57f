//! Large messages, and the limits of their sizes.

use tonic::Code;
use tonic::service::Routes;
use weir_grpc_testing::TestServer;
use weir_grpc_testing::proto::{SimpleRequest, SimpleResponse};

use crate::scripted::Scripted;
use crate::support::{World, payload, run};

const LARGE: usize = 20_000_000;
/// Above tonic's default limit of 4 MiB.
const TOO_LARGE: usize = 5_000_000;

#[test]
fn large_messages_arrive_in_both_directions() {
    run(async {
        let world = World::with(Routes::new(TestServer::default()), |server| server);
        let mut client = world.client().max_decoding_message_size(2 * LARGE);
        let request = SimpleRequest {
            payload: payload(LARGE),
            response_size: LARGE as i32,
            ..SimpleRequest::default()
        };
        let response = client.unary_call(request).await.unwrap();
        let payload = response.into_inner().payload.unwrap();
        assert_eq!(payload.body.len(), LARGE);
        world.expect_alive().await;
    });
}

#[test]
fn messages_above_the_limits_are_refused() {
    run(async {
        let service = Scripted::unary(|request| {
            let size = request.into_inner().response_size;
            async move {
                Ok(SimpleResponse {
                    payload: payload(size as usize),
                    ..SimpleResponse::default()
                })
            }
        });
        let world = World::new(service);
        let mut client = world.client();
        let request = SimpleRequest {
            payload: payload(TOO_LARGE),
            ..SimpleRequest::default()
        };
        let status = client.unary_call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
        let request = SimpleRequest {
            response_size: TOO_LARGE as i32,
            ..SimpleRequest::default()
        };
        let status = client.unary_call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
        // The client's own limit.
        let mut client = world.client().max_encoding_message_size(1000);
        let request = SimpleRequest {
            payload: payload(2000),
            ..SimpleRequest::default()
        };
        let status = client.unary_call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
        world.expect_alive().await;
    });
}
