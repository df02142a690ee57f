//! Whose the addresses are, for rules about hosts.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use weir_network::WhoseAddress;
use weir_scenario::HostIndex;

/// The hosts by all addresses that they will ever have.
#[derive(Clone, Debug, Default)]
pub struct Owners(Arc<FxHashMap<IpAddr, HostIndex>>);

impl FromIterator<(IpAddr, HostIndex)> for Owners {
    fn from_iter<I: IntoIterator<Item = (IpAddr, HostIndex)>>(owners: I) -> Self {
        Self(Arc::new(owners.into_iter().collect()))
    }
}

impl WhoseAddress for Owners {
    fn host(&self, address: IpAddr) -> Option<HostIndex> {
        self.0.get(&address).copied()
    }
}
