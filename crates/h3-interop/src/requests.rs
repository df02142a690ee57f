//! The cases of a client from our side: what our client asks of foreign servers.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::mpsc;
use tokio::time::sleep;
use weir_h3::{BoxError, Channel, Client, IncomingBody};
use weir_net::{Endpoint, Executed};

use crate::SERVER_NAME;
use crate::paths::pattern;
use crate::program::Failed;

/// What sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequesterKind {
    /// One connection.
    Client,
    /// A channel.
    Channel,
}

/// A client of a foreign server.
#[derive(Clone)]
pub enum Requester {
    /// One connection.
    Client(Client),
    /// A channel.
    Channel(Channel),
}

type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

impl RequesterKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Client, Self::Channel];
}

impl fmt::Display for RequesterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Channel => "channel",
        })
    }
}

impl Requester {
    /// Connects to a server.
    ///
    /// # Errors
    /// [`Failed`] where it does not answer.
    pub async fn connect(
        kind: RequesterKind,
        endpoint: &Endpoint,
        to: SocketAddr,
    ) -> Result<Self, Failed> {
        match kind {
            RequesterKind::Client => {
                let connecting = endpoint.connect(to, SERVER_NAME).map_err(Failed::new)?;
                let connection = connecting.await.map_err(Failed::new)?;
                let client = Client::new(connection).await.map_err(Failed::new)?;
                Ok(Self::Client(client))
            }
            RequesterKind::Channel => {
                let channel = Channel::to_addresses([to])
                    .server_name(SERVER_NAME)
                    .connect(endpoint)
                    .map_err(Failed::new)?;
                Ok(Self::Channel(channel))
            }
        }
    }

    async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<IncomingBody>, weir_h3::Error> {
        match self {
            Self::Client(client) => client.send(request).await,
            Self::Channel(channel) => channel.send(request).await,
        }
    }

    async fn get(&self, path: &str) -> Result<Answer, Failed> {
        let response = self.send(request(Method::GET, path, "")).await;
        Answer::of(response.map_err(Failed::new)?).await
    }

    async fn check_bytes(&self, count: usize) -> Result<(), Failed> {
        let answer = self.get(&format!("/bytes/{count}")).await?;
        let is_right = answer.body.iter().copied().eq(pattern().take(count));
        check(is_right && answer.status == StatusCode::OK, &answer)
    }
}

/// A whole response.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

impl Answer {
    async fn of(response: Response<IncomingBody>) -> Result<Self, Failed> {
        let status = response.status();
        let collected = response.into_body().collect().await.map_err(Failed::new)?;
        Ok(Self {
            status,
            trailers: collected.trailers().cloned(),
            body: collected.to_bytes(),
        })
    }
}

fn request(method: Method, path: &str, body: impl Into<Bytes>) -> Request<RequestBody> {
    let body = Full::new(body.into()).map_err(|never| match never {});
    with_body(method, path, body.boxed_unsync())
}

fn with_body(method: Method, path: &str, body: RequestBody) -> Request<RequestBody> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    let uri = format!("https://{SERVER_NAME}{path}").parse();
    *request.uri_mut() = uri.unwrap_or_default();
    request
}

fn check(is_right: bool, found: &impl fmt::Debug) -> Result<(), Failed> {
    if is_right {
        return Ok(());
    }
    let mut text = format!("{found:?}");
    text.truncate(1000);
    Err(Failed(format!("not as expected: {text}")))
}

/// Runs a case by the name that the programs' clients give it.
///
/// # Errors
/// [`Failed`] with what went wrong, or where there is no such case.
pub async fn run_case(requester: &Requester, case: &str) -> Result<(), Failed> {
    match case {
        "http_get" => get(requester).await,
        "http_post" => post(requester).await,
        "http_several" => several(requester).await,
        "http_headers" => headers(requester).await,
        "http_trailers" => trailers(requester).await,
        "http_not_found" => not_found(requester).await,
        "http_cancel" => cancel(requester).await,
        "http_goaway" => go_away(requester).await,
        _ => Err(Failed(format!("our client has no case {case}"))),
    }
}

async fn get(requester: &Requester) -> Result<(), Failed> {
    for count in [0, 1, 1000, 1_000_000] {
        requester.check_bytes(count).await?;
    }
    Ok(())
}

