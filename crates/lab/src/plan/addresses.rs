//! The allocation of addresses from the lab's network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_scenario::Network;

use super::PlanError;

/// Returns whether an address belongs to a network.
pub(super) fn contains(network: Network, address: IpAddr) -> bool {
    let alike = number(address) ^ number(network.address);
    width(address) == width(network.address)
        && alike.checked_shr(host_bits(network)).unwrap_or(0) == 0
}

/// Allocates addresses in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    network: Network,
    taken: u64,
}

impl Addresses {
    /// Creates an allocator with no address taken.
    pub(super) fn new(network: Network) -> Self {
        Self { network, taken: 0 }
    }

    /// Takes the next `count` addresses.
    ///
    /// # Errors
    /// Too few addresses are left. The first and the last address of a network are not usable.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<IpAddr>, PlanError> {
        let (first, count) = (self.taken + 1, count as u64);
        self.taken += count;
        let all = 1_u64 << host_bits(self.network).min(63);
        if self.taken > all.saturating_sub(2) {
            return Err(PlanError::TooFewAddresses {
                network: self.network,
                needed: self.taken,
            });
        }
        let numbers = first..first + count;
        Ok(numbers.map(|host| numbered(self.network, host)).collect())
    }
}

/// Returns the network's address number `host`.
fn numbered(network: Network, host: u64) -> IpAddr {
    let number = number(network.address) | u128::from(host);
    match network.address {
        // Only the lower 32 bits are set.
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
    }
}

fn host_bits(network: Network) -> u32 {
    u32::from(width(network.address).saturating_sub(network.prefix))
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_consecutive_until_exhausted() {
        let mut addresses = Addresses::new("10.0.0.64/29".parse().unwrap());
        let first = addresses.take(2).unwrap();
        let expected = ["10.0.0.65", "10.0.0.66"];
        assert_eq!(first, expected.map(|text| text.parse::<IpAddr>().unwrap()));
        assert_eq!(addresses.take(4).unwrap().len(), 4);
        let error = addresses.take(1).unwrap_err();
        assert!(matches!(
            error,
            PlanError::TooFewAddresses { needed: 7, .. }
        ));
    }

    #[test]
    fn a_network_contains_its_addresses() {
        let network: Network = "fd57::/64".parse().unwrap();
        assert!(contains(network, "fd57::9".parse().unwrap()));
        assert!(!contains(network, "fd57:0:0:1::9".parse().unwrap()));
        assert!(!contains(network, "10.0.0.1".parse().unwrap()));
        assert!(contains("::/0".parse().unwrap(), "::1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn every_address_is_unique_and_in_the_network(
            bits in any::<u32>(), prefix in 8_u8..=28, count in 1_usize..14
        ) {
            let base = bits >> (32 - prefix) << (32 - prefix);
            let address = IpAddr::V4(Ipv4Addr::from_bits(base));
            let network = Network { address, prefix };
            let addresses = Addresses::new(network).take(count).unwrap();
            let different: std::collections::BTreeSet<_> = addresses.iter().collect();
            prop_assert_eq!(different.len(), count);
            for address in addresses {
                prop_assert!(contains(network, address));
            }
        }
    }
}
