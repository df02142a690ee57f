//! Requests and responses of each version.

use axum::Router;
use axum::body::Body;
use axum::routing::get as on_get;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use weir_h3::ErrorCode;

use crate::support::{World, for_http1, get, mirror, read, run};

const VERSIONS: [Version; 3] = [Version::HTTP_3, Version::HTTP_2, Version::HTTP_11];

#[test]
fn a_service_sees_the_same_request_either_way() {
    run(async {
        let world = World::new(mirror());
        for version in VERSIONS {
            let mut request = get("/a?b=c").map(|_| Body::from("hello"));
            *request.method_mut() = Method::POST;
            let response = world.fetch(version, request).await;
            assert_eq!(response.status(), StatusCode::OK);
            let expected = "POST https://localhost/a?b=c from 127.0.0.1 to localhost: hello";
            assert_eq!(response.body(), expected);
        }
        assert_eq!(world.server.stats().requests, 3);
        assert_eq!(world.server.tcp_stats().accepted, 2);
    });
}

#[test]
fn responses_over_tcp_tell_of_http3() {
    run(async {
        let router = mirror().route("/own", on_get(|| async { [("alt-svc", "clear")] }));
        let world = World::new(router);
        let own = format!("h3=\":{}\"; ma=86400", world.address().port());
        for (version, expected) in [
            (Version::HTTP_3, None),
            (Version::HTTP_2, Some(own.as_str())),
            (Version::HTTP_11, Some(own.as_str())),
        ] {
            let response = world.fetch(version, get("/a")).await;
            assert_eq!(response.version() == Version::HTTP_3, expected.is_none());
            let value = response.headers().get("alt-svc");
            assert_eq!(value.map(|value| value.to_str().unwrap()), expected);
            let response = world.fetch(version, get("/own")).await;
            assert_eq!(response.headers()["alt-svc"], "clear");
        }
        let other = HeaderValue::from_static("h3=\":443\"");
        let world = World::with(mirror(), |builder| builder.alt_svc(other));
        let response = world.fetch(Version::HTTP_2, get("/a")).await;
        assert_eq!(response.headers()["alt-svc"], "h3=\":443\"");
    });
}

/// Sends the request's body and trailers back.
async fn echo(request: axum::extract::Request) -> axum::response::Response {
    let collected = request.into_body().collect().await.unwrap();
    let trailers = collected.trailers().cloned();
    let body = Full::new(collected.to_bytes());
    axum::response::Response::new(Body::new(body.with_trailers(async { trailers.map(Ok) })))
}

#[test]
fn large_bodies_and_trailers_arrive_by_http2() {
    run(async {
        let router = Router::new().route("/echo", axum::routing::post(echo));
        let world = World::new(router);
        let body: Bytes = (0..3_000_000u32).map(|index| index as u8).collect();
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", HeaderValue::from_static("7"));
        let sent = Full::new(body.clone()).with_trailers({
            let trailers = trailers.clone();
            async { Some(Ok(trailers)) }
        });
        let request = Request::post("https://localhost/echo")
            .body(Body::new(sent))
            .unwrap();
        let mut client = world.http2().await;
        let response = client.send_request(request).await.unwrap();
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers));
        assert!(collected.to_bytes() == body);
    });
}

#[test]
fn requests_of_one_connection_run_beside_each_other() {
    run(async {
        let world = World::new(mirror());
        let client = world.http2().await;
        let mut requests = tokio::task::JoinSet::new();
        for index in 0..200 {
            let mut client = client.clone();
            requests.spawn(async move {
                let response = client
                    .send_request(get(&format!("/{index}")))
                    .await
                    .unwrap();
                let body = read(response).await.into_body();
                let start = format!("GET https://localhost/{index} ");
                assert!(body.starts_with(start.as_bytes()), "{body:?}");
            });
        }
        requests.join_all().await;
        assert_eq!(world.server.stats().requests, 200);
        assert_eq!(world.server.tcp_stats().accepted, 1);
    });
}

async fn panics() -> String {
    panic!("this test's service panics")
}

#[test]
fn a_panic_ends_its_request_only() {
    run(async {
        let router = mirror().route("/panic", on_get(panics));
        let world = World::new(router);
        let client = world.http3().await;
        let error = client.send(get("/panic")).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR));
        let mut client = world.http2().await;
        assert!(client.send_request(get("/panic")).await.is_err());
        assert!(client.send_request(get("/a")).await.is_ok());
        let mut client = world.http1().await;
        assert!(client.send_request(for_http1(get("/panic"))).await.is_err());
        assert_eq!(world.server.stats().panicked, 3);
    });
}

#[test]
fn a_request_without_a_host_is_refused() {
    run(async {
        let world = World::new(mirror());
        let mut client = world.http1().await;
        let mut request = for_http1(get("/a"));
        request.headers_mut().remove("host");
        let response = client.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(world.server.stats().malformed, 1);
    });
}

#[test]
fn a_header_that_is_too_large_is_refused() {
    run(async {
        let world = World::new(mirror());
        let mut request = get("/a");
        let value = HeaderValue::from_str(&"x".repeat(70_000)).unwrap();
        request.headers_mut().insert("large", value);
        let request = for_http1(request);
        let response = world.http1().await.send_request(request).await.unwrap();
        assert_eq!(
            response.status(),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        );
    });
}
