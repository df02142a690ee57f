//! A barrier for threads that meet every few microseconds.
//!
//! The system's barrier puts threads to sleep, which takes longer than the work between two meetings.
//! This one spins for a while and then yields, so that it also works with more threads than cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Spins before the first yield, if each thread can have a core.
const SPINS: u32 = 1000;

/// A meeting point of a number of threads.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// The number of meetings so far.
    meetings: AtomicUsize,
    is_broken: AtomicBool,
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
                .store(meeting.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut spins = 0;
        while self.meetings.load(Ordering::Acquire) == meeting {
            if self.is_broken.load(Ordering::Relaxed) {
                return false;
            }
            if spins < self.spins {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        true
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::Relaxed);
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
