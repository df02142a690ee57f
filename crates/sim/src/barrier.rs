//! A barrier for threads that meet every few microseconds.
//!
//! The system's barrier puts threads to sleep, which can take longer than the work between two meetings.
//! This one spins for a while, yields a few times, and sleeps only then: the last thread has no core, or
//! much more to do.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Spins before the first yield, if each thread can have a core: some ten microseconds.
const SPINS: u32 = 1000;
/// Yields before the thread sleeps.
const YIELDS: u32 = 10;

/// A meeting point of a number of threads.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// The number of meetings so far.
    meetings: AtomicUsize,
    is_broken: AtomicBool,
    /// The threads that sleep or are about to.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    end_of_sleep: Condvar,
    spins: u32,
}

/// Breaks the barrier if its thread panics, so that the others do not wait for ever.
#[derive(Debug)]
pub(crate) struct Participant<'b>(pub(crate) &'b Barrier);

impl Barrier {
    pub(crate) fn new(threads: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            meetings: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            end_of_sleep: Condvar::new(),
            spins: if threads <= cores { SPINS } else { 1 },
        }
    }

    /// Waits for all threads. What they have written before, all can read afterwards. Returns whether all
    /// have come: false if one has panicked.
    pub(crate) fn wait(&self) -> bool {
        // No other meeting can begin before this thread has come.
        let meeting = self.meetings.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.meetings
                .store(meeting.wrapping_add(1), Ordering::SeqCst);
            self.wake();
            return true;
        }
        for spin in 0..self.spins + YIELDS {
            if self.meetings.load(Ordering::Acquire) != meeting {
                return true;
            }
            if spin < self.spins {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        self.sleep_during(meeting)
    }

    /// Sleeps until the meeting is over. Returns false if a thread has panicked.
    fn sleep_during(&self, meeting: usize) -> bool {
        let mut sleep = self.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let is_over = loop {
            if self.meetings.load(Ordering::SeqCst) != meeting {
                break true;
            }
            if self.is_broken.load(Ordering::SeqCst) {
                break false;
            }
            let woken = self.end_of_sleep.wait(sleep);
            sleep = woken.unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        is_over
    }

    /// Wakes the threads that sleep. Whoever has not been counted yet sees that it need not sleep.
    fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // Whoever has been counted has the lock until it sleeps.
            drop(self.lock());
            self.end_of_sleep.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::SeqCst);
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_passes_before_all_have_come() {
        for threads in [1, 2, 7] {
            let barrier = Barrier::new(threads);
            let steps = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for round in 1..=500 {
                            steps.fetch_add(1, Ordering::Relaxed);
                            assert!(barrier.wait());
                            assert_eq!(steps.load(Ordering::Relaxed), round * threads);
                            assert!(barrier.wait());
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn threads_that_sleep_are_woken() {
        let barrier = Barrier::new(3);
        std::thread::scope(|scope| {
            for number in 0..3 {
                let barrier = &barrier;
                scope.spawn(move || {
                    for round in 0..20 {
                        if round % 3 == number {
                            std::thread::sleep(std::time::Duration::from_millis(2));
                        }
                        assert!(barrier.wait());
                    }
                });
            }
        });
        assert_eq!(barrier.sleepers.into_inner(), 0);
    }

    #[test]
    fn a_panic_ends_the_wait_of_the_others() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _participant = Participant(&barrier);
                panic!("a thread of this test panics");
            });
            let _participant = Participant(&barrier);
            assert!(!barrier.wait());
            assert!(other.join().is_err());
        });
    }
}
