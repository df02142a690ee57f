//! The state that all flows of a host share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Barrier, mpsc, watch};
use weir_net::tls::Identity;

use super::tls::TlsConfigs;
use crate::clock::Clock;
use crate::control::AgentEvent;

/// Sends events to the director.
#[derive(Clone, Debug)]
pub(super) struct EventSender(mpsc::UnboundedSender<AgentEvent>);

/// A flow's view of its host and of the run. Clones share the same state.
#[derive(Clone, Debug)]
pub(super) struct FlowContext {
    pub(super) events: EventSender,
    pub(super) identity: Identity,
    pub(super) signals: RunSignals,
    pub(super) tls: Arc<TlsConfigs>,
    shared: Arc<HostState>,
}

/// The director's signals to all flows.
#[derive(Clone, Debug)]
pub(super) struct RunSignals {
    /// The run's time, once it has begun.
    pub(super) clock: watch::Receiver<Option<Clock>>,
    /// The current epoch, with an epochs workload.
    pub(super) epoch: watch::Receiver<Option<u64>>,
    /// Whether the run is over.
    pub(super) stop: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct HostState {
    /// The current address of each replaced address.
    addresses: Mutex<HashMap<IpAddr, IpAddr>>,
    /// The barriers of incast groups.
    rounds: Mutex<HashMap<String, Arc<Barrier>>>,
}

impl EventSender {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<AgentEvent>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Sends an event to the director. Events after the director has gone are dropped.
    pub(super) fn send(&self, event: AgentEvent) {
        if self.0.send(event).is_err() {
            tracing::debug!("an event comes too late");
        }
    }
}

impl FlowContext {
    pub(super) fn new(events: EventSender, identity: Identity, signals: RunSignals) -> Self {
        Self {
            events,
            identity,
            signals,
            tls: Arc::default(),
            shared: Arc::default(),
        }
    }

    /// Returns the run's clock; waits until the run has begun.
    pub(super) async fn clock(&self) -> Clock {
        let mut clock = self.signals.clock.clone();
        let begun = clock.wait_for(Option::is_some).await;
        match begun.map(|clock| *clock) {
            Ok(Some(clock)) => clock,
            // The agent is gone, and this task ends with it.
            _ => std::future::pending().await,
        }
    }

    /// Waits until the director ends the run.
    pub(super) async fn stopped(&self) {
        let mut stop = self.signals.stop.clone();
        // If the agent is gone, the run has ended too.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// Replaces an address by another.
    pub(super) fn replace_address(&self, was: IpAddr, is: IpAddr) {
        let mut addresses = self.lock_addresses();
        for current in addresses.values_mut().filter(|current| **current == was) {
            *current = is;
        }
        addresses.insert(was, is);
    }

    /// Returns the current address for `address`.
    pub(super) fn current_address(&self, address: IpAddr) -> IpAddr {
        self.lock_addresses()
            .get(&address)
            .copied()
            .unwrap_or(address)
    }

    /// Returns the barrier at which `flows` flows of this group wait for each other.
    pub(super) fn barrier_of(&self, group: &str, flows: u32) -> Arc<Barrier> {
        let rounds = self.shared.rounds.lock();
        let mut rounds = rounds.unwrap_or_else(PoisonError::into_inner);
        let barrier = rounds
            .entry(group.to_owned())
            .or_insert_with(|| Arc::new(Barrier::new(flows.max(1) as usize)));
        barrier.clone()
    }

    fn lock_addresses(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, IpAddr>> {
        let addresses = self.shared.addresses.lock();
        addresses.unwrap_or_else(PoisonError::into_inner)
    }
}
