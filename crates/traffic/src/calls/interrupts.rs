//! Timer interrupts beyond the kernel's tick.
//!
//! A process that programs the clock pays for it twice: in the system call, and when the interrupt
//! stops whatever runs. The second cost appears in no profile of functions, so it is counted here,
//! from `/proc/interrupts`.

use std::fs;
use std::time::Instant;

use rustix::time::{ClockId, clock_getres};
use weir_units::Duration;

/// The row of the timer of each processor, on x86 and on ARM.
const ROWS: [&str; 2] = ["LOC:", "arch_timer"];

/// A reading of the timer interrupts of some processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerInterrupts {
    count: u64,
    at: Instant,
    processors: u64,
}

impl TimerInterrupts {
    /// Reads the interrupts of these processors. `None` without processors, or if the system does not
    /// list them.
    pub(crate) fn read(processors: &[usize]) -> Option<Self> {
        if processors.is_empty() {
            return None;
        }
        let text = fs::read_to_string("/proc/interrupts").ok()?;
        Some(Self {
            count: count(&text, processors)?,
            at: Instant::now(),
            processors: processors.len() as u64,
        })
    }

    /// Returns the interrupts since an earlier reading, without the ticks of busy processors; zero
    /// where the kernel's count has wrapped.
    pub(crate) fn beyond_tick_since(&self, earlier: &Self) -> u64 {
        let tick = clock_getres(ClockId::MonotonicCoarse);
        let tick = Duration::from_nanos(u64::try_from(tick.tv_nsec).unwrap_or(0).max(1));
        let elapsed = Duration::from(self.at - earlier.at);
        let ticks = elapsed.as_nanos() / tick.as_nanos() * self.processors;
        self.count
            .saturating_sub(earlier.count)
            .saturating_sub(ticks)
    }
}

/// Adds the counts of the processors in the timer's row.
fn count(text: &str, processors: &[usize]) -> Option<u64> {
    let mut lines = text.lines();
    let columns: Vec<usize> = lines
        .next()?
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let row = lines.find(|line| ROWS.iter().any(|row| line.contains(row)))?;
    let counts: Vec<u64> = row
        .split_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    let of = |processor: &usize| {
        let column = columns.iter().position(|column| column == processor)?;
        counts.get(column).copied()
    };
    processors.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2\n 24:          1          0  IO-APIC   5-edge\nLOC:   13072044   12538501   Local timer interrupts\n";

    #[test]
    fn the_timers_row_is_read_by_processor() {
        assert_eq!(count(TEXT, &[0]), Some(13_072_044));
        assert_eq!(count(TEXT, &[2]), Some(12_538_501));
        assert_eq!(count(TEXT, &[0, 2]), Some(25_610_545));
        assert_eq!(count(TEXT, &[1]), None, "not online");
        assert_eq!(count("", &[0]), None);
    }

    #[test]
    fn ticks_are_not_counted() {
        let earlier = TimerInterrupts {
            count: 1_000,
            at: Instant::now(),
            processors: 2,
        };
        let later = TimerInterrupts {
            count: 101_000,
            at: earlier.at + std::time::Duration::from_secs(1),
            ..earlier
        };
        let beyond = later.beyond_tick_since(&earlier);
        assert!((98_000..100_000).contains(&beyond), "{beyond}");
        assert_eq!(earlier.beyond_tick_since(&earlier), 0);
    }
}
