//! The rules that the cases need.

use std::net::IpAddr;
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
    under_load(move || {
        if chance.percent(percent) {
            Verdict::Lose
        } else {
            Verdict::Pass
        }
    })
}

/// Of a hundred datagrams about `percent` are changed in a byte, as the seed says.
pub(crate) fn corrupt(percent: u64, seed: u64) -> Rule {
    let mut chance = Chance::new(seed);
    under_load(move || {
        if chance.percent(percent) {
            Verdict::Corrupt(chance.next() as usize)
        } else {
            Verdict::Pass
        }
    })
}

/// The verdicts of `rule`, but a few datagrams after a silence arrive: probes back off, and a few unlucky
/// ones in a row, each after twice the time, would decide whether a case ends before its stacks give up.
fn under_load(mut rule: impl FnMut() -> Verdict + 'static) -> Rule {
    const SILENCE: Duration = Duration::from_millis(500);
    const SPARED: usize = 6;
    let (mut last, mut spared) = (None, 0);
    Box::new(move |datagram| {
        let since = last.replace(datagram.at);
        if since.is_some_and(|since| datagram.at >= since + SILENCE) {
            spared = SPARED;
        }
        if spared == 0 {
            return rule();
        }
        spared -= 1;
        Verdict::Pass
    })
}

/// Every so-manieth datagram meets congestion.
pub(crate) fn mark_every(interval: usize) -> Rule {
    Box::new(move |datagram| match datagram.number % interval {
        0 => Verdict::Mark,
        _ => Verdict::Pass,
    })
}

/// With its so-manieth datagram the client appears at another address.
pub(crate) fn rebind(number: usize, address: IpAddr) -> Rule {
    Box::new(
        move |datagram| match (datagram.toward, datagram.number == number) {
            (Toward::Server, true) => Verdict::Rebind(address),
            _ => Verdict::Pass,
        },
    )
}

/// With its first datagram after so long a silence the client appears at another address, as where a
/// NAT has forgotten it.
pub(crate) fn rebind_after_silence(silence: Duration, address: IpAddr) -> Rule {
    let mut last = None;
    Box::new(move |datagram| {
        let since = last.replace(datagram.at);
        let is_silent = since.is_some_and(|since| datagram.at >= since + silence);
        match (datagram.toward, is_silent) {
            (Toward::Server, true) => Verdict::Rebind(address),
            _ => Verdict::Pass,
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
