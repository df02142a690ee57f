//! Processor time of this process.

use std::mem::MaybeUninit;

use serde::{Deserialize, Serialize};
use weir_units::Duration;

/// Processor time, by where it was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessorTime {
    /// In the program.
    pub(crate) user: Duration,
    /// In the kernel on the program's behalf.
    pub(crate) system: Duration,
}

impl ProcessorTime {
    /// What all threads of this process have used so far.
    pub(crate) fn now() -> Self {
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

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
        }
    }

    pub(crate) fn total(self) -> Duration {
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
    fn grows_with_work() {
        let before = ProcessorTime::now();
        let mut block = crate::payload::block().to_vec();
        while ProcessorTime::now().since(before).total() < Duration::from_millis(5) {
            block.reverse();
        }
        assert!(ProcessorTime::now().since(before).total() >= Duration::from_millis(5));
    }
}
