//! What a channel does.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_channel::ServerInfo;

use super::Channel;

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

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) calls: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) budget_exhausted: AtomicU64,
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
        let servers = self.shared.servers.stats();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ChannelStats {
            calls: get(&counters.calls),
            retries: get(&counters.retries),
            budget_exhausted: get(&counters.budget_exhausted),
            connections: servers.connections,
            connections_failed: servers.connections_failed,
        }
    }

    /// Returns the servers, in the resolver's order.
    pub fn servers(&self) -> Vec<ServerInfo> {
        self.shared.servers.servers()
    }

    /// Returns why the name could not be resolved last, if so; the servers of the last good answer
    /// stay.
    pub fn resolve_error(&self) -> Option<String> {
        self.shared.servers.resolve_error()
    }
}
