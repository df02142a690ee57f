//! Deadlines: of a call, of a channel, and of a server.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::Body as _;
use tokio::sync::mpsc;
use tonic::codegen::http::Response;
use tonic::service::Routes;
use tonic::{Code, Request};
use tower_service::Service;
use weir_grpc::APPLICATION_PROTOCOL;
use weir_grpc::weir_h3::{self, ErrorCode, IncomingBody};
use weir_grpc_testing::proto::test_service_client::TestServiceClient;
use weir_grpc_testing::proto::test_service_server::TestServiceServer;
use weir_grpc_testing::proto::{
    SimpleRequest, StreamingOutputCallRequest, StreamingOutputCallResponse,
};
use weir_net::Endpoint;
use weir_net::tls::ServerTls;

use crate::scripted::Scripted;
use crate::support::{
    Handlers, LONG, SHORT, World, builder, client_endpoint, identity, loopback, response, run,
    until,
};

fn with_timeout<T>(message: T, timeout: std::time::Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

/// A service that answers one message, and then waits; a single response never comes.
fn slow(handlers: &Handlers) -> Scripted {
    let (unary, output, duplex) = (handlers.clone(), handlers.clone(), handlers.clone());
    Scripted::unary(move |_| {
        let handling = unary.begin();
        async move {
            let _handling = handling;
            pending().await
        }
    })
    .and_output(move |_| {
        let handling = output.begin();
        stream::iter([Ok(response(1))])
            .chain(stream::pending())
            .inspect(move |_| _ = &handling)
    })
    .and_duplex(move |requests| {
        let handling = duplex.begin();
        stream::iter([Ok(response(1))])
            .chain(requests.map(|_| Ok(response(1))))
            .inspect(move |_| _ = &handling)
    })
}

#[test]
fn a_deadline_passes_while_the_response_streams() {
    run(async {
        let handlers = Handlers::default();
        let world = World::new(slow(&handlers));
        let request = with_timeout(StreamingOutputCallRequest::default(), SHORT);
        let call = world.client().streaming_output_call(request).await;
        let mut responses = call.unwrap().into_inner();
        assert!(responses.message().await.unwrap().is_some());
        let status = responses.message().await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        // Although the client keeps the stream of responses.
        handlers.ended(1).await;
        drop(responses);
        world.expect_alive().await;
    });
}

/// A server that knows no deadlines: what a call's stream said in the end.
#[derive(Clone)]
struct Deaf {
    ends: mpsc::UnboundedSender<Option<ErrorCode>>,
    dropped: Arc<AtomicBool>,
}

/// A body that never ends, with a message at every poll or without any.
struct Endless {
    message: Option<Bytes>,
    dropped: Arc<AtomicBool>,
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::SeqCst);
    }
}

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        match &self.message {
            Some(message) => Poll::Ready(Some(Ok(http_body::Frame::data(message.clone())))),
            None => Poll::Pending,
        }
    }
}

impl Service<http::Request<IncomingBody>> for Deaf {
    type Response = Response<Endless>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<IncomingBody>) -> Self::Future {
        let is_talkative = request.uri().path().ends_with("StreamingOutputCall");
        let ends = self.ends.clone();
        let mut body = request.into_body();
        tokio::spawn(async move {
            let end = loop {
                match std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break error.code(),
                    None => break None,
                }
            };
            let _ = ends.send(end);
        });
        let body = Endless {
            // An empty message.
            message: is_talkative.then(|| Bytes::from_static(&[0; 5])),
            dropped: self.dropped.clone(),
        };
        let response = Response::builder().header("content-type", "application/grpc");
        ready(Ok(response.body(body).unwrap()))
    }
}

/// A server without deadlines, and a client with them.
struct DeafWorld {
    server: weir_h3::Server,
    client: TestServiceClient<weir_grpc::Channel>,
    ends: mpsc::UnboundedReceiver<Option<ErrorCode>>,
    dropped: Arc<AtomicBool>,
}

impl DeafWorld {
    fn new() -> Self {
        let identity = identity();
        let endpoint = client_endpoint(identity.fingerprint());
        let tls = ServerTls::new(identity).application_protocols([APPLICATION_PROTOCOL]);
        let server_endpoint = Endpoint::builder()
            .server(tls.build().unwrap())
            .bind(loopback())
            .unwrap();
        let channel = builder([server_endpoint.local_address()]).connect(&endpoint);
        let channel = weir_grpc::Channel::from(channel.unwrap());
        let (send, ends) = mpsc::unbounded_channel();
        let dropped = Arc::new(AtomicBool::new(false));
        let service = Deaf {
            ends: send,
            dropped: dropped.clone(),
        };
        let server = weir_h3::Server::default();
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(&server_endpoint, service).await });
        Self {
            server,
            client: TestServiceClient::new(channel),
            ends,
            dropped,
        }
    }
}

