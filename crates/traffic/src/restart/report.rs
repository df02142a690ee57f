//! What a storm did to the calls.

use weir_units::Duration;

use super::Plan;
use crate::calls::error::Error;
use crate::calls::statistics::Summary;
use crate::transport::Start;

/// The span of one p99 after the restart.
const WINDOW: Duration = Duration::from_millis(100);
/// Calls that arrive in this time before the kill do not count as undisturbed.
const DISTURBED: Duration = Duration::from_millis(100);
/// p99 is back when it is at most this many times what it was before.
const BACK: u64 = 2;

/// What a client learned of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    /// The answer was another call's.
    Wrong,
    /// It has failed and was not executed.
    No,
    /// It has failed and may have been executed.
    Maybe,
    /// There was no room for it, or no time left.
    NotStarted,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) number: u64,
    /// From the beginning of the storm.
    pub(super) arrival: Duration,
    /// From the arrival.
    pub(super) elapsed: Duration,
    pub(super) outcome: Outcome,
    pub(super) start: Option<Start>,
}

impl Sample {
    /// Returns the time of an answered call in nanoseconds; one without an answer takes forever.
    fn nanoseconds(&self) -> u64 {
        match self.outcome {
            Outcome::Answered => self.elapsed.as_nanos(),
            _ => u64::MAX,
        }
    }
}

/// The times of the restart, from the beginning of the storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// When the server was killed.
    pub killed: Duration,
    /// When the new server listened.
    pub listening: Duration,
}

/// Numbers of calls by their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls with an answer.
    pub answered: u64,
    /// Calls that failed and certainly were not executed.
    pub no: u64,
    /// Calls that failed and may have been executed.
    pub maybe: u64,
    /// Calls that the clients did not start: too many were in progress, or the deadline had passed.
    pub not_started: u64,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Answered => &mut self.answered,
            Outcome::No => &mut self.no,
            Outcome::Maybe | Outcome::Wrong => &mut self.maybe,
            Outcome::NotStarted => &mut self.not_started,
        } += 1;
    }

    /// Returns the number of all calls.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.answered + self.no + self.maybe + self.not_started
    }
}

/// What must never happen, and how often it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    /// Calls that were executed more than once.
    pub twice: u64,
    /// Calls that were answered and not executed.
    pub missing: u64,
    /// Calls that were executed although they failed with *No* or were not started.
    pub executed_no: u64,
    /// Calls with the answer of another one.
    pub wrong: u64,
}

/// The times of the calls that arrived in a span. Those without an answer take forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The median; `None` if that call has no answer.
    pub median: Option<Duration>,
    /// The time that 99 % of the calls do not exceed; `None` if that call has no answer.
    pub p99: Option<Duration>,
}

impl Times {
    fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Self> {
        let mut nanoseconds: Vec<u64> = samples.map(Sample::nanoseconds).collect();
        let summary = Summary::of(&mut nanoseconds)?;
        let answered = |time: Duration| (time.as_nanos() < u64::MAX).then_some(time);
        Some(Self {
            median: answered(summary.median()),
            p99: answered(summary.p99()),
        })
    }
}

/// The result of a storm. Periods are those of the calls' arrivals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// When the server was killed, and the new one listened.
    pub restart: Restart,
    /// Calls that arrived before the kill.
    pub before: Counts,
    /// Calls that arrived while there was no server.
    pub between: Counts,
    /// Calls that arrived when the new server listened.
    pub after: Counts,
    /// Calls that failed with *Maybe* and were executed.
    pub maybe_executed: u64,
    /// What must never happen.
    pub violations: Violations,
    /// The times before the kill; `None` if no call arrived then.
    pub times_before: Option<Times>,
    /// The times after the restart in windows of 100 ms, up to the end of the arrivals.
    pub windows: Vec<Option<Times>>,
    /// The time from the new server's first moment to the end of the first window whose p99 is at most twice
    /// what it was before; `None` if there is none.
    pub back: Option<Duration>,
    /// The windows from then on whose p99 is higher.
    pub relapses: usize,
    /// Full handshakes of calls that ended after the restart.
    pub full_handshakes: u64,
    /// Resumed handshakes of calls that ended after the restart.
    pub resumed_handshakes: u64,
}

