//! When a name is resolved again, and what it stood for last.

use std::net::SocketAddr;

use weir_units::{Duration, Time};

use crate::backoff::{Backoff, BackoffConfig};

/// The shortest span between two resolutions.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest span between two resolutions that fail.
const LONGEST: Duration = Duration::from_secs(5);

/// The last answer to a name, and when to ask again: after an interval, and sooner when a
/// connection failed. A failed resolution leaves the last answer in place.
#[derive(Clone, Debug)]
pub(crate) struct Resolution {
    interval: Duration,
    addresses: Vec<SocketAddr>,
    error: Option<String>,
    last: Option<Time>,
    next: Time,
    backoff: Backoff,
}

impl Resolution {
    /// Creates a resolution that is due at once; zero is no interval.
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval: if interval.is_zero() {
                Duration::MAX
            } else {
                interval
            },
            addresses: Vec::new(),
            error: None,
            last: None,
            next: Time::ZERO,
            backoff: Backoff::new(BackoffConfig {
                first: SHORTEST,
                longest: LONGEST,
            }),
        }
    }

    /// Returns when the name is to be resolved next.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Returns the addresses of the last good answer.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns why there is no good answer since the last one.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Takes an answer, without addresses that occur twice. An empty answer is a failed one.
    pub(crate) fn on_answer(
        &mut self,
        now: Time,
        answer: Result<Vec<SocketAddr>, String>,
        random: u64,
    ) {
        self.last = Some(now);
        let answer = match answer {
            Ok(addresses) if addresses.is_empty() => Err("the name has no address".to_owned()),
            answer => answer,
        };
        match answer {
            Ok(addresses) => {
                self.addresses.clear();
                for address in addresses {
                    if !self.addresses.contains(&address) {
                        self.addresses.push(address);
                    }
                }
                self.error = None;
                self.backoff.reset();
                self.next = now + self.interval;
            }
            Err(error) => {
                self.error = Some(error);
                self.next = now + self.backoff.next(random).max(SHORTEST);
            }
        }
    }

    /// A connection failed: its address may be out of date.
    pub(crate) fn on_connection_failure(&mut self, now: Time) {
        let earliest = self.last.map_or(now, |last| now.max(last + SHORTEST));
        self.next = self.next.min(earliest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 1))
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_name_is_resolved_at_its_interval_and_sooner_after_a_failed_connection() {
        let mut resolution = Resolution::new(Duration::from_secs(30));
        assert_eq!(resolution.next(), Time::ZERO);
        resolution.on_answer(at(0), Ok(vec![address(1), address(2), address(1)]), 0);
        assert_eq!(resolution.addresses(), [address(1), address(2)]);
        assert_eq!(resolution.next(), at(30_000));
        resolution.on_connection_failure(at(20));
        assert_eq!(resolution.next(), at(100));
        resolution.on_answer(at(100), Ok(vec![address(3)]), 0);
        resolution.on_connection_failure(at(5_000));
        assert_eq!(resolution.next(), at(5_000));
    }

    #[test]
    fn a_failed_resolution_leaves_the_addresses() {
        let mut resolution = Resolution::new(Duration::from_secs(30));
        resolution.on_answer(at(0), Ok(vec![address(1)]), 0);
        resolution.on_answer(at(10), Err("no name server".to_owned()), 0);
        assert_eq!(resolution.addresses(), [address(1)]);
        assert_eq!(resolution.error(), Some("no name server"));
        assert_eq!(resolution.next(), at(110));
        resolution.on_answer(at(110), Ok(Vec::new()), u64::MAX);
        assert_eq!(resolution.addresses(), [address(1)]);
        assert!(resolution.next() > at(200));
        resolution.on_answer(at(300), Ok(vec![address(2)]), 0);
        assert_eq!(
            (resolution.addresses(), resolution.error()),
            (&[address(2)][..], None)
        );
    }

    #[test]
    fn without_an_interval_only_failures_resolve_again() {
        let mut resolution = Resolution::new(Duration::ZERO);
        resolution.on_answer(at(1), Ok(vec![address(1)]), 0);
        assert_eq!(resolution.next(), Time::MAX);
        resolution.on_connection_failure(at(500));
        assert_eq!(resolution.next(), at(500));
    }
}
