//! Which deadlines are exact, and which wait for the kernel's next tick.
//!
//! A timer of its own costs an interrupt and a wake-up; one at the kernel's tick costs nothing, as
//! the kernel wakes there anyway. So the deadlines that come only where something is late (probe
//! timeouts, delayed ACKs, idle and closing periods) are rounded up to the tick. Where packets get
//! lost, the end of a transfer waits for these deadlines: for some packets after a loss, while a probe
//! is unanswered, and while there are standby paths, probe timeouts and ACKs are exact. A probe alone is
//! no loss: it may follow a pause of the other host.

use weir_units::{Duration, Time};

/// The number of ack-eliciting packets for which deadlines are exact after a loss. Where one flight in
/// fifty loses packets, as in an incast, they nearly always are.
pub(crate) const EXACT_PACKETS: u32 = 1024;

/// The rounding of deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Precision {
    /// The kernel's tick; zero if every deadline is exact.
    tick: Duration,
    /// For how many more packets probe timeouts and ACKs are exact.
    exact_packets: u32,
    /// Whether the endpoint is to learn of a loss.
    loss_to_report: bool,
    /// Whether they are exact because a probe has been sent and nothing been acknowledged since.
    pub(crate) is_probing: bool,
    /// Whether they are exact at any time: failed paths must be detected soon.
    pub(crate) has_standby: bool,
}

impl Precision {
    /// `has_losses`: another connection of the endpoint has lost packets.
    pub(crate) fn new(tick: Duration, has_losses: bool) -> Self {
        Self {
            tick,
            exact_packets: if has_losses { EXACT_PACKETS } else { 0 },
            ..Self::default()
        }
    }

    /// Returns how late a deadline can be by rounding.
    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    /// Records a loss.
    pub(crate) fn on_loss(&mut self) {
        // Losses come in groups.
        self.loss_to_report |= self.exact_packets < EXACT_PACKETS / 2;
        self.exact_packets = EXACT_PACKETS;
    }

    /// Records an ack-eliciting packet.
    pub(crate) fn on_sent(&mut self) {
        self.exact_packets = self.exact_packets.saturating_sub(1);
    }

    /// Whether the endpoint is to learn of a loss.
    #[inline]
    pub(crate) fn has_loss_to_report(&self) -> bool {
        self.loss_to_report
    }

    /// Returns whether the endpoint is to learn of a loss, once.
    pub(crate) fn take_loss_to_report(&mut self) -> bool {
        std::mem::take(&mut self.loss_to_report)
    }

    /// Whether deadlines are exact without a loss.
    pub(crate) fn is_always_exact(&self) -> bool {
        self.tick.is_zero() || self.has_standby
    }

    /// Whether probe timeouts and ACKs are exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_always_exact() || self.is_probing || self.exact_packets > 0
    }

    /// Rounds a deadline up to the tick.
    pub(crate) fn round(&self, deadline: Time) -> Time {
        let tick = self.tick.as_nanos();
        if tick == 0 {
            return deadline;
        }
        let ticks = deadline.as_nanos().div_ceil(tick);
        ticks.checked_mul(tick).map_or(Time::MAX, Time::from_nanos)
    }

    /// Rounds the deadline of a probe timeout or an ACK, unless it is exact.
    pub(crate) fn round_unless_exact(&self, deadline: Time) -> Time {
        if self.is_exact() {
            deadline
        } else {
            self.round(deadline)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(4);

    const fn ms(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn deadlines_are_rounded_up_to_the_tick() {
        let precision = Precision::new(TICK, false);
        for (deadline, rounded) in [(0, 0), (1, 4), (4, 4), (5, 8)] {
            assert_eq!(precision.round(ms(deadline)), ms(rounded));
            assert_eq!(precision.round_unless_exact(ms(deadline)), ms(rounded));
        }
        assert_eq!(precision.round(Time::MAX), Time::MAX);
        assert_eq!(Precision::default().round(ms(5)), ms(5), "no tick");
    }

    #[test]
    fn after_a_loss_and_with_standby_paths_probe_timeouts_and_acks_are_exact() {
        let mut precision = Precision::new(TICK, false);
        precision.on_loss();
        for _ in 0..EXACT_PACKETS {
            assert_eq!(precision.round_unless_exact(ms(13)), ms(13));
            assert_eq!(precision.round(ms(13)), ms(16));
            precision.on_sent();
        }
        assert!(!precision.is_exact());
        precision.is_probing = true;
        assert!(precision.is_exact());
        precision.is_probing = false;
        precision.has_standby = true;
        assert!(precision.is_exact() && precision.is_always_exact());
        assert!(Precision::new(TICK, true).is_exact());
    }

    #[test]
    fn losses_that_come_together_are_reported_once() {
        let mut precision = Precision::new(TICK, false);
        assert!(!precision.take_loss_to_report());
        precision.on_loss();
        precision.on_loss();
        assert!(precision.take_loss_to_report() && !precision.take_loss_to_report());
        precision.on_sent();
        precision.on_loss();
        assert!(!precision.take_loss_to_report());
        (0..EXACT_PACKETS).for_each(|_| precision.on_sent());
        precision.on_loss();
        assert!(precision.take_loss_to_report());
    }
}