#[test]
fn the_server_learns_that_a_deadline_has_passed() {
    run(async {
        let mut world = DeafWorld::new();
        let requests = stream::pending::<StreamingOutputCallRequest>();
        let call = world
            .client
            .full_duplex_call(with_timeout(requests, SHORT))
            .await;
        let mut responses = call.unwrap().into_inner();
        let status = responses.message().await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        // RESET_STREAM for the requests, and STOP_SENDING for the responses.
        let end = world.ends.recv().await.unwrap();
        assert_eq!(end, Some(ErrorCode::REQUEST_CANCELLED));
        until(|| world.dropped.load(Ordering::SeqCst)).await;
        assert_eq!(world.server.stats().cancelled, 1);
    });
}

#[test]
fn a_server_that_is_never_silent_has_no_more_time() {
    run(async {
        let mut world = DeafWorld::new();
        let request = with_timeout(StreamingOutputCallRequest::default(), SHORT);
        let call = world.client.streaming_output_call(request).await;
        let mut responses = call.unwrap().into_inner();
        let status = loop {
            match responses.message().await {
                Ok(response) => assert!(response.is_some()),
                Err(status) => break status,
            }
        };
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        until(|| world.dropped.load(Ordering::SeqCst)).await;
    });
}

#[test]
fn the_server_keeps_the_deadline_that_its_client_does_not() {
    run(async {
        let handlers = Handlers::default();
        let world = World::new(slow(&handlers));
        let mut client = world.client_without_deadlines();
        let request = with_timeout(SimpleRequest::default(), SHORT);
        let status = client.unary_call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        handlers.ended(1).await;
        let request = with_timeout(StreamingOutputCallRequest::default(), SHORT);
        let call = client.streaming_output_call(request).await;
        let mut responses = call.unwrap().into_inner();
        assert!(responses.message().await.unwrap().is_some());
        let status = responses.message().await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        handlers.ended(2).await;
        world.expect_alive().await;
    });
}

/// A service whose responses never end.
fn endless(handlers: &Handlers, size: usize) -> Scripted {
    let handlers = handlers.clone();
    Scripted::default().and_output(move |_| {
        let handling = handlers.begin();
        stream::repeat_with(move || Ok::<StreamingOutputCallResponse, _>(response(size)))
            .inspect(move |_| _ = &handling)
    })
}

#[test]
fn a_handler_that_is_never_silent_has_no_more_time() {
    run(async {
        let handlers = Handlers::default();
        let world = World::new(endless(&handlers, 1));
        let mut client = world.client_without_deadlines();
        let request = with_timeout(StreamingOutputCallRequest::default(), SHORT);
        let call = client.streaming_output_call(request).await;
        let mut responses = call.unwrap().into_inner();
        let status = loop {
            match responses.message().await {
                Ok(response) => assert!(response.is_some()),
                Err(status) => break status,
            }
        };
        // By its trailers; or by a reset, where the client was slower than the handler. This client does
        // not know the codes of resets.
        let ends = [Code::DeadlineExceeded, Code::Unknown];
        assert!(ends.contains(&status.code()), "{status}");
        handlers.ended(1).await;
    });
}

#[test]
fn a_client_that_takes_nothing_keeps_no_handler() {
    run(async {
        let handlers = Handlers::default();
        let world = World::new(endless(&handlers, 100_000));
        let mut client = world.client_without_deadlines();
        let request = with_timeout(StreamingOutputCallRequest::default(), SHORT);
        let call = client.streaming_output_call(request).await;
        let responses = call.unwrap().into_inner();
        handlers.ended(1).await;
        assert_eq!(world.server.stats().expired, 1);
        drop(responses);
        world.expect_alive().await;
    });
}

#[test]
fn a_server_limits_the_time_of_calls() {
    run(async {
        let handlers = Handlers::default();
        let routes = Routes::new(TestServiceServer::new(slow(&handlers)));
        let world = World::with(routes, |server| server.timeout(SHORT));
        for request in [
            Request::new(SimpleRequest::default()),
            with_timeout(SimpleRequest::default(), LONG),
        ] {
            let status = world.client().unary_call(request).await.unwrap_err();
            assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        }
        handlers.ended(2).await;
        world.expect_alive().await;
    });
}

#[test]
fn a_channel_limits_the_time_of_calls() {
    run(async {
        let handlers = Handlers::default();
        let world = World::new(slow(&handlers));
        // Calls without a time of their own, and with a longer and a shorter one.
        for (channel, call) in [(SHORT, None), (SHORT, Some(LONG)), (LONG, Some(SHORT))] {
            let mut client = TestServiceClient::new(world.channel.clone().timeout(channel));
            let mut request = Request::new(SimpleRequest::default());
            if let Some(timeout) = call {
                request.set_timeout(timeout);
            }
            let status = client.unary_call(request).await.unwrap_err();
            assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        }
        handlers.ended(3).await;
        world.expect_alive().await;
    });
}
