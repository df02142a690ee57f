//! What tonic and tower put around clients and servers: interceptors, layers, services of tonic's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::metadata::MetadataValue;
use tonic::service::{Routes, RoutesBuilder};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tower::ServiceBuilder;
use weir_grpc::Peer;
use weir_grpc_testing::proto::test_service_client::TestServiceClient;
use weir_grpc_testing::proto::test_service_server::TestServiceServer;
use weir_grpc_testing::proto::{Empty, SimpleRequest, SimpleResponse};
use weir_grpc_testing::{TestServer, cases};

use crate::scripted::Scripted;
use crate::support::{World, run};

/// A service that answers with its client's address, twice, and the metadata `greeting`.
fn telling() -> Scripted {
    Scripted::unary(|request| async move {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.ok_or_else(|| Status::internal("no peer"))?;
        let remote = request.remote_addr();
        let remote = remote.ok_or_else(|| Status::internal("no address"))?;
        assert!(peer.identity().peer_certificates.is_empty());
        let greeting = request.metadata().get("greeting");
        let greeting = greeting.and_then(|value| value.to_str().ok());
        Ok(SimpleResponse {
            username: format!("{} {remote}", peer.address()),
            oauth_scope: greeting.unwrap_or_default().to_owned(),
            ..SimpleResponse::default()
        })
    })
}

#[test]
fn a_handler_knows_its_client() {
    run(async {
        let world = World::new(telling());
        let response = world.client().unary_call(SimpleRequest::default()).await;
        let address = world.endpoint.local_address();
        let text = format!("{address} {address}");
        assert_eq!(response.unwrap().get_ref().username, text);
    });
}

fn greet(mut request: Request<()>) -> Result<Request<()>, Status> {
    let greeting = MetadataValue::from_static("hello");
    request.metadata_mut().insert("greeting", greeting);
    Ok(request)
}

fn demand_greeting(request: Request<()>) -> Result<Request<()>, Status> {
    match request.metadata().get("greeting") {
        Some(_) if request.extensions().get::<Peer>().is_some() => Ok(request),
        _ => Err(Status::unauthenticated("no greeting")),
    }
}

#[test]
fn interceptors_see_calls_at_both_ends() {
    run(async {
        let service = TestServiceServer::with_interceptor(telling(), demand_greeting);
        let world = World::with(Routes::new(service), |server| server);
        let refused = world.client().unary_call(SimpleRequest::default()).await;
        assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
        let mut client = TestServiceClient::with_interceptor(world.channel.clone(), greet);
        let response = client.unary_call(SimpleRequest::default()).await.unwrap();
        assert_eq!(response.get_ref().oauth_scope, "hello");
        let refusing = |_| Err(Status::aborted("never sent"));
        let mut client = TestServiceClient::with_interceptor(world.channel.clone(), refusing);
        let refused: Result<_, Status> = client.empty_call(Empty {}).await;
        assert_eq!(refused.unwrap_err().code(), Code::Aborted);
    });
}

#[test]
fn layers_go_around_a_channel() {
    run(async {
        let world = World::new(telling());
        let calls = Arc::new(AtomicUsize::new(0));
        let counting = calls.clone();
        let channel = ServiceBuilder::new()
            .concurrency_limit(2)
            .map_request(move |mut request: http::Request<_>| {
                counting.fetch_add(1, Ordering::SeqCst);
                let greeting = http::HeaderValue::from_static("layer");
                request.headers_mut().insert("greeting", greeting);
                request
            })
            .service(world.channel.clone());
        let mut client = TestServiceClient::new(channel.clone());
        let response = client.unary_call(SimpleRequest::default()).await.unwrap();
        assert_eq!(response.get_ref().oauth_scope, "layer");
        // A status keeps its code through layers.
        let mut request = Request::new(SimpleRequest::default());
        request.set_timeout(std::time::Duration::ZERO);
        let status = client.unary_call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn every_case_runs_through_layers() {
    run(async {
        let world = World::with(Routes::new(TestServer::default()), |server| server);
        let channel = ServiceBuilder::new()
            .concurrency_limit(1)
            .service(world.channel.clone());
        for case in cases::NAMES {
            cases::run(case, channel.clone()).await.unwrap();
        }
    });
}

#[test]
fn tonics_health_service_is_served() {
    run(async {
        let (reporter, health) = tonic_health::server::health_reporter();
        reporter.set_serving::<TestServiceServer<Scripted>>().await;
        let mut routes = RoutesBuilder::default();
        routes
            .add_service(health)
            .add_service(TestServiceServer::new(telling()));
        let world = World::with(routes.routes(), |server| server);
        let mut client = HealthClient::new(world.channel.clone());
        let request = HealthCheckRequest {
            service: "grpc.testing.TestService".to_owned(),
        };
        let response = client.check(request.clone()).await.unwrap();
        assert_eq!(response.get_ref().status(), ServingStatus::Serving);
        let mut watch = client.watch(request).await.unwrap().into_inner();
        let status = watch.message().await.unwrap().unwrap().status();
        assert_eq!(status, ServingStatus::Serving);
        reporter
            .set_not_serving::<TestServiceServer<Scripted>>()
            .await;
        let status = watch.message().await.unwrap().unwrap().status();
        assert_eq!(status, ServingStatus::NotServing);
    });
}

#[test]
fn tonics_reflection_service_is_served() {
    run(async {
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .unwrap();
        let world = World::with(Routes::new(reflection), |server| server);
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let requests = futures_util::stream::iter([request]);
        let mut client = ServerReflectionClient::new(world.channel.clone());
        let call = client.server_reflection_info(requests).await.unwrap();
        let response = call.into_inner().message().await.unwrap().unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = response.message_response else {
            panic!("{response:?}");
        };
        let names = list.service.into_iter().map(|service| service.name);
        assert!(
            names
                .into_iter()
                .any(|name| name == "grpc.health.v1.Health")
        );
    });
}
