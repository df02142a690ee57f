//! Stream deadlines of a connection, as demands to an allocator, and the allocator's cap on cwnd.
//!
//! A connection whose streams have deadlines is a flow of an [`Allocator`](weir_sed::Allocator),
//! from the first deadline until none is left. The connection's demand is the one with the highest
//! rate: the sum of the streams' remaining bytes up to some deadline. A rate that meets it meets
//! all others.

use weir_quic::{Connection as Engine, StreamId};
use weir_sed::{Allowance, Demand, SenderFlow};
use weir_units::{ByteSize, Duration, Time};

/// A connection's deadlines and its allowance.
#[derive(Debug, Default)]
pub(crate) struct Allocation {
    flow: Option<Box<dyn SenderFlow>>,
    demands: Vec<StreamDemand>,
    /// Bytes delivered for deadlines that are over, since the flow was opened.
    carried: u64,
    /// When the cap expires, if there is one.
    capped_until: Option<Time>,
}

/// The bytes that a stream has to deliver, and by when.
#[derive(Clone, Copy, Debug)]
struct StreamDemand {
    id: StreamId,
    /// Stream offset at which the demand begins.
    begin: u64,
    size: u64,
    at: Time,
}

impl StreamDemand {
    /// Returns the bytes that the peer has acknowledged, by the stream's acknowledged offset; all
    /// bytes for a stream that the engine has forgotten.
    fn carried(&self, acknowledged: Option<u64>) -> u64 {
        acknowledged.map_or(self.size, |upto| {
            upto.saturating_sub(self.begin).min(self.size)
        })
    }
}

impl Allocation {
    /// Adds a deadline: a stream has to deliver `size` more bytes by `at`.
    pub(crate) fn add(
        &mut self,
        now: Time,
        engine: &mut Engine,
        id: StreamId,
        (size, at): (ByteSize, Time),
        open: impl FnOnce() -> Option<Box<dyn SenderFlow>>,
    ) {
        self.remove(now, engine, id);
        let Some(begin) = engine.acknowledged(id) else {
            return;
        };
        if self.flow.is_none() {
            self.flow = open();
            self.carried = 0;
        }
        let size = size.bytes().max(1);
        let due = StreamDemand {
            id,
            begin,
            size,
            at,
        };
        self.demands.push(due);
        self.demands.sort_by_key(|due| due.at);
        self.demand(now, engine);
    }

    /// Removes a stream's deadline.
    pub(crate) fn remove(&mut self, now: Time, engine: &mut Engine, id: StreamId) {
        let Some(index) = self.demands.iter().position(|due| due.id == id) else {
            return;
        };
        let due = self.demands.remove(index);
        self.carried += due.carried(engine.acknowledged(id));
        self.demand(now, engine);
    }

    /// Whether any stream has a deadline.
    #[inline]
    pub(crate) fn is_needed(&self) -> bool {
        !self.demands.is_empty()
    }

    /// Reads the streams' progress and reports it.
    pub(crate) fn update_progress(&mut self, now: Time, engine: &mut Engine) {
        let (mut carried, mut over) = (0, 0);
        self.demands.retain(|due| {
            let part = due.carried(engine.acknowledged(due.id));
            let is_left = part < due.size;
            *(if is_left { &mut carried } else { &mut over }) += part;
            is_left
        });
        self.carried += over;
        if let Some(flow) = &self.flow {
            flow.acknowledged(self.carried + carried);
        }
        if over > 0 {
            self.demand(now, engine);
        }
    }

    /// Reports the streams' common demand, or closes the flow when none is left.
    fn demand(&mut self, now: Time, engine: &mut Engine) {
        let parts = self.demands.iter().map(|due| {
            let left = due.size - due.carried(engine.acknowledged(due.id));
            (left, due.at)
        });
        let parts: Vec<_> = parts.collect();
        let Some((left, at)) = highest_rate_demand(now, &parts) else {
            self.flow = None;
            return self.remove_cap(now, engine);
        };
        let carried: u64 = self
            .demands
            .iter()
            .map(|due| due.carried(engine.acknowledged(due.id)))
            .sum();
        if let Some(flow) = &self.flow {
            flow.demand(Demand {
                size: ByteSize::from_bytes(self.carried + carried + left),
                within: at.checked_since(now).unwrap_or(Duration::ZERO),
            });
        }
    }

    /// Applies an allowance from the allocator.
    pub(crate) fn allow(&mut self, now: Time, engine: &mut Engine, allowance: Allowance) {
        match allowance {
            // A late allowance, for a connection that has no flow any more.
            _ if self.flow.is_none() => self.remove_cap(now, engine),
            Allowance::Unlimited => self.remove_cap(now, engine),
            Allowance::AtMost { window, lease } => {
                self.capped_until = Some(now + lease);
                engine.set_window_cap(now, Some(window));
            }
        }
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub(crate) fn timeout(&self) -> Option<Time> {
        self.capped_until
    }

    /// Removes a cap whose lease has expired.
    pub(crate) fn handle_timeout(&mut self, now: Time, engine: &mut Engine) {
        if self.capped_until.is_some_and(|until| until <= now) {
            self.remove_cap(now, engine);
        }
    }

    fn remove_cap(&mut self, now: Time, engine: &mut Engine) {
        if self.capped_until.take().is_some() {
            engine.set_window_cap(now, None);
        }
    }
}

/// Returns the demand with the highest rate: bytes summed in order of deadlines. Late bytes count
/// with the next deadline, or alone where there is none.
fn highest_rate_demand(now: Time, parts: &[(u64, Time)]) -> Option<(u64, Time)> {
    let mut sum = 0_u64;
    let mut found: Option<(u64, Time)> = None;
    for (left, at) in parts {
        sum = sum.saturating_add(*left);
        let is_harder = |(other, due): (u64, Time)| match due.checked_since(now) {
            None | Some(Duration::ZERO) => true,
            // Products instead of quotients: sum / at > other / due.
            Some(span) => {
                let own = at.since(now).as_nanos();
                u128::from(sum) * u128::from(span.as_nanos()) > u128::from(other) * u128::from(own)
            }
        };
        if found.is_none_or(is_harder) {
            found = Some((sum, *at));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn the_demand_with_the_highest_rate_is_chosen() {
        let now = at(1000);
        assert_eq!(highest_rate_demand(now, &[]), None);
        let parts = [(100, at(1100)), (50, at(1200))];
        assert_eq!(highest_rate_demand(now, &parts), Some((100, at(1100))));
        let parts = [(100, at(1100)), (500, at(1200))];
        assert_eq!(highest_rate_demand(now, &parts), Some((600, at(1200))));
        // Late bytes add to the next deadline's; alone they are late.
        let parts = [(100, at(900)), (50, at(1200))];
        assert_eq!(highest_rate_demand(now, &parts), Some((150, at(1200))));
        assert_eq!(highest_rate_demand(now, &parts[..1]), Some((100, at(900))));
        let parts = [(u64::MAX, at(1100)), (5, at(1200))];
        assert_eq!(highest_rate_demand(now, &parts), Some((u64::MAX, at(1100))));
    }
}
