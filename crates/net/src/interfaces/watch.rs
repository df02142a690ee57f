//! The task that follows changes of interfaces and addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_quic::Interfaces;

use super::address_tracker::{AddressAction, AddressTracker};
use super::dump::TableChanges;
use super::netlink::Netlink;
use super::table::Usable;
use crate::dcquic::Shared;
use crate::error::EndpointError;

/// Keeps an endpoint's sockets and connections in step with the machine's addresses.
pub(crate) struct AddressWatcher {
    netlink: Netlink,
    tracker: AddressTracker,
    /// The interfaces' packet sizes as set on connections.
    interfaces: Arc<Interfaces>,
    /// Addresses that are gone and that some connection cannot leave, as no other route to its peer
    /// is known.
    unreplaced: Vec<IpAddr>,
}

impl AddressWatcher {
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where the kernel refuses the subscription.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open()?,
            tracker: AddressTracker::default(),
            interfaces: Arc::default(),
            unreplaced: Vec::new(),
        })
    }

    /// Runs until it is aborted.
    pub(crate) async fn run(mut self, shared: Arc<Shared>) {
        loop {
            match self.netlink.wait_for_changes().await {
                Ok(changes) => self.act(&shared, changes),
                Err(error) => {
                    tracing::error!(%error, "network interfaces are not watched any more");
                    return;
                }
            }
        }
    }

    fn act(&mut self, shared: &Shared, changes: TableChanges) {
        if !changes.addresses && self.unreplaced.is_empty() {
            return;
        }
        let interfaces = self.netlink.dialogue.table.interfaces();
        if interfaces != *self.interfaces {
            self.interfaces = Arc::new(interfaces);
            shared.set_interfaces(&self.interfaces);
        }
        let usable = self.netlink.dialogue.table.usable();
        // One socket may wait until another leaves an address.
        for _ in 0..shared.sockets.bound_addresses().len() {
            self.apply_actions(shared, &usable);
        }
        let mut gone = self.tracker.departed(&usable);
        gone.append(&mut self.unreplaced);
        gone.retain(|ip| !usable.iter().any(|(usable, _)| usable == ip));
        if !gone.is_empty() {
            self.unreplaced = shared.follow_source(&gone);
        }
    }

    fn apply_actions(&mut self, shared: &Shared, usable: &Usable) {
        let bind_addresses = shared.sockets.bound_addresses();
        for action in self.tracker.decide(&bind_addresses, usable) {
            match action {
                AddressAction::Reopen(index) => shared.reopen_socket_at(index),
                AddressAction::Close(index) => shared.close_socket_at(index),
                AddressAction::Replace(index, ip) => {
                    let port = bind_addresses
                        .get(index)
                        .map_or(0, |(bind_address, _)| bind_address.address.port());
                    if let Err(error) = replace(shared, index, ip, port) {
                        tracing::warn!(%error, "an address that changed cannot be followed");
                    }
                }
            }
        }
    }
}

/// Keeps the port where it is free.
fn replace(shared: &Shared, index: usize, ip: IpAddr, port: u16) -> Result<(), EndpointError> {
    match shared.rebind_socket_at(index, SocketAddr::new(ip, port)) {
        Err(EndpointError::AddressInUse { .. }) => shared.rebind_socket_at(index, (ip, 0).into()),
        moved => moved,
    }
    .map(drop)
}
