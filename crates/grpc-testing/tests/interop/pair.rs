//! A client and a server.

use std::time::Duration;

use weir_grpc_testing::{Failure, TestChannel, cases};

use super::{ALL, go, http2, weir};

/// Timeout of every case; only a hanging one reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client and a server.
#[derive(Clone, Copy)]
pub(crate) enum Pair {
    /// Tonic with tonic, over HTTP/2: that the cases themselves are right.
    Http2,
    /// This project's client and server.
    Weir,
    /// This project's client and the Go server.
    WeirGo,
    /// The Go client and this project's server.
    GoWeir,
}

impl Pair {
    pub(crate) const ALL: [Self; 4] = [Self::Http2, Self::Weir, Self::WeirGo, Self::GoWeir];

    /// Client and server.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http2 => "http2-http2",
            Self::Weir => "weir-weir",
            Self::WeirGo => "weir-go",
            Self::GoWeir => "go-weir",
        }
    }

    /// What the client or the server of the pair cannot do.
    pub(crate) fn unsupported(self, case: &str) -> Option<&'static str> {
        match self {
            Self::Http2 if [ALL, "timeout_on_sleeping_server"].contains(&case) => {
                Some("tonic over HTTP/2 ends calls with CANCELLED at their deadlines")
            }
            _ => None,
        }
    }

    /// What is not installed.
    pub(crate) fn missing(self) -> Option<String> {
        match self {
            Self::Http2 | Self::Weir => None,
            Self::WeirGo | Self::GoWeir => go::program().err(),
        }
    }

    pub(crate) fn run(self, case: &str) -> Result<(), String> {
        run_in_time(self.run_case(case))
    }

    async fn run_case(self, case: &str) -> Result<(), String> {
        let done = match self {
            Self::Http2 => run(case, http2::channel().await).await,
            Self::Weir => {
                let server = weir::Server::start();
                let done = run(case, server.channel()).await;
                server.expect_idle().await;
                done
            }
            Self::WeirGo => {
                let server = go::Server::start();
                run(case, server.channel()).await
            }
            Self::GoWeir => {
                let server = weir::Server::start();
                let done = server.run_go_client(case).await;
                server.expect_idle().await;
                return done;
            }
        };
        done.map_err(|failure| failure.to_string())
    }
}

async fn run<T: TestChannel>(case: &str, channel: T) -> Result<(), Failure> {
    if case != ALL {
        return cases::run(case, channel).await;
    }
    for case in cases::NAMES {
        cases::run(case, channel.clone()).await?;
    }
    Ok(())
}

/// Runs a test on two threads.
pub(crate) fn run_in_time(test: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let running = async { tokio::time::timeout(PATIENCE, test).await };
    runtime
        .block_on(running)
        .unwrap_or_else(|_| Err("the case hangs".to_owned()))
}
