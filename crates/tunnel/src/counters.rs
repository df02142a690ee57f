//! What a process counts: of each tunnel, and of all together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::carrier::CarrierKind;
use crate::refusal::Refusal;

/// Tunnels that are counted one by one; the connections of further ones are counted together.
const MOST_TUNNELS: usize = 256;
/// The name of those.
const OTHERS: &str = "others";

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }
}

/// The counters of a tunnel: a listener of a client, or a destination of a server.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounters {
    dcquic: Counter,
    tls: Counter,
    open: Counter,
    /// Connections that are open, or will be once there is a way for them.
    active: Counter,
    sent: Counter,
    received: Counter,
    refused: [Counter; Refusal::ALL.len()],
    pub(crate) lost: Counter,
    pub(crate) datagrams_sent: Counter,
    pub(crate) datagrams_received: Counter,
    pub(crate) datagrams_dropped: Counter,
}

/// A connection that was accepted and has not ended, until this is dropped.
#[derive(Debug)]
pub(crate) struct ActiveConnection(Arc<ConnectionCounters>);

/// A connection that is open, until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<ConnectionCounters>);

impl ConnectionCounters {
    /// Counts a connection for as long as what it returns is kept.
    pub(crate) fn open(self: &Arc<Self>, kind: CarrierKind) -> OpenConnection {
        match kind {
            CarrierKind::Dcquic => self.dcquic.add(1),
            CarrierKind::Tls => self.tls.add(1),
        }
        self.open.add(1);
        OpenConnection(self.clone())
    }

    /// Counts a connection as active for as long as what it returns is kept.
    pub(crate) fn activate(self: &Arc<Self>) -> ActiveConnection {
        self.active.add(1);
        ActiveConnection(self.clone())
    }

    /// Counts bytes from this side's TCP connection.
    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.add(bytes);
    }

    /// Counts bytes to this side's TCP connection.
    pub(crate) fn received(&self, bytes: u64) {
        self.received.add(bytes);
    }

    /// Counts a connection that ended before its time.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.refused[usize::from(refusal.code()) - 1].add(1);
    }

    fn values(&self, tunnel: String) -> TunnelValues {
        let refused = Refusal::ALL.into_iter().zip(&self.refused);
        let refused = refused.filter(|(_, counter)| counter.get() > 0);
        TunnelValues {
            tunnel,
            dcquic: self.dcquic.get(),
            tls: self.tls.get(),
            open: self.open.get(),
            sent: self.sent.get(),
            received: self.received.get(),
            refused: refused
                .map(|(refusal, counter)| (refusal.name().to_owned(), counter.get()))
                .collect(),
            lost: self.lost.get(),
            datagrams_sent: self.datagrams_sent.get(),
            datagrams_received: self.datagrams_received.get(),
            datagrams_dropped: self.datagrams_dropped.get(),
        }
    }
}

impl Drop for ActiveConnection {
    fn drop(&mut self) {
        self.0.active.subtract(1);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.subtract(1);
    }
}

/// The values of a tunnel's counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelValues {
    /// The listener of a client, or the destination of a server.
    pub tunnel: String,
    /// Connections that a DCQUIC stream carried.
    pub dcquic: u64,
    /// Connections that TLS over TCP carried.
    pub tls: u64,
    /// Connections that are open.
    pub open: u64,
    /// Bytes from TCP to the peer.
    pub sent: u64,
    /// Bytes from the peer to TCP.
    pub received: u64,
    /// Connections that were refused or reset, by the reason's name.
    pub refused: BTreeMap<String, u64>,
    /// Connections that ended because the connection to the peer was lost.
    pub lost: u64,
    /// UDP datagrams to the peer.
    pub datagrams_sent: u64,
    /// UDP datagrams from the peer.
    pub datagrams_received: u64,
    /// UDP datagrams that were dropped: too long, or without a flow.
    pub datagrams_dropped: u64,
}

/// The counters of a process.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    tunnels: Mutex<BTreeMap<String, Arc<ConnectionCounters>>>,
}

impl Counters {
    /// Returns the counters of a tunnel.
    pub(crate) fn tunnel(&self, name: &str) -> Arc<ConnectionCounters> {
        let mut tunnels = self.tunnels();
        if let Some(counters) = tunnels.get(name) {
            return counters.clone();
        }
        // The clients choose the destinations of a server.
        let name = if tunnels.len() < MOST_TUNNELS {
            name
        } else {
            OTHERS
        };
        tunnels.entry(name.to_owned()).or_default().clone()
    }

    /// Returns how many connections were accepted and have not ended.
    pub(crate) fn active(&self) -> u64 {
        let tunnels = self.tunnels();
        tunnels.values().map(|counters| counters.active.get()).sum()
    }

    /// Returns the values of all counters.
    pub(crate) fn values(&self) -> Vec<TunnelValues> {
        let tunnels = self.tunnels();
        let tunnels = tunnels.iter();
        tunnels
            .map(|(name, counters)| counters.values(name.clone()))
            .collect()
    }

    fn tunnels(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ConnectionCounters>>> {
        self.tunnels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_beyond_the_limit_are_counted_together() {
        let counters = Counters::default();
        for number in 0..MOST_TUNNELS + 10 {
            let tunnel = counters.tunnel(&format!("host:{number}"));
            drop(tunnel.open(CarrierKind::Dcquic));
            tunnel.refused(Refusal::Forbidden);
        }
        let values = counters.values();
        assert_eq!(values.len(), MOST_TUNNELS + 1);
        let others = values
            .iter()
            .find(|values| values.tunnel == OTHERS)
            .unwrap();
        assert_eq!((others.dcquic, others.open), (10, 0));
        assert_eq!(others.refused["forbidden"], 10);
    }

    #[test]
    fn a_connection_is_open_until_it_is_dropped() {
        let counters = Counters::default().tunnel("a");
        let open = counters.open(CarrierKind::Tls);
        assert_eq!(counters.values(String::new()).open, 1);
        drop(open);
        let values = counters.values(String::new());
        assert_eq!((values.tls, values.open), (1, 0));
    }
}
