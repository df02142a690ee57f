//! Decides which of the endpoint's addresses to give up, use again or replace.
//!
//! It compares the actual state with the wanted one and does not follow single changes: lost or
//! reordered messages make no difference once the table is right.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::table::Usable;
use crate::socket::BindAddress;

/// The action for one socket index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressAction {
    /// Its address is back: bind it, and keep standby paths from there.
    Reopen(usize),
    /// Its interface has this address instead: bind it, and move connections there.
    Replace(usize, IpAddr),
    /// Its address is gone, and there are others: close it, and move connections away.
    Close(usize),
}

/// Remembers the interface of each address.
#[derive(Debug, Default)]
pub(crate) struct AddressTracker {
    /// The interface of each index's address, once it was seen. Addresses that were never seen (all
    /// of 127.0.0.0/8 but one) are not changed.
    seen_on: Vec<Option<String>>,
    /// Addresses that were usable at the last call.
    before: BTreeSet<IpAddr>,
}

impl AddressTracker {
    /// Returns the actions for the addresses `bind_addresses`, each with whether its socket is open.
    /// Actions that restore addresses come first, so that connections that leave others have a
    /// target.
    pub(crate) fn decide(
        &mut self,
        bind_addresses: &[(BindAddress, bool)],
        usable: &Usable,
    ) -> Vec<AddressAction> {
        self.seen_on.resize(bind_addresses.len(), None);
        let (mut gains, mut losses) = (Vec::new(), Vec::new());
        let mut taken: BTreeSet<IpAddr> = bind_addresses
            .iter()
            .map(|(bind_address, _)| ip(bind_address))
            .collect();
        let mut standing: Vec<bool> = bind_addresses.iter().map(|(_, open)| *open).collect();
        for (index, (bind_address, open)) in bind_addresses.iter().enumerate() {
            if bind_address.address.ip().is_unspecified() {
                continue;
            }
            let here = usable.iter().find(|(address, interface)| {
                *address == ip(bind_address) && allowed(bind_address, interface)
            });
            if let Some((_, interface)) = here {
                self.seen_on[index] = Some(interface.clone());
                if !open {
                    gains.push(AddressAction::Reopen(index));
                    standing[index] = true;
                }
            } else if let Some(interface) = self.seen_on[index].clone() {
                let alone = !bind_addresses
                    .iter()
                    .enumerate()
                    .any(|(other, (elsewhere, _))| {
                        other != index && same_family(ip(bind_address), ip(elsewhere))
                    });
                match replacement(bind_address, &interface, alone, &taken, usable) {
                    Some(instead) => {
                        taken.insert(instead);
                        gains.push(AddressAction::Replace(index, instead));
                        standing[index] = true;
                    }
                    None if *open => losses.push(index),
                    None => {}
                }
            }
        }
        for index in losses {
            let family = ip(&bind_addresses[index].0);
            let another = bind_addresses
                .iter()
                .enumerate()
                .any(|(other, (bind_address, _))| {
                    other != index && standing[other] && same_family(ip(bind_address), family)
                });
            // The last one stays: its address may come back.
            if another {
                standing[index] = false;
                gains.push(AddressAction::Close(index));
            }
        }
        gains
    }

    /// Returns the addresses that were usable at the last call and are not any more.
    pub(crate) fn departed(&mut self, usable: &Usable) -> Vec<IpAddr> {
        let now: BTreeSet<IpAddr> = usable.iter().map(|(ip, _)| *ip).collect();
        let departed = self.before.difference(&now).copied().collect();
        self.before = now;
        departed
    }
}

/// Returns the replacement of an address that is gone: another one of the same interface, or of
/// any, where that was the endpoint's only address and is not bound to an interface.
fn replacement(
    bind_address: &BindAddress,
    interface: &str,
    alone: bool,
    taken: &BTreeSet<IpAddr>,
    usable: &Usable,
) -> Option<IpAddr> {
    let gone = ip(bind_address);
    let fits = |candidate: &IpAddr| {
        same_family(*candidate, gone)
            && !taken.contains(candidate)
            && candidate.is_loopback() == gone.is_loopback()
            && is_link_local(*candidate) == is_link_local(gone)
    };
    let here = usable
        .iter()
        .find(|(candidate, on)| on == interface && fits(candidate));
    let anywhere = || {
        let free = alone && bind_address.interface.is_none();
        usable.iter().find(|(candidate, _)| free && fits(candidate))
    };
    here.or_else(anywhere).map(|(candidate, _)| *candidate)
}

fn ip(bind_address: &BindAddress) -> IpAddr {
    bind_address.address.ip().to_canonical()
}

fn allowed(bind_address: &BindAddress, interface: &str) -> bool {
    bind_address
        .interface
        .as_deref()
        .is_none_or(|only| only == interface)
}

fn same_family(one: IpAddr, other: IpAddr) -> bool {
    one.is_ipv4() == other.is_ipv4()
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests;
