//! The effect of losses on the window (section 4.2.3.3 of the draft): one round trip of packet
//! conservation, then the old window again. After a timeout the window grows from its minimum.

use weir_units::{ByteSize, Time};

use super::{Bbr, BbrState};
use crate::{AckSample, LossCause, LossSample};

#[derive(Clone, Debug, Default)]
pub(super) struct Recovery {
    /// Start of packet conservation, while it lasts.
    conserving_since: Option<Time>,
    /// Start of the last recovery. Losses of packets sent before it start no further recovery.
    start: Option<Time>,
    /// Bytes lost since the last acknowledgment that have not been subtracted from the window yet.
    lost: ByteSize,
    /// Whether anything was lost since the last acknowledgment.
    saw_loss: bool,
}

impl Recovery {
    pub(super) fn has_losses(&self) -> bool {
        self.saw_loss
    }

    /// `BBRModulateCwndForRecovery`: subtracts losses from the window, and keeps it at the bytes in
    /// flight plus the bytes delivered. Returns whether recovery determines the window.
    pub(super) fn bound(&mut self, ack: &AckSample, cwnd: &mut ByteSize) -> bool {
        *cwnd -= std::mem::take(&mut self.lost);
        self.saw_loss = false;
        if self.conserving_since.is_none() {
            return false;
        }
        if !ack.app_limited {
            *cwnd = (*cwnd).max(ack.in_flight + ack.acked);
        }
        true
    }
}

impl Bbr {
    /// Saves the window before recovery or ProbeRTT reduces it.
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd =
            if self.recovery.conserving_since.is_none() && self.state != BbrState::ProbeRtt {
                self.cwnd
            } else {
                self.prior_cwnd.max(self.cwnd)
            };
    }

    pub(super) fn react_to_loss(&mut self, loss: &LossSample) {
        let known = self
            .recovery
            .start
            .is_some_and(|start| loss.newest_sent <= start);
        if loss.cause == LossCause::Timeout {
            if !known {
                self.save_cwnd();
            }
            self.cwnd = self.min_window();
            self.recovery = Recovery {
                start: Some(loss.now),
                ..Recovery::default()
            };
            return;
        }
        self.recovery.saw_loss = true;
        self.recovery.lost += loss.lost;
        if !known {
            self.save_cwnd();
            self.recovery.start = Some(loss.now);
            self.recovery.conserving_since = Some(loss.now);
            self.cwnd = self.cwnd.min(loss.in_flight.max(self.min_window()));
            // The line above has already subtracted this loss from the window.
            self.recovery.lost = ByteSize::ZERO;
        }
    }

    /// Ends packet conservation once a packet is acknowledged that was sent during it.
    pub(super) fn update_recovery(&mut self, ack: &AckSample) {
        if self
            .recovery
            .conserving_since
            .is_some_and(|since| ack.newest_sent > since)
        {
            self.recovery.conserving_since = None;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
    }

    /// Restores the window after a spurious loss.
    pub(super) fn undo_recovery(&mut self) {
        if self.recovery.start.is_none() {
            return;
        }
        self.recovery.conserving_since = None;
        self.recovery.lost = ByteSize::ZERO;
        if self.state != BbrState::ProbeRtt {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::LossCause;
    use crate::samples::{ack, build, loss, packets, spurious};

    #[test]
    fn the_recovery_window_follows_deliveries_and_is_then_restored() {
        let mut bbr = build("bbr,initial_window=40");
        let mut lost = loss(1_000, 900, 1, LossCause::Acks);
        lost.in_flight = packets(20);
        bbr.on_loss(&lost);
        assert_eq!(bbr.window(), packets(20));
        // Bytes in flight plus bytes delivered: room for as many as were delivered.
        let mut delivered = ack(1_010, 910, 2);
        delivered.in_flight = packets(21);
        bbr.on_ack(&delivered);
        assert_eq!(bbr.window(), packets(23));
        // A packet sent during recovery is acknowledged: recovery ends.
        bbr.on_ack(&ack(1_110, 1_010, 0));
        assert_eq!(bbr.window(), packets(40));
    }

    #[test]
    fn a_timeout_reduces_to_the_minimum_window() {
        let mut bbr = build("bbr,initial_window=40");
        bbr.on_loss(&loss(1_000, 900, 40, LossCause::Timeout));
        assert_eq!(bbr.window(), packets(4));
        bbr.on_ack(&ack(1_110, 1_010, 2));
        assert_eq!(bbr.window(), packets(6));
    }

    #[test]
    fn a_spurious_loss_restores_the_window() {
        let mut bbr = build("bbr,initial_window=40");
        bbr.on_loss(&loss(1_000, 900, 1, LossCause::Acks));
        assert_eq!(bbr.window(), packets(4));
        bbr.on_spurious_loss(&spurious(1_050, 900, 1));
        assert_eq!(bbr.window(), packets(40));
    }
}
