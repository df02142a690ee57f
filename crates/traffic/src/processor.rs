//! Processor time of this process, over all its threads.

use std::mem::MaybeUninit;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use weir_units::Duration;

/// Returns the processor time of this process, user and kernel mode together, in nanoseconds.
#[must_use]
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// Processor time in user and kernel mode, at the resolution of the kernel's accounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorTime {
    /// User mode.
    pub user: Duration,
    /// Kernel mode, on the program's behalf.
    pub system: Duration,
}

impl ProcessorTime {
    /// Returns the processor time that this process has used so far.
    #[must_use]
    pub fn now() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is writable memory of the size that the call fills, and all-zero bytes
        // are a valid value of it, should the call fail.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        Self {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
        }
    }

    /// Returns the time used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
        }
    }

    /// Returns the sum.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_grows_with_work() {
        let (before, precise) = (ProcessorTime::now(), processor_time());
        let mut block = vec![0_u8; 1 << 16];
        // What threads on other processors have used since the last tick counts in the precise time only.
        let wanted = Duration::from_millis(100);
        while ProcessorTime::now().since(before).total() < wanted {
            block.reverse();
        }
        assert!(processor_time() - precise >= wanted / 2);
    }
}
