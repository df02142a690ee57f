//! The log and the count of refused clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use weir_metrics::prometheus::counter::Counter;
use weir_net::RepeatedWarning;

use crate::quota::LogQuota;

/// Counts and logs clients that are refused. The same address with the same reason is logged less and
/// less often. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct RefusedClients {
    count: Counter,
    log: Arc<Mutex<RefusalLog>>,
}

#[derive(Debug)]
struct RefusalLog {
    warnings: HashMap<IpAddr, RepeatedWarning>,
    quota: LogQuota,
}

/// The most addresses that are remembered; then all are forgotten.
const ADDRESSES: usize = 1000;

impl RefusedClients {
    pub(super) fn new(count: Counter) -> Self {
        let log = RefusalLog {
            warnings: HashMap::new(),
            quota: LogQuota::new(Instant::now()),
        };
        Self {
            count,
            log: Arc::new(Mutex::new(log)),
        }
    }

    /// Counts a refused client, and logs it unless the same was logged not long ago.
    pub(crate) fn note(&self, address: IpAddr, reason: &str) {
        self.count.inc();
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left_out) = log.take(Instant::now(), address, reason) {
            tracing::warn!(%address, reason, left_out, "a client is refused");
        }
    }
}

impl RefusalLog {
    /// Returns whether a refusal is to be logged, with the number of those left out before it.
    fn take(&mut self, now: Instant, address: IpAddr, reason: &str) -> Option<u64> {
        if self.warnings.len() >= ADDRESSES && !self.warnings.contains_key(&address) {
            self.warnings.clear();
        }
        let warning = self.warnings.entry(address);
        let warning = warning.or_insert_with(|| RepeatedWarning::new(now));
        let repetitions = warning.take(now, reason)?;
        Some(repetitions + self.quota.take(now)?)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refused_client_that_tries_again_is_logged_less_and_less_often() {
        let begin = Instant::now();
        let mut log = RefusalLog {
            warnings: HashMap::new(),
            quota: LogQuota::new(begin),
        };
        let address = |number: u32| IpAddr::from(Ipv4Addr::from(number));
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut take = |second, number, reason| log.take(at(second), address(number), reason);
        let logged: Vec<_> = (0..16)
            .filter(|second| take(*second, 1, "foreign").is_some())
            .collect();
        assert_eq!(logged, [0, 1, 3, 7, 15]);
        assert_eq!(take(15, 2, "foreign"), Some(0));
        assert_eq!(take(15, 1, "revoked"), Some(0));
        assert_eq!(take(31, 1, "foreign"), Some(0));
        assert_eq!(take(31, 1, "foreign"), None);
        assert_eq!(take(32, 1, "foreign"), Some(1));
        let flood = (0..10_000).filter(|number| take(40, *number, "foreign").is_some());
        assert_eq!(flood.count(), 5);
    }
}
