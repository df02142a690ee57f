//! The most jobs that one machine can finish in time: J. M. Moore, "An n Job, One Machine Sequencing
//! Algorithm for Minimizing the Number of Late Jobs", Management Science 15(1), 1968 (Moore–Hodgson).

mod preemptive;

use std::collections::BinaryHeap;

use weir_units::{ByteSize, Duration, Rate};

pub use preemptive::{ReleasedJob, most_in_time_preemptive};

/// Bytes to carry by a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The remaining bytes.
    pub size: ByteSize,
    /// The remaining time.
    pub due: Duration,
}

/// Chooses as many jobs as a link of this rate can finish in time, one after the other in the order of
/// their deadlines. `jobs` are in that order; the result has one flag per job: whether it is chosen.
///
/// No schedule finishes more of them, however the link is shared: this is the optimum for comparisons.
/// It takes n log n steps.
///
/// ```
/// use weir_sed::schedule::{Job, most_in_time};
/// use weir_units::{ByteSize, Duration, Rate};
///
/// // A byte takes 8 ns.
/// let job = |bytes, micros| Job { size: ByteSize::from_bytes(bytes), due: Duration::from_micros(micros) };
/// let jobs = [job(100_000, 1000), job(50_000, 1100), job(50_000, 1200)];
/// // The first alone, or the other two.
/// assert_eq!(most_in_time(&jobs, Rate::from_gbps(1)), [false, true, true]);
/// ```
pub fn most_in_time(jobs: &[Job], rate: Rate) -> Vec<bool> {
    let mut chosen = Vec::new();
    JobScheduler::default().choose(jobs.iter().copied(), rate, &mut chosen);
    chosen
}

/// Chooses jobs with reused buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobScheduler {
    /// The jobs chosen so far, the largest on top.
    sizes: BinaryHeap<(ByteSize, usize)>,
}

impl JobScheduler {
    /// As [`most_in_time`]; the result replaces the contents of `chosen`.
    pub(crate) fn choose(
        &mut self,
        jobs: impl Iterator<Item = Job>,
        rate: Rate,
        chosen: &mut Vec<bool>,
    ) {
        let sizes = &mut self.sizes;
        sizes.clear();
        chosen.clear();
        let mut total = ByteSize::ZERO;
        for (index, job) in jobs.enumerate() {
            chosen.push(true);
            sizes.push((job.size, index));
            // A sum of untrusted sizes may overflow: the job is late then in any case.
            total = total.checked_add(job.size).unwrap_or(ByteSize::MAX);
            while !rate.moves(total, job.due)
                && let Some((size, largest)) = sizes.pop()
            {
                total = total.checked_sub(size).unwrap_or(ByteSize::ZERO);
                if let Some(chosen) = chosen.get_mut(largest) {
                    *chosen = false;
                }
                // The saturated sum above may have been too small.
                if sizes.is_empty() {
                    total = ByteSize::ZERO;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE: Rate = Rate::from_gbps(8);

    fn job((size, due): (u64, u64)) -> Job {
        Job {
            size: ByteSize::from_bytes(size),
            due: Duration::from_nanos(due),
        }
    }

    /// At 8 Gbit/s a byte takes a nanosecond.
    fn feasible(jobs: &[Job], chosen: impl Fn(usize) -> bool) -> bool {
        let mut total = 0;
        jobs.iter().enumerate().all(|(index, job)| {
            if !chosen(index) {
                return true;
            }
            total += job.size.bytes();
            total <= job.due.as_nanos()
        })
    }

    #[test]
    fn the_papers_large_scale_with_short_deadlines() {
        // 100 flows of five sizes; a perfect schedule of 1 Gbit/s with its headers meets 82.
        let sizes = [20_000, 60_000, 100_000, 140_000, 200_000];
        let jobs: Vec<_> = sizes
            .into_iter()
            .zip([20, 30, 40, 50, 60])
            .flat_map(|(bytes, millis)| {
                std::iter::repeat_n(
                    Job {
                        size: ByteSize::from_bytes(bytes),
                        due: Duration::from_millis(millis),
                    },
                    20,
                )
            })
            .collect();
        let rate = Rate::from_gbps(1).mul_f64(1460.0 / 1538.0);
        let met = most_in_time(&jobs, rate).into_iter().filter(|met| *met);
        assert_eq!(met.count(), 82);
    }

    #[test]
    fn oversized_jobs_are_late() {
        let huge = job((u64::MAX, 100));
        assert_eq!(
            most_in_time(&[huge, huge, job((50, 200))], RATE),
            [false, false, true]
        );
        assert_eq!(most_in_time(&[job((1, 0))], RATE), [false]);
        assert!(most_in_time(&[], RATE).is_empty());
    }

    proptest! {
        #[test]
        fn the_schedule_finishes_the_most_jobs_in_time(mut jobs in prop::collection::vec((1_u64..50, 1_u64..120), 0..9)) {
            jobs.sort_by_key(|(_, due)| *due);
            let jobs: Vec<_> = jobs.into_iter().map(job).collect();
            let chosen = most_in_time(&jobs, RATE);
            prop_assert!(feasible(&jobs, |index| chosen[index]));
            let count = chosen.iter().filter(|chosen| **chosen).count();
            let best = (0_u32..1 << jobs.len())
                .filter(|choice| feasible(&jobs, |index| choice >> index & 1 == 1))
                .map(u32::count_ones)
                .max();
            prop_assert_eq!(best, Some(count as u32));
        }
    }
}
