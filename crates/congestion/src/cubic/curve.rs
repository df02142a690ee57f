//! The growth function of CUBIC, in packets and seconds (RFC 9438 sections 4.2 to 4.4).

/// RFC 9438 section 4.1: aggressiveness, in packets per second cubed.
pub(crate) const C: f64 = 0.4;
/// RFC 9438 section 4.6: the multiplicative decrease factor.
pub(crate) const BETA: f64 = 0.7;
/// RFC 9438 section 4.3: the additive increase at which Reno with this β is as fast as Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// One congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CubicEpoch {
    c: f64,
    /// The window at the plateau.
    w_max: f64,
    /// The time from the stage's start to the plateau, in seconds.
    k: f64,
    /// The window that Reno would have, where it is a lower bound.
    reno: Option<RenoEstimate>,
}

/// Reno's window after the same reduction (RFC 9438 section 4.3).
#[derive(Clone, Copy, Debug)]
struct RenoEstimate {
    w_est: f64,
    /// The window before the last reduction.
    prior: f64,
}

impl RenoEstimate {
    fn grow(&mut self, windows: f64) {
        let alpha = if self.w_est < self.prior { ALPHA } else { 1.0 };
        self.w_est += alpha * windows;
    }

    /// Linux does not speed up beyond the window before the last reduction.
    fn grow_as_linux(&mut self, windows: f64) {
        self.w_est += ALPHA * windows;
    }
}

impl CubicEpoch {
    /// Starts a stage at `cwnd` with the plateau at `w_max` and the window before the last
    /// reduction at `prior`. If `cwnd` is not below the plateau (after slow start without a
    /// congestion event, or a timeout), the stage starts on it: K = 0 (RFC 9438 section 4.10).
    pub(crate) fn new(c: f64, cwnd: f64, w_max: f64, prior: f64) -> Self {
        let (w_max, k) = if cwnd < w_max {
            (w_max, ((w_max - cwnd) / c).cbrt())
        } else {
            (cwnd, 0.0)
        };
        Self {
            c,
            w_max,
            k,
            reno: Some(RenoEstimate { w_est: cwnd, prior }),
        }
    }

    /// Returns the same stage without the Reno-friendly region.
    pub(crate) fn without_reno(self) -> Self {
        Self { reno: None, ..self }
    }

    /// Returns `W_cubic(t) = C (t − K)³ + W_max`, `t` seconds into the stage.
    pub(crate) fn w_cubic(&self, t: f64) -> f64 {
        self.c * (t - self.k).powi(3) + self.w_max
    }

    /// Returns the curve's target window `t` seconds into the stage, as Linux computes it. The
    /// distance from the plateau is truncated to whole packets, so that a window reaches the
    /// plateau early and leaves it late. Returns Reno's window if it is larger.
    pub(crate) fn whole_target(&mut self, t: f64, cwnd: f64, acked: f64) -> f64 {
        let distance = (self.c * (t - self.k).abs().powi(3)).floor();
        let target = if t < self.k {
            self.w_max - distance
        } else {
            self.w_max + distance
        };
        let Some(reno) = &mut self.reno else {
            return target;
        };
        reno.grow_as_linux(acked / cwnd);
        target.max(reno.w_est.floor())
    }

    /// Returns the window after `acked` packets were acknowledged `t` seconds into the stage, with
    /// a window of `cwnd` packets and an RTT of `rtt` seconds.
    pub(crate) fn grow(&mut self, t: f64, rtt: f64, cwnd: f64, acked: f64) -> f64 {
        let windows = acked / cwnd;
        if let Some(reno) = &mut self.reno {
            reno.grow(windows);
            let w_est = reno.w_est;
            if self.w_cubic(t) < w_est {
                return cwnd.max(w_est);
            }
        }
        let target = self.w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) * windows.min(1.0)
    }
}
