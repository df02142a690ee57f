//! The paths that all servers have, by axum: the table in `peers/README.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use weir_h3::Server;

/// The most bytes of one response.
const LARGEST_BODY: usize = 1 << 30;
/// The time between GOAWAY and the response.
const PAUSE: Duration = Duration::from_millis(200);
/// How long running requests may go on after GOAWAY.
const GRACE: Duration = Duration::from_secs(10);
/// What `/bytes` repeats has this many different bytes.
pub(crate) const PERIOD: usize = 251;
/// The most bytes of one DATA frame.
const PIECE: usize = PERIOD * 256;

type Never = std::convert::Infallible;

/// Returns byte after byte of what `/bytes` responds.
pub(crate) fn pattern() -> impl Iterator<Item = u8> {
    (0..PERIOD).map(|index| index as u8).cycle()
}

pub(crate) fn router(server: Server) -> Router {
    Router::new()
        .route("/bytes/{count}", get(bytes))
        .route("/echo", post(echo))
        .route("/headers", get(headers))
        .route("/trailers", get(trailers))
        .route("/slow", get(slow))
        .route("/goaway", get(move || go_away(server)))
}

async fn bytes(Path(count): Path<usize>) -> Result<Response, StatusCode> {
    if count > LARGEST_BODY {
        return Err(StatusCode::BAD_REQUEST);
    }
    let piece: Bytes = pattern().take(PIECE).collect();
    let pieces = stream::unfold(count, move |left| {
        let length = left.min(PIECE);
        let data = piece.slice(..length);
        async move { (length > 0).then(|| (Ok::<_, Never>(Frame::data(data)), left - length)) }
    });
    let mut response = Response::new(Body::new(StreamBody::new(pieces)));
    let length = HeaderValue::from(count);
    response.headers_mut().insert(CONTENT_LENGTH, length);
    Ok(response)
}

/// Sends the data back as they come.
async fn echo(request: Request) -> Response {
    let body = request.into_body();
    let data = stream::unfold(body, |mut body| async {
        loop {
            match body.frame().await? {
                Ok(frame) if frame.is_trailers() => {}
                frame => return Some((frame, body)),
            }
        }
    });
    Response::new(Body::new(StreamBody::new(data)))
}

async fn headers(headers: HeaderMap) -> Response {
    let values: BTreeMap<_, Vec<_>> = headers
        .keys()
        .map(|name| {
            let values = headers.get_all(name).iter();
            let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
            (name.as_str(), values.collect())
        })
        .collect();
    let body = serde_json::to_vec(&values).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

async fn trailers() -> Response {
    let mut trailers = HeaderMap::new();
    let value = HeaderValue::from_static("after the body");
    trailers.insert("x-trailer", value);
    let frames = [Frame::data(Bytes::from("body")), Frame::trailers(trailers)];
    let frames = stream::iter(frames.map(Ok::<_, Never>));
    Response::new(Body::new(StreamBody::new(frames)))
}

/// Begins a response, and never ends it.
async fn slow() -> Response {
    let frames = stream::unfold(true, |is_first| async move {
        if !is_first {
            std::future::pending::<()>().await;
        }
        let begin = Frame::data(Bytes::from("begin"));
        Some((Ok::<_, Never>(begin), false))
    });
    Response::new(Body::new(StreamBody::new(frames)))
}

/// The server announces its end while it answers this request.
async fn go_away(server: Server) -> &'static str {
    tokio::spawn(async move { server.shutdown(GRACE).await });
    tokio::time::sleep(PAUSE).await;
    "end"
}
