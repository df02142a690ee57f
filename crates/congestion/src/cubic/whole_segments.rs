//! Growth in whole packets, as in Linux (`tcp_cubic.c`, and ns-3's `TcpCubic` after it).
//!
//! The window grows by one packet per step. A step is the number of packets to be acknowledged: the
//! window divided by its distance to the target, both in packets. On the plateau, where RFC 9438
//! holds the window still, it keeps growing by one packet per hundred windows. With windows of a
//! few packets this determines the recovery time.

/// Windows to be acknowledged before a window at its target grows by one packet.
const WINDOWS_ON_PLATEAU: f64 = 100.0;
/// The longest step while no plateau is known, in packets: growth of 5 % per round trip.
const MOST_WITHOUT_PLATEAU: f64 = 20.0;
/// The shortest step, in packets: the window grows by at most half per round trip.
const LEAST: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct WholeSegments {
    /// Packets acknowledged towards the next step.
    acked: f64,
    /// As in ns-3: packets beyond a step are carried over, also after reductions, with one step per
    /// acknowledgment.
    carries_over: bool,
}

impl WholeSegments {
    pub(super) fn new(keeps: bool) -> Self {
        Self {
            acked: 0.0,
            carries_over: keeps,
        }
    }

    /// Returns the packets by which a window of `cwnd` grows towards `target` when `acked` packets
    /// are acknowledged. `on_curve`: whether an earlier loss has set a plateau.
    pub(super) fn grow(&mut self, cwnd: f64, target: f64, acked: f64, on_curve: bool) -> u64 {
        let step = packets_per_step(cwnd, target, on_curve);
        let mut steps = 0;
        // Packets counted at a slower pace are worth one step.
        if self.acked >= step && !self.carries_over {
            self.acked = 0.0;
            steps = 1;
        }
        self.acked += acked;
        let most = if self.carries_over {
            1.0
        } else {
            f64::INFINITY
        };
        let more = (self.acked / step).floor().min(most);
        self.acked -= more * step;
        steps + more as u64
    }

    /// Resets the count after a reduction.
    pub(super) fn on_reduction(&mut self) {
        if !self.carries_over {
            self.acked = 0.0;
        }
    }
}

fn packets_per_step(cwnd: f64, target: f64, on_curve: bool) -> f64 {
    let step = if target > cwnd {
        (cwnd / (target - cwnd)).floor()
    } else {
        WINDOWS_ON_PLATEAU * cwnd
    };
    let most = if on_curve {
        f64::INFINITY
    } else {
        MOST_WITHOUT_PLATEAU
    };
    step.min(most).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_per_step_is_the_window_over_the_distance_to_the_target() {
        assert_eq!(packets_per_step(70.0, 80.0, true), 7.0);
        assert_eq!(packets_per_step(70.0, 200.0, true), 2.0);
        assert_eq!(packets_per_step(70.0, 70.0, true), 7_000.0);
        assert_eq!(packets_per_step(70.0, 60.0, true), 7_000.0);
        assert_eq!(packets_per_step(70.0, 70.0, false), 20.0);
    }

    #[test]
    fn steps_are_taken_as_packets_are_acknowledged() {
        let mut steps = WholeSegments::new(false);
        let grown: Vec<u64> = (0..6).map(|_| steps.grow(70.0, 100.0, 1.0, true)).collect();
        assert_eq!(grown, [0, 1, 0, 1, 0, 1]);
        // An acknowledgment of many packets yields all their steps.
        assert_eq!(steps.grow(70.0, 100.0, 9.0, true), 4);
        // Packets acknowledged on the plateau yield one step.
        steps.on_reduction();
        assert_eq!(steps.grow(70.0, 70.0, 60.0, true), 0);
        assert_eq!(steps.grow(70.0, 71.0, 1.0, true), 0);
        assert_eq!(steps.grow(70.0, 72.0, 1.0, true), 1);
        assert_eq!(steps.grow(71.0, 72.0, 1.0, true), 0);
    }

    #[test]
    fn a_kept_count_catches_up_one_step_per_acknowledgment() {
        let mut steps = WholeSegments::new(true);
        assert_eq!(steps.grow(70.0, 70.0, 20.0, true), 0);
        steps.on_reduction();
        let grown: Vec<u64> = (0..12).map(|_| steps.grow(49.0, 70.0, 1.0, true)).collect();
        assert_eq!(grown, [1; 12].map(|step: u64| step));
        let later: u64 = (0..40).map(|_| steps.grow(49.0, 70.0, 1.0, true)).sum();
        // 72 packets in steps of two: 36 steps, not one per acknowledgment.
        assert!(later < 30, "{later}");
    }
}
