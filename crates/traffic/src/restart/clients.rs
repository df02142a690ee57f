//! The clients' calls.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::time::timeout;
use weir_net::tls::Identity;

use super::call::Progress;
use super::report::Outcome;
use super::{Contestant, Plan, dcquic, tcp_tls};
use crate::calls::error::Error;
use crate::transport::Start;

/// Clients that meet the server at the same time.
const MEETING: usize = 16;
/// How long a client may take to get to know the server.
const MEETING_LIMIT: Duration = Duration::from_secs(30);

/// All clients of a storm.
pub(super) enum Clients {
    Dcquic(dcquic::Clients),
    TcpTls(tcp_tls::Clients),
}

impl Clients {
    /// Creates the clients of a storm.
    pub(super) fn new(plan: &Plan, server: SocketAddr, trusted: &Identity) -> Result<Self, Error> {
        Ok(match plan.contestant {
            Contestant::Dcquic => Self::Dcquic(dcquic::Clients::new(plan, server, trusted)?),
            Contestant::TcpTls => Self::TcpTls(tcp_tls::Clients::new(plan, server, trusted)?),
        })
    }

    /// Makes each client known to the server. The calls that they make for this have the clients' indices
    /// as numbers, and all succeed.
    pub(super) async fn meet(&self, count: usize) -> Result<(), Error> {
        let meetings = stream::iter(0..count).map(async |client| {
            let meeting = async {
                match self {
                    Self::Dcquic(clients) => clients.meet(client).await,
                    Self::TcpTls(clients) => clients.meet(client).await,
                }
            };
            match timeout(MEETING_LIMIT, meeting).await {
                Ok(met) => met.map_err(|failed| Error::transport("meeting the server", failed)),
                Err(_) => Err(Error::Stalled {
                    what: "meeting the server".to_owned(),
                    limit: MEETING_LIMIT.into(),
                }),
            }
        });
        meetings
            .buffer_unordered(MEETING)
            .try_collect::<Vec<()>>()
            .await
            .map(drop)
    }

    /// Makes a call within this time.
    pub(super) async fn call(
        &self,
        client: usize,
        number: u64,
        limit: Duration,
    ) -> (Outcome, Option<Start>) {
        let mut progress = Progress::default();
        let call = async {
            match self {
                Self::Dcquic(clients) => clients.call(client, number, &mut progress).await,
                Self::TcpTls(clients) => clients.call(client, number, &mut progress).await,
            }
        };
        let called = timeout(limit, call).await;
        let outcome = match called {
            Ok(Ok(())) => Outcome::Answered,
            _ if progress.wrong => Outcome::Wrong,
            _ if progress.sent => Outcome::Maybe,
            _ => Outcome::No,
        };
        (outcome, progress.start)
    }
}
