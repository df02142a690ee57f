//! Requests and responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::{get as on_get, post};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use weir_h3::{Error, ErrorCode, Peer, ResponseDeadline};
use weir_net::Executed;

use crate::support::{World, endless, fetch, get, length, read, request, run, until};

fn router() -> Router {
    Router::new()
        .route("/hello", on_get(|| async { "hello" }))
        .route("/echo", post(|body: Bytes| async { body }))
        .route("/trailers", post(with_trailers))
        .route("/endless", on_get(|| async { endless().into_response() }))
        .route("/panic", on_get(panics))
        .route("/peer", on_get(peer))
        .route(
            "/connection",
            on_get(|| async { [("connection", "close")] }),
        )
}

async fn panics() -> String {
    panic!("this test's service panics")
}

async fn peer(request: axum::extract::Request) -> String {
    let peer = request.extensions().get::<Peer>().unwrap();
    peer.address().ip().to_string()
}

/// Sends the request's body and trailers back.
async fn with_trailers(request: axum::extract::Request) -> Response {
    let collected = request.into_body().collect().await.unwrap();
    let trailers = collected.trailers().cloned();
    let body = Full::new(collected.to_bytes());
    Response::new(Body::new(body.with_trailers(async { trailers.map(Ok) })))
}

#[test]
fn a_request_is_answered() {
    run(async {
        let world = World::new(router());
        let client = world.client().await;
        let response = client.send(get("/hello")).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(length(&response), Some(5));
        assert_eq!(read(response).await.unwrap().0, "hello");
        assert_eq!(fetch(&client, get("/peer")).await.unwrap(), "127.0.0.1");
        let response = client.send(get("/nothing")).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let head = request(Method::HEAD, "/hello", "");
        let response = client.send(head).await.unwrap();
        assert_eq!(response.headers()["content-length"], "5");
        assert_eq!(read(response).await.unwrap().0, "");
    });
}

#[test]
fn large_bodies_and_trailers_arrive() {
    run(async {
        let world = World::new(router().layer(axum::extract::DefaultBodyLimit::disable()));
        let client = world.client().await;
        let body: Bytes = (0..3_000_000u32).map(|index| index as u8).collect();
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", HeaderValue::from_static("7"));
        let with_trailers = Full::new(body.clone()).with_trailers({
            let trailers = trailers.clone();
            async { Some(Ok(trailers)) }
        });
        let request = request(Method::POST, "/trailers", "").map(|_| with_trailers);
        let (answer, received) = read(client.send(request).await.unwrap()).await.unwrap();
        assert!(answer == body);
        assert_eq!(received, Some(trailers));
    });
}

#[test]
fn many_requests_share_a_connection() {
    run(async {
        let world = World::new(router());
        let client = world.client().await;
        let mut requests = tokio::task::JoinSet::new();
        for index in 0..500u32 {
            let client = client.clone();
            requests.spawn(async move {
                let body = vec![index as u8; index as usize * 20];
                let answer = fetch(&client, request(Method::POST, "/echo", body.clone())).await;
                assert_eq!(answer.unwrap(), body);
            });
        }
        requests.join_all().await;
        assert_eq!(world.server.stats().requests, 500);
    });
}

#[test]
fn both_directions_flow_at_once() {
    run(async {
        let (seen, mut echoed) = mpsc::channel(1);
        let echo = post(move |body: Body| async move {
            let mut body = body.into_data_stream();
            let (send, receive) = mpsc::channel::<Result<Frame<Bytes>, std::io::Error>>(1);
            tokio::spawn(async move {
                while let Some(Ok(data)) = futures_util::StreamExt::next(&mut body).await {
                    seen.send(data.len()).await.unwrap();
                    if send.send(Ok(Frame::data(data))).await.is_err() {
                        break;
                    }
                }
            });
            Response::new(Body::new(StreamBody::new(stream(receive))))
        });
        let world = World::new(Router::new().route("/echo", echo));
        let client = world.client().await;
        let (send, receive) = mpsc::channel(1);
        let body = StreamBody::new(stream(receive));
        let request = request(Method::POST, "/echo", "").map(|_| body);
        send.send(Ok::<_, std::io::Error>(Frame::data(Bytes::from("one"))))
            .await
            .unwrap();
        let mut response = client.send(request).await.unwrap().into_body();
        for word in ["one", "two", "three"] {
            let frame = response.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), word);
            assert_eq!(echoed.recv().await, Some(word.len()));
            let next = match word {
                "one" => "two",
                "two" => "three",
                _ => break,
            };
            send.send(Ok(Frame::data(Bytes::from(next)))).await.unwrap();
        }
        drop(send);
        assert!(response.frame().await.is_none());
    });
}

