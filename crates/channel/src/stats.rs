//! Counters, and the servers' states.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::pool::{LinkState, Member};
use crate::protocol::Protocol;
use crate::servers::Servers;

/// Counters of the connections to some servers since they were built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServersStats {
    /// Connections established.
    pub connections: u64,
    /// Connections that could not be established.
    pub connections_failed: u64,
}

/// A server, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its address.
    pub address: SocketAddr,
    /// The state of its connection.
    pub state: ServerState,
    /// Calls under way.
    pub outstanding: usize,
    /// Whether it is avoided after failures in a row.
    pub is_avoided: bool,
}

/// The state of a server's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Not wanted.
    Idle,
    /// It is being established.
    Connecting,
    /// It takes calls.
    Ready,
    /// The last attempt failed, for this reason; the next one waits.
    Failed(String),
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) connections_failed: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl<P: Protocol> Servers<P> {
    /// Returns the counters.
    pub fn stats(&self) -> ServersStats {
        let counters = &self.shared().counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ServersStats {
            connections: get(&counters.connections),
            connections_failed: get(&counters.connections_failed),
        }
    }

    /// Returns the servers, in the resolver's order.
    pub fn servers(&self) -> Vec<ServerInfo> {
        let now = self.shared().sources.now();
        let pool = self.shared().pool();
        let members = pool.members().iter();
        members
            .map(|member| ServerInfo {
                address: member.server().address,
                state: match member.state() {
                    LinkState::Idle => ServerState::Idle,
                    LinkState::Connecting => ServerState::Connecting,
                    LinkState::Ready(_) => ServerState::Ready,
                    LinkState::Failed(error) => ServerState::Failed(error.clone()),
                },
                outstanding: member.server().outstanding(),
                is_avoided: member.server().is_avoided(|| now),
            })
            .collect()
    }

    /// Returns the connections that take calls now.
    pub fn links(&self) -> Vec<P::Link> {
        let pool = self.shared().pool();
        let links = pool.members().iter().filter_map(Member::usable);
        links.cloned().collect()
    }

    /// Returns why the name could not be resolved last, if so; the servers of the last good answer
    /// stay.
    pub fn resolve_error(&self) -> Option<String> {
        let resolution = self.shared().resolution();
        resolution.error().map(str::to_owned)
    }
}
