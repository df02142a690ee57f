//! The forwarding rules of the cases.

use std::net::IpAddr;
use std::time::Duration;

use super::{Rule, Toward, Verdict};

/// Forwards everything.
pub(crate) fn pass() -> Rule {
    Box::new(|_| Verdict::Pass)
}

/// Delays everything by `one_way`.
pub(crate) fn delay(one_way: Duration) -> Rule {
    Box::new(move |_| Verdict::Delay(one_way))
}

/// Drops about `percent` % of the datagrams at random.
pub(crate) fn lose(percent: u64, seed: u64) -> Rule {
    let mut chance = RuleRandom::new(seed);
    spare_after_silence(move || {
        if chance.percent(percent) {
            Verdict::Lose
        } else {
            Verdict::Pass
        }
    })
}

/// Changes a byte in about `percent` % of the datagrams at random.
pub(crate) fn corrupt(percent: u64, seed: u64) -> Rule {
    let mut chance = RuleRandom::new(seed);
    spare_after_silence(move || {
        if chance.percent(percent) {
            Verdict::Corrupt(chance.next() as usize)
        } else {
            Verdict::Pass
        }
    })
}

/// Applies `rule`, but forwards a few datagrams after each silence. Probe timeouts double, so a few
/// probes lost in a row would decide whether a case ends before its stacks give up.
fn spare_after_silence(mut rule: impl FnMut() -> Verdict + 'static) -> Rule {
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

/// Marks every `interval`-th datagram of each direction CE.
pub(crate) fn mark_every(interval: usize) -> Rule {
    Box::new(move |datagram| match datagram.number % interval {
        0 => Verdict::Mark,
        _ => Verdict::Pass,
    })
}

/// Rebinds the client to `address` at its datagram `number`.
pub(crate) fn rebind(number: usize, address: IpAddr) -> Rule {
    Box::new(
        move |datagram| match (datagram.toward, datagram.number == number) {
            (Toward::Server, true) => Verdict::Rebind(address),
            _ => Verdict::Pass,
        },
    )
}

/// Rebinds the client to `address` at its first datagram after a silence, like a NAT whose mapping
/// has expired.
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

/// A seeded random number generator (xorshift).
struct RuleRandom(u64);

impl RuleRandom {
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
