//! A server as its client sees it: DCQUIC, or TLS over TCP while UDP does not pass.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use weir_channel::ServerState;
use weir_net::Endpoint;

use super::ClientOptions;
use super::connections::{Connections, Place};
use super::over_tcp::OverTcp;
use crate::carrier::TlsCarrier;
use crate::destination::Destination;
use crate::error::TunnelError;
use crate::status::{ConnectionStatus, PeerStatus};

/// How long DCQUIC is waited for alone, where it has not failed before.
const HEAD_START: Duration = Duration::from_millis(200);
/// How long a connection to the server may take altogether.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server.
#[derive(Debug)]
pub(super) struct Peer {
    name: String,
    connections: Connections,
    over_tcp: Option<OverTcp>,
    /// Whether DCQUIC failed the last time.
    falls_back: AtomicBool,
    /// Whether DCQUIC may fail.
    is_in_doubt: AtomicBool,
    fallbacks: AtomicU64,
}

/// A way to the server.
#[derive(Debug)]
pub(super) enum Way {
    Dcquic(Place),
    Tls(Box<TlsCarrier>),
}

impl Peer {
    pub(super) fn new(
        endpoint: &Endpoint,
        via: &Destination,
        options: &ClientOptions,
    ) -> Result<Self, TunnelError> {
        let over_tcp = || {
            let credentials = options.credentials.clone();
            OverTcp::new(credentials, via.clone(), options.server_name.as_deref())
        };
        Ok(Self {
            name: via.to_string(),
            connections: Connections::new(endpoint, via, options)?,
            over_tcp: options.over_tcp.then(over_tcp).flatten(),
            falls_back: AtomicBool::new(false),
            is_in_doubt: AtomicBool::new(false),
            fallbacks: AtomicU64::new(0),
        })
    }

    /// Returns a way to the server: a DCQUIC connection where one is ready, or whichever comes first of a
    /// new one and of TLS over TCP.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn way(&self) -> Result<Way, String> {
        if !self.is_in_doubt.load(Ordering::Relaxed) {
            if self.over_tcp.is_some() && self.connections.is_one_suspicious() {
                self.doubt();
            } else if let Some(place) = self.connections.ready().await {
                self.dcquic_works();
                return Ok(Way::Dcquic(place));
            }
        }
        let race = timeout(PATIENCE, self.race()).await;
        race.unwrap_or_else(|_| Err("the server does not answer".to_owned()))
    }

    /// Notes that packets may not pass: until one comes TLS over TCP is raced with DCQUIC, and no connection
    /// is taken for ready that has no answer since.
    pub(super) fn doubt(&self) {
        if self.over_tcp.is_some() && !self.is_in_doubt.swap(true, Ordering::Relaxed) {
            self.connections.begin_doubt();
        }
    }

    /// Returns a DCQUIC connection, if one is ready: nothing else carries datagrams.
    pub(super) async fn dcquic(&self) -> Option<Place> {
        self.connections.ready().await
    }

    async fn race(&self) -> Result<Way, String> {
        let Some(over_tcp) = &self.over_tcp else {
            return self.connections.wait(false).await.map(Way::Dcquic);
        };
        let in_doubt = self.is_in_doubt.load(Ordering::Relaxed);
        let dcquic = async {
            if in_doubt {
                return Ok(self.connections.answered().await);
            }
            self.connections.wait(true).await
        };
        let mut dcquic = std::pin::pin!(dcquic);
        if !in_doubt && !self.falls_back.load(Ordering::Relaxed) {
            tokio::select! {
                place = &mut dcquic => match place {
                    Ok(place) => return Ok(Way::Dcquic(place)),
                    Err(error) => return self.by_tls(over_tcp, &error).await,
                },
                () = sleep(HEAD_START) => {}
            }
        }
        let by_tls = self.by_tls(over_tcp, "it does not answer in time");
        let mut by_tls = std::pin::pin!(by_tls);
        tokio::select! {
            biased;
            place = &mut dcquic => match place {
                Ok(place) => {
                    self.dcquic_works();
                    Ok(Way::Dcquic(place))
                }
                Err(_) => by_tls.await,
            },
            way = &mut by_tls => match way {
                Ok(way) => Ok(way),
                Err(_) => dcquic.await.map(Way::Dcquic),
            },
        }
    }

    async fn by_tls(&self, over_tcp: &OverTcp, why: &str) -> Result<Way, String> {
        let connected = over_tcp.connect().await;
        let carrier = connected.map_err(|error| format!("{why}; {error}"))?;
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
        self.doubt();
        if !self.falls_back.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                server = %self.name,
                "DCQUIC fails ({why}): new connections go by TLS over TCP, until it works again"
            );
        }
        Ok(Way::Tls(Box::new(carrier)))
    }

    fn dcquic_works(&self) {
        self.is_in_doubt.store(false, Ordering::Relaxed);
        if self.falls_back.load(Ordering::Relaxed) && self.falls_back.swap(false, Ordering::Relaxed)
        {
            tracing::info!(server = %self.name, "DCQUIC works again");
        }
    }

    /// Returns what the status shows.
    pub(super) fn status(&self) -> PeerStatus {
        let mut connections = Vec::new();
        for (servers, streams) in self.connections.channels() {
            let links = servers.links();
            for server in servers.servers() {
                let link = links
                    .iter()
                    .find(|link| link.connection.remote_address() == server.address);
                let stats = link.map(|link| link.connection.stats());
                let path = stats.as_ref().and_then(|stats| stats.paths.first());
                connections.push(ConnectionStatus {
                    server: server.address,
                    state: match server.state {
                        ServerState::Idle => "idle".to_owned(),
                        ServerState::Connecting => "connecting".to_owned(),
                        ServerState::Ready => "ready".to_owned(),
                        ServerState::Failed(error) => format!("failed: {error}"),
                    },
                    streams,
                    rtt_us: path.map(|path| path.smoothed_rtt.as_nanos() as f64 / 1e3),
                    lost: stats.as_ref().map(|stats| stats.totals.packets_lost),
                    known_peer: link.is_some_and(|link| link.connection.is_known_peer()),
                });
            }
        }
        PeerStatus {
            server: self.name.clone(),
            falls_back: self.falls_back.load(Ordering::Relaxed),
            fallbacks: self.fallbacks.load(Ordering::Relaxed),
            connections,
        }
    }
}
