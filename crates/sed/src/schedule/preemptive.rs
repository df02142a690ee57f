//! The most jobs in time where they begin at different times, and may be interrupted:
//! 1 | pmtn, r_j | Σ U_j in the notation of scheduling theory.

use weir_units::{ByteSize, Duration, Rate};

/// Bytes to carry from one time on by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReleasedJob {
    /// When it can begin at the earliest.
    pub release: Duration,
    /// The time by which it is to be complete, on the same clock.
    pub due: Duration,
    /// Its bytes.
    pub size: ByteSize,
}

/// The most steps of a search: some tenths of a second.
const MOST_STEPS: u32 = 200_000;

/// Returns how many jobs a link of this rate can finish in time at most, one at a time and with
/// interruptions; `None` if the search takes too long, which needs some twenty jobs that all differ.
///
/// A set of jobs can be finished in time if the earliest deadline first does so (Horn 1974). The search
/// adds jobs to such sets (branch and bound); of equal jobs it takes the first ones.
///
/// ```
/// use weir_sed::schedule::{ReleasedJob, most_in_time_preemptive};
/// use weir_units::{ByteSize, Duration, Rate};
///
/// // A byte takes 8 ns. The long job is interrupted by the short one.
/// let job = |micros, due, bytes| ReleasedJob {
///     release: Duration::from_micros(micros),
///     due: Duration::from_micros(due),
///     size: ByteSize::from_bytes(bytes),
/// };
/// let jobs = [job(0, 1300, 100_000), job(200, 700, 50_000), job(200, 700, 50_000)];
/// assert_eq!(most_in_time_preemptive(&jobs, Rate::from_gbps(1)), Some(2));
/// ```
pub fn most_in_time_preemptive(jobs: &[ReleasedJob], rate: Rate) -> Option<usize> {
    let mut jobs: Vec<_> = jobs
        .iter()
        .map(|job| Task {
            release: job.release,
            due: job.due,
            left: rate.time_for(job.size),
        })
        .collect();
    // Short jobs first: the first sets are large then, and bound the search.
    jobs.sort_by_key(|job| (job.left, job.due, job.release));
    let mut search = Search {
        jobs: &jobs,
        set: Vec::new(),
        best: 0,
        steps: 0,
    };
    search.extend(0, None).then_some(search.best)
}

/// A job, by the time that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Task {
    release: Duration,
    due: Duration,
    left: Duration,
}

struct Search<'a> {
    jobs: &'a [Task],
    set: Vec<Task>,
    best: usize,
    steps: u32,
}

impl Search<'_> {
    /// Tries the jobs from `next` on; `excluded` is the last one that was left out. Returns `false` if it
    /// has taken too long.
    fn extend(&mut self, next: usize, excluded: Option<Task>) -> bool {
        self.steps += 1;
        self.best = self.best.max(self.set.len());
        let Some(job) = self.jobs.get(next).copied() else {
            return true;
        };
        if self.set.len() + self.jobs.len() - next <= self.best {
            return true;
        }
        if self.steps > MOST_STEPS {
            return false;
        }
        if excluded != Some(job) {
            self.set.push(job);
            let goes_on = !is_feasible(&self.set) || self.extend(next + 1, excluded);
            self.set.pop();
            if !goes_on {
                return false;
            }
        }
        self.extend(next + 1, Some(job))
    }
}

/// Whether the earliest deadline first finishes all of these in time.
fn is_feasible(set: &[Task]) -> bool {
    let mut tasks = set.to_vec();
    tasks.sort_by_key(|task| task.release);
    let mut now = Duration::ZERO;
    while !tasks.is_empty() {
        let released = |task: &Task| task.release <= now;
        let urgent = (0..tasks.len())
            .filter(|index| released(&tasks[*index]))
            .min_by_key(|index| tasks[*index].due);
        let next_release = tasks
            .iter()
            .map(|task| task.release)
            .filter(|release| *release > now)
            .min();
        let Some(index) = urgent else {
            now = next_release.unwrap_or(now);
            continue;
        };
        let Some(task) = tasks.get_mut(index) else {
            return false;
        };
        let until = next_release.map_or(now + task.left, |next| next.min(now + task.left));
        let served = until.abs_diff(now);
        task.left = task.left.checked_sub(served).unwrap_or(Duration::ZERO);
        now = until;
        if task.left.is_zero() {
            if now > task.due {
                return false;
            }
            tasks.remove(index);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Job, most_in_time};

    /// A byte takes a nanosecond.
    const RATE: Rate = Rate::from_gbps(8);

    fn job((release, due, size): (u64, u64, u64)) -> ReleasedJob {
        ReleasedJob {
            release: Duration::from_nanos(release),
            due: Duration::from_nanos(release + due),
            size: ByteSize::from_bytes(size),
        }
    }

    #[test]
    fn many_equal_jobs_are_no_long_search() {
        let mut jobs = vec![job((0, 500, 20)); 40];
        jobs.extend(vec![job((100, 50, 20)); 40]);
        // 25 by 500, of which two within 100 to 150.
        assert_eq!(most_in_time_preemptive(&jobs, RATE), Some(25));
    }

    /// Nanosecond by nanosecond.
    fn finishes(jobs: &[ReleasedJob], chosen: impl Fn(usize) -> bool) -> bool {
        let mut left: Vec<u64> = jobs.iter().map(|job| job.size.bytes()).collect();
        for now in 0..400 {
            let open = |index: &usize| {
                chosen(*index) && left[*index] > 0 && jobs[*index].release.as_nanos() <= now
            };
            let urgent = (0..jobs.len())
                .filter(open)
                .min_by_key(|index| jobs[*index].due);
            if let Some(index) = urgent {
                left[index] -= 1;
                if left[index] == 0 && now + 1 > jobs[index].due.as_nanos() {
                    return false;
                }
            }
        }
        (0..jobs.len()).all(|index| !chosen(index) || left[index] == 0)
    }

    proptest! {
        #[test]
        fn no_choice_is_better(jobs in prop::collection::vec((0_u64..60, 1_u64..80, 1_u64..30), 0..8)) {
            let jobs: Vec<_> = jobs.into_iter().map(job).collect();
            let best = (0_u32..1 << jobs.len())
                .filter(|choice| finishes(&jobs, |index| choice >> index & 1 == 1))
                .map(u32::count_ones)
                .max()
                .unwrap() as usize;
            prop_assert_eq!(most_in_time_preemptive(&jobs, RATE), Some(best));
        }

        #[test]
        fn equal_starts_give_moore_and_hodgson(mut jobs in prop::collection::vec((1_u64..120, 1_u64..50), 0..10)) {
            jobs.sort_unstable();
            let released: Vec<_> = jobs.iter().map(|(due, size)| job((0, *due, *size))).collect();
            let at_once: Vec<_> = released.iter().map(|job| Job { size: job.size, due: job.due }).collect();
            let met = most_in_time(&at_once, RATE).into_iter().filter(|met| *met).count();
            prop_assert_eq!(most_in_time_preemptive(&released, RATE), Some(met));
        }
    }
}
