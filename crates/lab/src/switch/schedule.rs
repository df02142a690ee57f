//! Real-time scheduling of the switch's thread.

use std::num::NonZeroU64;

use rustix::thread::set_current_timer_slack;

/// Above all threads of ordinary priority, below the kernel's own threads (50).
const PRIORITY: libc::c_int = 10;

/// Gives the calling thread real-time priority (sched(7), SCHED_FIFO); returns whether that was
/// allowed. If not, sets the smallest timer slack instead.
pub(super) fn raise_priority() -> bool {
    let parameters = libc::sched_param {
        sched_priority: PRIORITY,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters live until the call returns; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, std::ptr::from_ref(&parameters)) };
    if result == 0 {
        return true;
    }
    // With the default timer slack, timers are 50 us late.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    false
}
