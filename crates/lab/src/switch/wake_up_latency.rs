//! Waits for the next event or frame: asleep at first, polling in the last microseconds.
//!
//! A sleeping thread wakes late, by microseconds or tens of them, depending on the machine. So it wakes
//! earlier by its recent lateness, and polls the clock until the event is due. Polling is limited to a
//! part of the time, because on a machine of two cores the hosts need the rest. Beyond that part the
//! thread rests as soon as it has nothing to do, even if a frame arrives, and then handles more at
//! once. Then a frame does not cost its sender a wake-up of this thread either, which is most of its cost
//! on a virtual machine. Beyond a larger part the thread rests even with work to do: the kernel stops a
//! real-time thread that never sleeps for 50 ms in each second.

use std::io;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use weir_units::{Duration, Time};

use crate::clock::Clock;

/// Longer lateness is an exception that is not compensated.
const LONGEST_WATCH: Duration = Duration::from_micros(70);
/// A shorter sleep is not worth a system call.
const SHORTEST_SLEEP: Duration = Duration::from_micros(3);
/// The percentages of time that may be spent awake: while idle, and in total.
const WATCHING: u64 = 50;
const WORKING: u64 = 90;
/// The largest saved-up credit of either.
const LARGEST_CREDIT: Duration = Duration::from_millis(2);
/// The sleep of a thread that has been awake for too long.
const REST: Duration = Duration::from_micros(50);
/// After a frame, the thread polls for the next one for this long.
const SOON: Duration = Duration::from_micros(15);
/// A call that took longer has slept.
const AT_ONCE: Duration = Duration::from_micros(2);

/// The thread's estimate of its wake-up lateness, and its credit for time awake.
#[derive(Debug)]
pub(super) struct WakeUpLatency {
    clock: Clock,
    /// The lateness that most sleeps do not exceed.
    lateness: Duration,
    /// The time that the thread may still be awake: while idle, and in total.
    watching: Duration,
    working: Duration,
    /// When these were last updated, and the time asleep since then.
    settled: Time,
    slept: Duration,
    /// When the interfaces were last polled.
    looked: Time,
    /// The end of the time in which another frame is likely.
    poll_until: Time,
}

impl WakeUpLatency {
    pub(super) fn new(clock: Clock) -> Self {
        let now = clock.now();
        Self {
            clock,
            lateness: Duration::from_micros(20),
            watching: LARGEST_CREDIT,
            working: LARGEST_CREDIT,
            settled: now,
            slept: Duration::ZERO,
            looked: now,
            poll_until: now,
        }
    }

    /// Waits until `until`, or until one of `sources` is ready. Returns the earliest time at which their
    /// data may have arrived.
    pub(super) fn wait(&mut self, until: Time, sources: &mut [PollFd<'_>]) -> io::Result<Time> {
        let mut before = self.clock.now();
        loop {
            let left = until.since(before);
            self.settle(before);
            let sleep = if self.has_to_rest(sources)? {
                // Nothing ends this sleep early.
                ready_within(&mut [], REST)?;
                Duration::ZERO
            } else if before < self.poll_until {
                Duration::ZERO
            } else {
                left - (self.lateness + SHORTEST_SLEEP)
            };
            let ready = ready_within(sources, sleep)?;
            let after = self.clock.now();
            let took = after.since(before);
            let slept = took > AT_ONCE && !sleep.is_zero();
            if slept || took >= REST {
                self.slept += took;
            }
            if slept && !ready {
                self.learn(took - sleep);
            }
            if ready {
                self.poll_until = after + SOON;
            }
            let since = if slept { after } else { self.looked };
            self.looked = after;
            if ready || after >= until {
                return Ok(since);
            }
            before = after;
        }
    }

    fn has_to_rest(&self, sources: &mut [PollFd<'_>]) -> io::Result<bool> {
        if self.working.is_zero() {
            return Ok(true);
        }
        Ok(self.watching.is_zero() && !ready_within(sources, Duration::ZERO)?)
    }

    /// Updates the credits, which grow with time and shrink with the time awake.
    fn settle(&mut self, now: Time) {
        let passed = now.since(self.settled);
        let spent = passed - self.slept;
        for (credit, part) in [(&mut self.watching, WATCHING), (&mut self.working, WORKING)] {
            let earned = Duration::from_nanos(passed.as_nanos() * part / 100);
            *credit = (*credit + earned).min(LARGEST_CREDIT) - spent;
        }
        (self.settled, self.slept) = (now, Duration::ZERO);
    }

    /// Updates the lateness: quickly up, slowly down, so that it covers most sleeps.
    fn learn(&mut self, late: Duration) {
        let (now, late) = (self.lateness.as_nanos(), late.as_nanos());
        let next = if late > now {
            now + (late - now) / 4
        } else {
            now - (now - late) / 32
        };
        self.lateness = Duration::from_nanos(next).min(LONGEST_WATCH);
    }
}

/// Returns whether one of `sources` is ready within `span`.
fn ready_within(sources: &mut [PollFd<'_>], span: Duration) -> io::Result<bool> {
    const NANOS: u64 = 1_000_000_000;
    // The kernel may reject a very long timeout.
    let nanos = span.as_nanos().min(3600 * NANOS);
    let timeout = Timespec {
        tv_sec: (nanos / NANOS) as i64,
        tv_nsec: (nanos % NANOS) as i64,
    };
    match poll(sources, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waiter() -> WakeUpLatency {
        // The clock is zero until far in the future, so nothing here depends on it.
        let mut waiter = WakeUpLatency::new(Clock::since(u64::MAX));
        waiter.settled = Time::ZERO;
        waiter
    }

    proptest! {
        #[test]
        fn busy_waiting_is_limited_to_its_share(spans in prop::collection::vec((0_u64..1_000_000, 0_u64..1_000_000), 1..100)) {
            let mut waiter = waiter();
            let (mut now, mut awake) = (0, 0);
            for (busy, asleep) in spans {
                now += busy + asleep;
                awake += busy;
                waiter.slept = Duration::from_nanos(asleep);
                waiter.settle(Time::from_nanos(now));
                prop_assert!(waiter.watching <= LARGEST_CREDIT && waiter.working <= LARGEST_CREDIT);
                // Either the time awake is within the credit, or the thread has to rest.
                let allowed = now * WORKING / 100 + LARGEST_CREDIT.as_nanos();
                prop_assert!(awake <= allowed || waiter.working.is_zero());
            }
        }

        #[test]
        fn the_learned_lateness_stays_within_the_observed_range(lates in prop::collection::vec(0_u64..200_000, 1..200)) {
            let mut waiter = waiter();
            let (low, high) = (*lates.iter().min().unwrap(), *lates.iter().max().unwrap());
            let start = waiter.lateness.as_nanos();
            for late in lates {
                waiter.learn(Duration::from_nanos(late));
                let now = waiter.lateness.as_nanos();
                prop_assert!(now <= LONGEST_WATCH.as_nanos());
                prop_assert!(now >= low.min(start).min(LONGEST_WATCH.as_nanos()) && now <= high.max(start));
            }
        }
    }

    #[test]
    fn a_time_in_the_past_is_not_waited_for() {
        let mut waiter = waiter();
        let since = waiter.wait(Time::ZERO, &mut []).unwrap();
        assert_eq!(since, Time::ZERO);
    }
}
