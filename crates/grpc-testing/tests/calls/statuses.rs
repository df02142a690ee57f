//! Statuses: their details and metadata, and those of calls that fail on the way.

use std::error::Error as _;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::Notify;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Response, Status, Streaming};
use weir_grpc::Channel;
use weir_grpc::weir_h3;
use weir_grpc_testing::proto::test_service_client::TestServiceClient;
use weir_grpc_testing::proto::{
    Empty, SimpleRequest, SimpleResponse, StreamingOutputCallRequest, StreamingOutputCallResponse,
};
use weir_net::Executed;

use crate::scripted::Scripted;
use crate::support::{
    Handlers, World, builder, client_endpoint, identity, loopback, response, run,
};

const BINARY: &[u8] = &[0, 0xff, 0x10, b'\n'];

fn detailed() -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert_bin("reason-bin", MetadataValue::from_bytes(BINARY));
    metadata.insert("reason", MetadataValue::from_static("full"));
    let details = Bytes::from_static(BINARY);
    let message = "100 % full: voilà";
    Status::with_details_and_metadata(Code::FailedPrecondition, message, details, metadata)
}

fn expect_detailed(status: &Status) {
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.message(), "100 % full: voilà");
    assert_eq!(status.details(), BINARY);
    assert_eq!(status.metadata().get("reason").unwrap(), "full");
    let binary = status.metadata().get_bin("reason-bin").unwrap();
    assert_eq!(binary.to_bytes().unwrap(), BINARY);
}

#[test]
fn a_status_has_details_and_metadata() {
    run(async {
        let service = Scripted::unary(|_| async { Err(detailed()) })
            .and_output(|_| stream::iter([Ok(response(1)), Err(detailed())]));
        let mut client = World::new(service).client();
        let answered = client.unary_call(SimpleRequest::default()).await;
        expect_detailed(&answered.unwrap_err());
        let request = StreamingOutputCallRequest::default();
        let call = client.streaming_output_call(request).await.unwrap();
        let mut responses = call.into_inner();
        assert!(responses.message().await.unwrap().is_some());
        expect_detailed(&responses.message().await.unwrap_err());
    });
}

fn panics() -> Result<StreamingOutputCallResponse, Status> {
    panic!("this test's handler panics")
}

/// Reads a stream of responses to its end.
async fn all<T>(call: Result<Response<Streaming<T>>, Status>) -> Result<(), Status> {
    let mut responses = call?.into_inner();
    while responses.message().await?.is_some() {}
    Ok(())
}

#[test]
fn a_handler_that_panics_ends_its_call_only() {
    run(async {
        let go = Arc::new(Notify::new());
        let going = go.clone();
        let service = Scripted::unary(move |request| {
            let (go, size) = (going.clone(), request.get_ref().response_size);
            async move {
                assert!(size == 0, "this test's handler panics");
                go.notified().await;
                Ok(SimpleResponse::default())
            }
        })
        .and_output(|_| stream::iter([Ok(response(1))]).chain(stream::once(async { panics() })));
        let world = World::new(service);
        let running = tokio::spawn({
            let mut client = world.client();
            async move { client.unary_call(SimpleRequest::default()).await }
        });
        let mut client = world.client();
        let request = SimpleRequest {
            response_size: 1,
            ..SimpleRequest::default()
        };
        let status = client.unary_call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal, "{status}");
        let request = StreamingOutputCallRequest::default();
        let status = all(client.streaming_output_call(request).await).await;
        let status = status.unwrap_err();
        assert_eq!(status.code(), Code::Internal, "{status}");
        assert_eq!(world.server.stats().panicked, 2);
        go.notify_one();
        running.await.unwrap().unwrap();
        world.expect_alive().await;
    });
}

#[test]
fn a_call_that_finds_no_server_was_not_executed() {
    run(async {
        let identity = identity();
        let endpoint = client_endpoint(identity.fingerprint());
        // Nobody listens at the address of a socket that is closed.
        let socket = std::net::UdpSocket::bind(loopback()).unwrap();
        let address = socket.local_addr().unwrap();
        drop(socket);
        let channel = builder([address]).connect_timeout(weir_net::Duration::from_millis(200));
        let channel = Channel::from(channel.connect(&endpoint).unwrap());
        let mut client = TestServiceClient::new(channel);
        let status = client.empty_call(Empty {}).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        let source = status.source().unwrap();
        let error = source.downcast_ref::<weir_h3::Error>().unwrap();
        assert_eq!(error.executed(), Executed::No, "{error}");
    });
}

#[test]
fn a_status_that_is_too_large_fails_its_call_only() {
    run(async {
        let service = Scripted::unary(|_| async { Err(Status::aborted("x".repeat(100_000))) })
            .and_output(|_| {
                stream::iter([Ok(response(1)), Err(Status::aborted("x".repeat(100_000)))])
            });
        let world = World::new(service);
        world.expect_alive().await;
        let mut client = world.client();
        // The server's failure, once it knows the client's limit; the client's before that.
        let ends = [Code::Internal, Code::ResourceExhausted];
        let status = client.unary_call(SimpleRequest::default()).await;
        let status = status.unwrap_err();
        assert!(ends.contains(&status.code()), "{status}");
        let request = StreamingOutputCallRequest::default();
        let status = all(client.streaming_output_call(request).await).await;
        let status = status.unwrap_err();
        assert!(ends.contains(&status.code()), "{status}");
        world.expect_alive().await;
    });
}

#[test]
fn a_call_whose_connection_ends_may_have_been_executed() {
    run(async {
        let handlers = Handlers::default();
        let beginning = handlers.clone();
        let service = Scripted::unary(move |_| {
            let handling = beginning.begin();
            async move {
                let _handling = handling;
                std::future::pending().await
            }
        });
        let world = World::new(service);
        let mut client = world.client();
        let call = client.unary_call(SimpleRequest::default());
        let close = async {
            handlers.begun(1).await;
            world.server.endpoint().close(7, b"the server is gone");
        };
        let (answered, ()) = tokio::join!(call, close);
        let status = answered.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        let source = status.source().unwrap();
        let error = source.downcast_ref::<weir_h3::Error>().unwrap();
        assert_eq!(error.executed(), Executed::Maybe, "{error}");
    });
}
