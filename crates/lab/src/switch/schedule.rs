//! What the switch's thread asks of the kernel's scheduler.

use std::num::NonZeroU64;

use rustix::thread::set_current_timer_slack;

/// Above everything that runs at ordinary priority, below the kernel's own threads (50).
const PRIORITY: libc::c_int = 10;

/// Gives the calling thread real-time priority (sched(7), SCHED_FIFO), and tells whether that was
/// allowed. Otherwise its timers at least are as exact as the kernel has them.
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
    // Without it timers are 50 us late, as everybody's are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    false
}