/// The items of a channel.
fn stream<T>(receive: mpsc::Receiver<T>) -> impl futures_util::Stream<Item = T> {
    futures_util::stream::unfold(receive, |mut receive| async {
        Some((receive.recv().await?, receive))
    })
}

#[test]
fn a_response_that_is_dropped_is_given_up() {
    run(async {
        let world = World::new(router());
        let client = world.client().await;
        let mut response = client.send(get("/endless")).await.unwrap();
        assert!(response.body_mut().frame().await.unwrap().is_ok());
        drop(response);
        until(|| world.server.stats().cancelled == 1).await;
        assert_eq!(fetch(&client, get("/hello")).await.unwrap(), "hello");
    });
}

#[test]
fn a_response_that_is_not_taken_is_given_up_at_its_deadline() {
    run(async {
        let late = on_get(|| async {
            let mut response = endless().into_response();
            let deadline = Instant::now() + Duration::from_millis(50);
            response.extensions_mut().insert(ResponseDeadline(deadline));
            response
        });
        let world = World::new(router().route("/late", late));
        let client = world.client().await;
        let response = client.send(get("/late")).await.unwrap();
        until(|| world.server.stats().expired == 1).await;
        let error = response.into_body().collect().await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::REQUEST_CANCELLED), "{error}");
        assert_eq!(fetch(&client, get("/hello")).await.unwrap(), "hello");
    });
}

#[test]
fn a_request_that_is_dropped_ends_its_service() {
    run(async {
        struct Ended(Arc<AtomicBool>);
        impl Drop for Ended {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let (begun, ended) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (beginning, ending) = (begun.clone(), ended.clone());
        let waits = on_get(move || async move {
            let _ended = Ended(ending);
            beginning.notify_one();
            std::future::pending::<()>().await;
        });
        let world = World::new(Router::new().route("/", waits));
        let client = world.client().await;
        tokio::select! {
            _ = client.send(get("/")) => unreachable!(),
            () = begun.notified() => {}
        }
        until(|| ended.load(Ordering::SeqCst)).await;
        assert_eq!(world.server.stats().cancelled, 1);
    });
}

#[test]
fn a_panic_resets_its_request_only() {
    run(async {
        let world = World::new(router());
        let client = world.client().await;
        let error = client.send(get("/panic")).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR), "{error}");
        assert_eq!(world.server.stats().panicked, 1);
        assert_eq!(fetch(&client, get("/hello")).await.unwrap(), "hello");
    });
}

#[test]
fn a_header_that_is_too_large_is_refused() {
    run(async {
        let world = World::new(router());
        let client = world.client().await;
        assert_eq!(fetch(&client, get("/hello")).await.unwrap(), "hello");
        let mut large = get("/hello");
        let value = HeaderValue::from_str(&"x".repeat(70_000)).unwrap();
        large.headers_mut().insert("large", value);
        // The server refuses it, until the client has read the server's settings.
        let error = loop {
            match client.send(large.clone()).await {
                Ok(response) => {
                    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                    assert_eq!(response.status(), status);
                }
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::RequestHeader { limit: 65_536, .. }));
        assert_eq!(error.executed(), Executed::No);
        assert_eq!(fetch(&client, get("/hello")).await.unwrap(), "hello");
    });
}

#[test]
fn the_length_has_to_be_right() {
    run(async {
        let world = World::new(router());
        let client = world.client().await;
        let mut wrong = request(Method::POST, "/echo", "hello");
        wrong
            .headers_mut()
            .insert("content-length", HeaderValue::from_static("7"));
        let response = client.send(wrong).await;
        match response {
            Ok(response) => assert_eq!(response.status(), StatusCode::BAD_REQUEST),
            Err(error) => assert_eq!(error.code(), Some(ErrorCode::MESSAGE_ERROR), "{error}"),
        }
    });
}

#[test]
fn fields_of_a_connection_are_not_sent() {
    run(async {
        let world = World::new(router());
        let client = world.client().await;
        let mut request = get("/connection");
        request
            .headers_mut()
            .insert("connection", HeaderValue::from_static("keep-alive"));
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(!response.headers().contains_key("connection"));
    });
}
