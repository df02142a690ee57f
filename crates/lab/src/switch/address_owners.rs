//! The owners of addresses, for rules about hosts.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use weir_network::AddressMap;
use weir_scenario::HostIndex;

/// The hosts by all addresses that they ever have.
#[derive(Clone, Debug, Default)]
pub struct AddressOwners(Arc<FxHashMap<IpAddr, HostIndex>>);

impl FromIterator<(IpAddr, HostIndex)> for AddressOwners {
    fn from_iter<I: IntoIterator<Item = (IpAddr, HostIndex)>>(owners: I) -> Self {
        Self(Arc::new(owners.into_iter().collect()))
    }
}

impl AddressMap for AddressOwners {
    fn host(&self, address: IpAddr) -> Option<HostIndex> {
        self.0.get(&address).copied()
    }
}
