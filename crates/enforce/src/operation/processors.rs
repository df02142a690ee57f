//! How busy this machine's processors are.

/// Measures the busy part of all processors between two looks, from `/proc/stat` (proc_stat(5)).
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorUse {
    busy: u64,
    all: u64,
}

/// Where the time is.
const FILE: &str = "/proc/stat";

impl ProcessorUse {
    /// Begins to measure.
    pub fn begin() -> Self {
        read().unwrap_or_default()
    }

    /// Returns the busy part since the last look, from 0 to 1; `None` if that is not known.
    pub fn look(&mut self) -> Option<f64> {
        let now = read()?;
        let (busy, all) = (
            now.busy.saturating_sub(self.busy),
            now.all.saturating_sub(self.all),
        );
        *self = now;
        (all > 0).then(|| busy as f64 / all as f64)
    }
}

fn read() -> Option<ProcessorUse> {
    parse(&std::fs::read_to_string(FILE).ok()?)
}

/// Reads the line of all processors: user, nice, system, idle, iowait, irq, softirq, steal.
fn parse(text: &str) -> Option<ProcessorUse> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers = line.split_whitespace().take(8).map(str::parse::<u64>);
    let numbers: Vec<_> = numbers.collect::<Result<_, _>>().ok()?;
    let all = numbers.iter().sum();
    let idle: u64 = numbers.get(3..5)?.iter().sum();
    let busy = u64::saturating_sub(all, idle);
    Some(ProcessorUse { busy, all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_waits_for_disks_are_not_busy() {
        let text = "cpu  10 20 30 40 50 1 2 3 7 7\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let read = parse(text).unwrap();
        assert_eq!((read.busy, read.all), (66, 156));
        assert!(parse("intr 1\n").is_none() && parse("cpu  1 x\n").is_none());
    }
}