impl Report {
    /// Compares what the clients learned with what the servers executed. The clients' first calls, before
    /// the storm, were answered.
    pub(super) fn new(
        plan: &Plan,
        samples: &[Sample],
        executed: &[u64],
        restart: Restart,
    ) -> Result<Self, Error> {
        let mut times_executed = vec![0_u32; plan.clients + samples.len()];
        for number in executed {
            let count = usize::try_from(*number)
                .ok()
                .and_then(|number| times_executed.get_mut(number));
            let problem = || Error::transport("comparing the calls", "one that nobody made");
            *count.ok_or_else(problem)? += 1;
        }
        let Restart { killed, listening } = restart;
        let mut report = Self {
            restart,
            before: Counts::default(),
            between: Counts::default(),
            after: Counts::default(),
            maybe_executed: 0,
            violations: Violations {
                twice: times_executed.iter().filter(|count| **count > 1).count() as u64,
                missing: times_executed[..plan.clients]
                    .iter()
                    .filter(|count| **count == 0)
                    .count() as u64,
                ..Violations::default()
            },
            times_before: Times::of(
                samples
                    .iter()
                    .filter(|sample| sample.arrival + DISTURBED < killed),
            ),
            windows: windows(plan, samples, listening),
            back: None,
            relapses: 0,
            full_handshakes: 0,
            resumed_handshakes: 0,
        };
        for sample in samples {
            report.add(sample, times_executed[sample.number as usize] > 0);
        }
        let before = report.times_before.and_then(|times| times.p99);
        if let Some(limit) = before.map(|p99| p99 * BACK) {
            report.find_back(limit);
        }
        Ok(report)
    }

    fn add(&mut self, sample: &Sample, was_executed: bool) {
        let Restart { killed, listening } = self.restart;
        let period = match sample.arrival {
            arrival if arrival < killed => &mut self.before,
            arrival if arrival < listening => &mut self.between,
            _ => &mut self.after,
        };
        period.add(sample.outcome);
        let violations = &mut self.violations;
        match (sample.outcome, was_executed) {
            (Outcome::Answered, false) => violations.missing += 1,
            (Outcome::No | Outcome::NotStarted, true) => violations.executed_no += 1,
            (Outcome::Maybe, true) => self.maybe_executed += 1,
            (Outcome::Wrong, _) => violations.wrong += 1,
            (Outcome::Answered, true)
            | (Outcome::No | Outcome::NotStarted | Outcome::Maybe, false) => {}
        }
        if sample.arrival + sample.elapsed >= listening {
            match sample.start {
                Some(Start::Full) => self.full_handshakes += 1,
                Some(Start::Resumed) => self.resumed_handshakes += 1,
                Some(Start::Known) | None => {}
            }
        }
    }

    /// Finds the first window whose p99 is within the limit, and counts later ones that are not.
    fn find_back(&mut self, limit: Duration) {
        let is_within = |window: &Option<Times>| {
            let p99 = window.and_then(|times| times.p99);
            p99.is_some_and(|p99| p99 <= limit)
        };
        if let Some(first) = self.windows.iter().position(is_within) {
            self.back = Some(WINDOW * (first as u64 + 1));
            let later = self.windows[first..].iter();
            self.relapses = later.filter(|window| !is_within(window)).count();
        }
    }

    /// Returns the counts of all calls.
    #[must_use]
    pub fn all(&self) -> Counts {
        let periods = [self.before, self.between, self.after];
        let sum = |count: fn(&Counts) -> u64| periods.iter().map(count).sum();
        Counts {
            answered: sum(|counts| counts.answered),
            no: sum(|counts| counts.no),
            maybe: sum(|counts| counts.maybe),
            not_started: sum(|counts| counts.not_started),
        }
    }
}

