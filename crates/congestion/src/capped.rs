//! A wrapper that caps the window and rate of any controller, for an SDN controller's allocation
//! (SED) or an operator's policy.

use weir_units::{ByteSize, Rate, Time};

use crate::{
    AckSample, AlgorithmSpec, Controller, Deadline, LossSample, PacketSent, Snapshot, SpuriousLoss,
};

/// A controller with a capped window and rate. The caps can change at run time.
///
/// While the window cap binds, the inner controller sees an application-limited flow. Its window
/// therefore does not grow beyond the cap and burst out when the cap is lifted.
#[derive(Clone, Debug)]
pub struct CappedController {
    inner: Box<dyn Controller>,
    window_cap: Option<ByteSize>,
    rate_cap: Option<Rate>,
}

impl CappedController {
    /// Wraps `inner`, initially without caps.
    pub fn new(inner: Box<dyn Controller>) -> Self {
        Self {
            inner,
            window_cap: None,
            rate_cap: None,
        }
    }

    /// Caps the window; `None` lifts the cap. Below one packet, the transport sends single paced
    /// packets. A cap of zero counts as one byte.
    pub fn set_window_cap(&mut self, cap: Option<ByteSize>) {
        self.window_cap = cap.map(|cap| cap.max(ByteSize::from_bytes(1)));
    }

    /// Caps the pacing rate; `None` lifts the cap. A cap of zero counts as one bit per second,
    /// because a pacing rate is never zero.
    pub fn set_rate_cap(&mut self, cap: Option<Rate>) {
        self.rate_cap = cap.map(|cap| cap.max(Rate::from_bits_per_second(1)));
    }

    /// Returns the window cap.
    pub fn window_cap(&self) -> Option<ByteSize> {
        self.window_cap
    }

    /// Returns the rate cap.
    pub fn rate_cap(&self) -> Option<Rate> {
        self.rate_cap
    }

    /// Returns the inner controller.
    pub fn inner(&self) -> &dyn Controller {
        &*self.inner
    }
}

impl Controller for CappedController {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn wants_delivery(&self) -> bool {
        self.inner.wants_delivery()
    }

    fn on_sent(&mut self, sent: &PacketSent) {
        self.inner.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let binds = self
            .window_cap
            .is_some_and(|cap| cap <= self.inner.window());
        self.inner.on_ack(&AckSample {
            app_limited: ack.app_limited || binds,
            ..*ack
        });
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.inner.on_loss(loss);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        self.inner.on_spurious_loss(spurious);
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.inner.on_idle_restart(now);
    }

    fn on_deadline(&mut self, deadline: Option<Deadline>) {
        self.inner.on_deadline(deadline);
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        self.inner.on_packet_size(size);
    }

    fn adjustable(&self) -> &'static [&'static str] {
        self.inner.adjustable()
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        let (window, rate) = spec.caps();
        self.set_window_cap(window);
        self.set_rate_cap(rate);
        self.inner.set_parameters(spec);
    }

    fn window(&self) -> ByteSize {
        self.window_cap
            .unwrap_or(ByteSize::MAX)
            .min(self.inner.window())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match (self.rate_cap, self.inner.pacing_rate()) {
            (Some(cap), Some(rate)) => Some(cap.min(rate)),
            (cap, rate) => cap.or(rate),
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{ack, build, packets};

    #[test]
    fn a_window_cap_can_be_set_changed_and_lifted() {
        let mut capped = CappedController::new(build("newreno"));
        assert_eq!(capped.window(), packets(10));
        capped.set_window_cap(Some(packets(4)));
        assert_eq!(capped.window(), packets(4));
        capped.on_ack(&ack(100, 50, 10));
        capped.set_window_cap(None);
        assert_eq!(capped.window(), packets(10));
        capped.on_ack(&ack(200, 150, 10));
        assert_eq!(capped.window(), packets(20));
        capped.set_window_cap(Some(ByteSize::ZERO));
        assert_eq!(capped.window(), ByteSize::from_bytes(1));
    }

    #[test]
    fn the_window_grows_up_to_the_cap() {
        let mut capped = CappedController::new(build("newreno"));
        capped.set_window_cap(Some(packets(35)));
        for round in 1..10 {
            capped.on_ack(&ack(100 * round, 100 * round - 50, 10));
        }
        assert_eq!(capped.window(), packets(35));
        assert_eq!(capped.inner().window(), packets(40));
    }

    #[test]
    fn a_rate_cap_paces_unpaced_controllers_and_slows_paced_ones() {
        let mut capped = CappedController::new(build("newreno"));
        assert_eq!(capped.pacing_rate(), None);
        capped.set_rate_cap(Some(Rate::from_gbps(1)));
        assert_eq!(capped.pacing_rate(), Some(Rate::from_gbps(1)));
        capped.set_rate_cap(Some(Rate::ZERO));
        assert_eq!(capped.pacing_rate(), Some(Rate::from_bits_per_second(1)));
        let mut capped = CappedController::new(build("bbr"));
        let free = capped.pacing_rate();
        capped.set_rate_cap(Some(Rate::from_mbps(1)));
        assert_eq!(capped.pacing_rate(), Some(Rate::from_mbps(1)));
        capped.set_rate_cap(None);
        assert_eq!(capped.pacing_rate(), free);
    }
}