async fn post(requester: &Requester) -> Result<(), Failed> {
    let body: Bytes = pattern().take(1_000_000).collect();
    let request = request(Method::POST, "/echo", body.clone());
    let response = requester.send(request).await.map_err(Failed::new)?;
    let answer = Answer::of(response).await?;
    check(answer.body == body, &answer)
}

async fn several(requester: &Requester) -> Result<(), Failed> {
    let requests = (0..50).map(|number| requester.check_bytes(1000 * number + 1));
    join_all(requests).await.into_iter().collect()
}

async fn headers(requester: &Requester) -> Result<(), Failed> {
    let long = "long".repeat(1000);
    let fields = [
        ("x-test", "value"),
        ("x-long", &long),
        ("x-empty", ""),
        ("x-twice", "one"),
        ("x-twice", "two"),
    ];
    let mut request = request(Method::GET, "/headers", "");
    for (name, value) in fields {
        let name: http::HeaderName = name.parse().map_err(Failed::new)?;
        let value = value.parse().map_err(Failed::new)?;
        request.headers_mut().append(name, value);
    }
    let response = requester.send(request).await.map_err(Failed::new)?;
    let answer = Answer::of(response).await?;
    let echo: serde_json::Value = serde_json::from_slice(&answer.body).map_err(Failed::new)?;
    let value = |name: &str| {
        let values = echo[name].as_array()?.iter().map(|value| value.as_str());
        Some(values.collect::<Option<Vec<_>>>()?.join(", "))
    };
    check(value("x-test").as_deref() == Some("value"), &answer)?;
    check(value("x-long") == Some(long.clone()), &answer)?;
    check(value("x-empty").as_deref() == Some(""), &answer)?;
    check(value("x-twice").as_deref() == Some("one, two"), &answer)
}

async fn trailers(requester: &Requester) -> Result<(), Failed> {
    let answer = requester.get("/trailers").await?;
    let trailer = answer.trailers.as_ref().and_then(|it| it.get("x-trailer"));
    let is_right = trailer.is_some_and(|value| value == "after the body");
    check(is_right && answer.body == "body", &answer)
}

async fn not_found(requester: &Requester) -> Result<(), Failed> {
    let answer = requester.get("/absent").await?;
    check(answer.status == StatusCode::NOT_FOUND, &answer)
}

/// Gives up a response, and a request whose body is not complete.
async fn cancel(requester: &Requester) -> Result<(), Failed> {
    let slow = request(Method::GET, "/slow", "");
    let response = requester.send(slow).await.map_err(Failed::new)?;
    begins(response).await?;
    let (send, mut receive) = mpsc::channel::<Result<Frame<Bytes>, BoxError>>(1);
    let begin = Frame::data(Bytes::from("begin"));
    send.send(Ok(begin)).await.map_err(Failed::new)?;
    let body = futures_util::stream::poll_fn(move |cx| receive.poll_recv(cx));
    let echo = with_body(Method::POST, "/echo", StreamBody::new(body).boxed_unsync());
    let response = requester.send(echo).await.map_err(Failed::new)?;
    begins(response).await?;
    // The client drops the body of a request that it gives up.
    send.closed().await;
    requester.check_bytes(1000).await
}

/// Reads how a response begins, and drops it.
async fn begins(response: Response<IncomingBody>) -> Result<(), Failed> {
    let frame = response.into_body().frame().await;
    let frame = frame.ok_or_else(|| Failed::new("an end"))?;
    let data = frame.map_err(Failed::new)?.into_data();
    check(data.as_ref().is_ok_and(|data| data == "begin"), &data.ok())
}

/// The request during which the server says GOAWAY is answered. A connection then takes no further
/// ones; a channel finds another one, or says that there is no server.
async fn go_away(requester: &Requester) -> Result<(), Failed> {
    let answer = requester.get("/goaway").await?;
    check(answer.body == "end", &answer)?;
    if let Requester::Client(client) = requester {
        client.draining().await;
    }
    let error = loop {
        match requester.send(request(Method::GET, "/bytes/1", "")).await {
            // aioquic's server goes on with new connections.
            Ok(response) if matches!(requester, Requester::Channel(_)) => {
                let answer = Answer::of(response).await?;
                return check(answer.status == StatusCode::OK, &answer);
            }
            Ok(response) => return check(false, &response.status()),
            // The server's process may end between the request and its refusal.
            Err(error) if error.executed() == Executed::Maybe => {
                sleep(Duration::from_millis(10)).await;
            }
            Err(error) => break error,
        }
    };
    check(error.executed() == Executed::No, &error)
}
