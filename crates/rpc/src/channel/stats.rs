//! What a channel does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Channel;
use super::pool::LinkState;

/// Counters of a channel since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Calls.
    pub calls: u64,
    /// Calls that were made again, each time.
    pub retries: u64,
    /// Calls that were not made again because the retry budget was used up.
    pub budget_exhausted: u64,
    /// Connections established.
    pub connections: u64,
    /// Connections that could not be established.
    pub connections_failed: u64,
}

/// A server of a channel.
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
pub(super) struct Counters {
    pub(super) calls: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) budget_exhausted: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) connections_failed: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Channel {
    /// Returns the counters.
    pub fn stats(&self) -> ChannelStats {
        let counters = &self.shared.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ChannelStats {
            calls: get(&counters.calls),
            retries: get(&counters.retries),
            budget_exhausted: get(&counters.budget_exhausted),
            connections: get(&counters.connections),
            connections_failed: get(&counters.connections_failed),
        }
    }

    /// Returns the servers, in the resolver's order.
    pub fn servers(&self) -> Vec<ServerInfo> {
        let now = self.shared.now();
        let state = self.shared.state();
        let members = state.pool.members().iter();
        members
            .map(|member| ServerInfo {
                address: member.address,
                state: match member.state() {
                    LinkState::Idle => ServerState::Idle,
                    LinkState::Connecting => ServerState::Connecting,
                    LinkState::Ready(_) => ServerState::Ready,
                    LinkState::Failed(error) => ServerState::Failed(error.clone()),
                },
                outstanding: member.outstanding(),
                is_avoided: member.is_avoided(now),
            })
            .collect()
    }

    /// Returns why the name could not be resolved last, if so; the servers of the last good answer
    /// stay.
    pub fn resolve_error(&self) -> Option<String> {
        let state = self.shared.state();
        state.resolution.error().map(str::to_owned)
    }
}
