//! Tail loss probes (RFC 8985, section 7): when acknowledgments stop, a probe segment elicits
//! another.

use weir_congestion::{LossCause, LossSample};
use weir_units::{ByteSize, Duration, Time};

use super::{Acknowledgment, Detection, EarlyTimer, Sender};
use crate::counters::StoredCounters;
use crate::scoreboard::SackRange;

/// A probe without an answer yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// The end of the sent data when the probe was sent.
    end: u64,
    /// The data that it retransmitted; `None` for new data.
    resent: Option<Resent>,
    /// The probe has not been sent yet.
    due: bool,
}

#[derive(Clone, Copy, Debug)]
struct Resent {
    bytes: u64,
    /// First send time of the data.
    first_sent: Time,
}

impl Sender {
    /// Sets the timer, if the conditions for a probe hold (RFC 8985, section 7.2).
    #[inline]
    pub(super) fn schedule_tail_probe(&mut self, now: Time) {
        let eligible = self.detection == Detection::Rack
            && self.early == EarlyTimer::Probe
            && self.loss_state.recovery.is_none()
            && self.loss_state.tail_probe.is_none()
            && self.scoreboard.sacked() == 0
            && !self.scoreboard.is_empty();
        if !eligible {
            if self.early == EarlyTimer::Probe {
                self.early_at = Time::MAX;
            }
            return;
        }
        // A single segment may wait for the peer's delayed ACK; Linux adds its minimum RTO.
        let delay = if self.scoreboard.is_single() {
            self.config.min_rto
        } else {
            self.config.early_timer_margin
        };
        let timeout = if self.rtt.sampled {
            self.rtt.smoothed * 2 + delay
        } else {
            self.rtt.rto()
        };
        // The probe precedes the RTO. The delay is never zero, even on a path without delay.
        let at = now + timeout.max(Duration::from_nanos(1));
        self.early_at = at.min(self.rto_at);
    }

    /// Schedules a probe after the timer has expired.
    pub(super) fn on_probe_time(&mut self, now: Time) {
        self.early_at = Time::MAX;
        if self.scoreboard.is_empty() || self.loss_state.tail_probe.is_some() {
            return;
        }
        self.loss_state.tail_probe = Some(TailProbe {
            end: self.nxt,
            resent: None,
            due: true,
        });
        // RFC 8985, section 7.3: the retransmission timer restarts with the probe.
        self.rto_at = self.rtt.deadline(now);
    }

    pub(super) fn is_tail_probe_due(&self) -> bool {
        self.loss_state.tail_probe.is_some_and(|probe| probe.due)
    }

    /// Records that the probe was sent, with new data up to `nxt` or with a retransmission.
    pub(super) fn on_tail_probe_sent(&mut self, resent: Option<(u64, Time)>) {
        let end = self.nxt;
        if let Some(probe) = &mut self.loss_state.tail_probe {
            probe.due = false;
            probe.end = end;
            probe.resent = resent.map(|(bytes, first_sent)| Resent { bytes, first_sent });
        }
    }

    /// Returns whether a duplicate segment was the probe.
    pub(super) fn is_tail_probe(&self, block: SackRange) -> bool {
        self.loss_state
            .tail_probe
            .is_some_and(|probe| probe.resent.is_some() && probe.end == block.end)
    }

    /// RFC 8985, section 7.4.2: if all data covered by the probe is acknowledged without a
    /// duplicate report, the probe has repaired a loss. The loss is reported to the controller.
    pub(super) fn settle_tail_probe(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        advanced: bool,
        counters: &mut StoredCounters,
    ) {
        let Some(probe) = self
            .loss_state
            .tail_probe
            .filter(|probe| self.una >= probe.end)
        else {
            return;
        };
        let duplicate = ack.duplicate.is_some_and(|block| block.end == probe.end);
        let Some(resent) = probe.resent.filter(|_| !duplicate) else {
            self.loss_state.tail_probe = None;
            return;
        };
        if self.una > probe.end {
            self.loss_state.tail_probe = None;
            self.on_repaired(now, resent, counters);
        } else if !advanced && ack.repeats && ack.blocks.is_empty() {
            // Both transmissions have arrived at a peer that does not send D-SACKs.
            self.loss_state.tail_probe = None;
        }
    }

    fn on_repaired(&mut self, now: Time, resent: Resent, counters: &mut StoredCounters) {
        if self.loss_state.recovery.is_some() {
            return;
        }
        counters.rare().lost += ByteSize::from_bytes(resent.bytes);
        self.controller.as_dyn_mut().on_loss(&LossSample {
            now,
            lost: ByteSize::from_bytes(resent.bytes),
            newest_sent: Self::reported_send_time(resent.first_sent),
            cause: LossCause::Acks,
            in_flight: ByteSize::from_bytes(self.scoreboard.in_flight()),
        });
        self.follow_controller();
    }
}
