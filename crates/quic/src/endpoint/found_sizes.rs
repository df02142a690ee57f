//! The packet sizes that connections have found on the way to their peers, for later connections.

use std::net::IpAddr;

use rustc_hash::FxHashMap;
use weir_units::{ByteSize, Duration, Time};

/// How long a size is used: as long as a connection keeps it before it searches again.
const LIFETIME: Duration = Duration::from_secs(600);
/// The most peers.
const MOST: usize = 4096;

/// The sizes by peer.
#[derive(Debug, Default)]
pub(super) struct FoundSizes {
    sizes: FxHashMap<IpAddr, (ByteSize, Time)>,
}

impl FoundSizes {
    /// Records a size found by a probe, or left by a black hole.
    pub(super) fn add(&mut self, now: Time, peer: IpAddr, size: ByteSize) {
        if self.sizes.len() >= MOST {
            self.sizes.retain(|_, (_, at)| now.since(*at) < LIFETIME);
        }
        if self.sizes.len() < MOST || self.sizes.contains_key(&peer) {
            self.sizes.insert(peer, (size, now));
        }
    }

    pub(super) fn of(&self, now: Time, peer: IpAddr) -> Option<ByteSize> {
        let (size, at) = self.sizes.get(&peer)?;
        (now.since(*at) < LIFETIME).then_some(*size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_used_for_their_lifetime_and_their_number_is_bounded() {
        let peer = |number: u32| IpAddr::from(number.to_be_bytes());
        let size = ByteSize::from_bytes(8972);
        let mut sizes = FoundSizes::default();
        let later = Time::ZERO + LIFETIME;
        for number in 0..=MOST as u32 {
            sizes.add(Time::ZERO, peer(number), size);
        }
        assert_eq!(sizes.of(Time::ZERO, peer(0)), Some(size));
        assert_eq!(sizes.of(Time::ZERO, peer(MOST as u32)), None, "full");
        assert_eq!(sizes.of(later, peer(0)), None, "too old");
        sizes.add(later, peer(1), ByteSize::from_bytes(1200));
        assert_eq!(sizes.sizes.len(), 1);
        assert_eq!(sizes.of(later, peer(1)), Some(ByteSize::from_bytes(1200)));
    }
}
