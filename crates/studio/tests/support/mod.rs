//! A studio, and a plain HTTP client for it.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use weir_studio::{Address, Script, StudioError};

pub(crate) const TEXT: &str = include_str!("../two-flows.toml");

/// Is told where the page is.
pub(crate) type Tell = Box<dyn FnOnce(&Address) + Send>;

/// A running studio. It ends with the test's runtime.
pub(crate) struct Studio {
    pub(crate) socket: SocketAddr,
    pub(crate) token: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Studio {
    /// A studio that plays the tests' scenario.
    pub(crate) async fn start() -> Self {
        let script = Script::of_file("test.toml", TEXT);
        let serve = |any, tell| weir_studio::serve(script, any, tell, std::future::pending());
        Self::serving(serve).await
    }

    /// What `serve` serves at any port, and tells about.
    pub(crate) async fn serving<S, F>(serve: S) -> Self
    where
        S: FnOnce(SocketAddr, Tell) -> F + Send + 'static,
        F: Future<Output = Result<(), StudioError>> + Send + 'static,
    {
        let (ready, told) = oneshot::channel();
        tokio::spawn(async move {
            let tell: Tell = Box::new(move |address| drop(ready.send(address.clone())));
            serve(SocketAddr::from(([127, 0, 0, 1], 0)), tell).await
        });
        let Address { url, socket } = told.await.unwrap();
        let (_, token) = url.split_once("?token=").unwrap();
        Self {
            socket,
            token: token.to_owned(),
        }
    }

    /// Sends these lines, and returns the connection.
    pub(crate) async fn send(&self, lines: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.socket).await.unwrap();
        let request = format!("{}\r\n\r\n{body}", lines.join("\r\n"));
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, lines: &[&str], body: &str) -> Answer {
        let mut stream = self.send(lines, body).await;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn host(&self) -> String {
        format!("Host: {}", self.socket)
    }

    pub(crate) fn cookie(&self) -> String {
        format!("Cookie: weir-studio-{}={}", self.socket.port(), self.token)
    }

    /// Asks as a browser that has the token, unless `more` says otherwise.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let (host, cookie) = (self.host(), self.cookie());
        self.get_as(path, &[&host, &cookie]).await
    }

    pub(crate) async fn get_as(&self, path: &str, headers: &[&str]) -> Answer {
        let first = format!("GET {path} HTTP/1.1");
        let lines = [&[&first[..], "Connection: close"], headers].concat();
        self.ask(&lines, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        let (host, cookie, body) = (self.host(), self.cookie(), body.to_string());
        let first = format!("POST {path} HTTP/1.1");
        let length = format!("Content-Length: {}", body.len());
        let kind = "Content-Type: application/json";
        let lines = [
            &first[..],
            "Connection: close",
            &host,
            &cookie,
            kind,
            &length,
        ];
        self.ask(&lines, &body).await
    }

    /// Opens the stream of events.
    pub(crate) async fn events(&self) -> Events {
        let (host, cookie) = (self.host(), self.cookie());
        let lines = ["GET /api/events HTTP/1.1", &host, &cookie];
        Events {
            stream: self.send(&lines, "").await,
            text: String::new(),
        }
    }
}

/// A stream of events.
pub(crate) struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    /// Returns the data of the next event of a kind for which `is_wanted` holds.
    pub(crate) async fn next(&mut self, kind: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let limit = Duration::from_secs(60);
        let found = tokio::time::timeout(limit, self.find(kind, is_wanted)).await;
        found.unwrap_or_else(|_| panic!("no event {kind} comes"))
    }

    async fn find(&mut self, kind: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let name = format!("event: {kind}\n");
                let data = event
                    .split_once(&name)
                    .and_then(|(_, event)| event.strip_prefix("data: "));
                // A chunk of HTTP may end within an event: its length is on a line of its own.
                if let Some(value) = data.and_then(|data| serde_json::from_str(data).ok())
                    && is_wanted(&value)
                {
                    return value;
                }
            }
            let mut buffer = [0; 65_536];
            let count = self.stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the stream has ended");
            self.text
                .push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
    }
}