/// Returns the times of each whole window after the restart.
fn windows(plan: &Plan, samples: &[Sample], listening: Duration) -> Vec<Option<Times>> {
    let end = plan.before + plan.after;
    let count = (end - listening).as_nanos() / WINDOW.as_nanos();
    let mut windows = vec![Vec::new(); usize::try_from(count).unwrap_or(0)];
    for sample in samples.iter().filter(|sample| sample.arrival >= listening) {
        let index = (sample.arrival - listening).as_nanos() / WINDOW.as_nanos();
        let window = usize::try_from(index)
            .ok()
            .and_then(|index| windows.get_mut(index));
        if let Some(window) = window {
            window.push(*sample);
        }
    }
    windows
        .iter()
        .map(|window| Times::of(window.iter()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Contestant;
    use super::*;

    const RESTART: Restart = Restart {
        killed: Duration::from_secs(1),
        listening: Duration::from_millis(1050),
    };

    fn plan(clients: usize) -> Plan {
        Plan {
            contestant: Contestant::Dcquic,
            clients,
            rate_per_s: 100.0,
            before: Duration::from_secs(1),
            after: Duration::from_secs(1),
            deadline: Duration::from_secs(5),
            concurrent: 10,
            seed: 1,
        }
    }

    fn call(number: u64, at_ms: u64, took_ms: u64, outcome: Outcome) -> Sample {
        Sample {
            number,
            arrival: Duration::from_millis(at_ms),
            elapsed: Duration::from_millis(took_ms),
            outcome,
            start: Some(Start::Full),
        }
    }

    #[test]
    fn what_must_not_happen_is_found() {
        let samples = [
            call(1, 0, 1, Outcome::Answered),
            call(2, 100, 1, Outcome::Answered),
            call(3, 1010, 1, Outcome::No),
            call(4, 1020, 1, Outcome::Maybe),
            call(5, 1060, 1, Outcome::NotStarted),
            call(6, 1070, 1, Outcome::Wrong),
            call(7, 1080, 1, Outcome::Maybe),
        ];
        let report = Report::new(&plan(1), &samples, &[1, 1, 3, 4, 5, 6], RESTART).unwrap();
        let violations = Violations {
            twice: 1,
            // The meeting of the only client, and a call.
            missing: 2,
            executed_no: 2,
            wrong: 1,
        };
        assert_eq!(report.violations, violations);
        assert_eq!(report.maybe_executed, 1);
        assert_eq!((report.before.answered, report.between.no), (2, 1));
        assert_eq!((report.after.not_started, report.after.maybe), (1, 2));
        assert_eq!(report.all().all(), 7);
        assert_eq!(report.full_handshakes, 3);
        assert!(Report::new(&plan(1), &samples, &[8], RESTART).is_err());
    }

    #[test]
    fn p99_is_back_with_the_first_good_window() {
        let mut samples = Vec::new();
        for at in (0..2000).step_by(10) {
            let (took, outcome) = match at {
                1000..1050 => (0, Outcome::No),
                // The first window has slow calls, the second one that fails.
                1050..1150 => (15, Outcome::Answered),
                1200 => (5, Outcome::Maybe),
                1400 => (11, Outcome::Answered),
                _ => (5, Outcome::Answered),
            };
            samples.push(call(samples.len() as u64, at, took, outcome));
        }
        let report = Report::new(&plan(0), &samples, &[], RESTART).unwrap();
        let before = report.times_before.unwrap();
        assert_eq!(before.p99, Some(Duration::from_millis(5)));
        assert_eq!(report.windows.len(), 9);
        assert_eq!(report.windows[1].unwrap().p99, None);
        assert_eq!(report.back, Some(Duration::from_millis(300)));
        assert_eq!(report.relapses, 1);
    }
}
