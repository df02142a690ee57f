//! The rules that the cases need.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::{Rule, Toward, Verdict};

/// Everything arrives.
pub(crate) fn pass() -> Rule {
    Box::new(|_| Verdict::Pass)
}

/// Everything arrives so much later.
pub(crate) fn delay(one_way: Duration) -> Rule {
    Box::new(move |_| Verdict::Delay(one_way))
}

/// Of a hundred datagrams about `percent` are lost, as the seed says.
pub(crate) fn lose(percent: u64, seed: u64) -> Rule {
    let mut chance = Chance::new(seed);
    Box::new(move |_| match chance.percent(percent) {
        true => Verdict::Lose,
        false => Verdict::Pass,
    })
}

/// Of a hundred datagrams about `percent` are changed in a byte, as the seed says.
pub(crate) fn corrupt(percent: u64, seed: u64) -> Rule {
    let mut chance = Chance::new(seed);
    Box::new(move |_| match chance.percent(percent) {
        true => Verdict::Corrupt(chance.next() as usize),
        false => Verdict::Pass,
    })
}

/// Every so-manieth datagram meets congestion.
pub(crate) fn mark_every(interval: usize) -> Rule {
    Box::new(move |datagram| match datagram.number % interval {
        0 => Verdict::Mark,
        _ => Verdict::Pass,
    })
}

/// Every so-manieth datagram of the client's, it appears to have another port.
pub(crate) fn rebind_port_every(interval: usize) -> Rule {
    rebind_every(interval, |_| Ipv4Addr::LOCALHOST)
}

/// Every so-manieth datagram of the client's, it appears to have another address.
pub(crate) fn rebind_address_every(interval: usize) -> Rule {
    rebind_every(interval, |round| {
        let last = u8::try_from(2 + round % 200).unwrap_or(2);
        Ipv4Addr::new(127, 0, 0, last)
    })
}

fn rebind_every(interval: usize, address: impl Fn(usize) -> Ipv4Addr + 'static) -> Rule {
    Box::new(move |datagram| {
        let due = datagram.number > 0 && datagram.number.is_multiple_of(interval);
        if datagram.toward == Toward::Server && due {
            Verdict::Rebind(IpAddr::V4(address(datagram.number / interval)))
        } else {
            Verdict::Pass
        }
    })
}

/// Repeatable chance (xorshift).
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}
