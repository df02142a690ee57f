//! How long the links of ports had nothing to send.

use std::collections::BTreeMap;

use weir_fabric::{EgressPort, Packet, PacketCount, PortIndex};
use weir_units::{Duration, Time};

/// The links of a switch, as they were last seen.
#[derive(Debug, Default)]
pub(super) struct LinkMonitor(BTreeMap<PortIndex, LinkUse>);

/// What a link had to send.
#[derive(Clone, Copy, Debug)]
struct LinkUse {
    at: Time,
    /// What it had been given until then.
    accepted: PacketCount,
    /// How long that would keep it busy from then on.
    busy_for: Duration,
}

impl LinkMonitor {
    /// Forgets links for which nothing is in flight: that they are idle is no lack of windows.
    pub(super) fn retain(&mut self, mut is_used: impl FnMut(&PortIndex) -> bool) {
        self.0.retain(|port, _| is_used(port));
    }

    /// Returns how long the link of a port had nothing to send since the last call for that port; nothing
    /// at the first one.
    pub(super) fn take_idle<P: Packet + Clone + 'static>(
        &mut self,
        now: Time,
        port: PortIndex,
        egress_port: &EgressPort<P>,
    ) -> Duration {
        let after = LinkUse {
            at: now,
            accepted: egress_port.sent() + egress_port.queue().backlog(),
            busy_for: egress_port.drained_at().since(now),
        };
        let Some(before) = self.0.insert(port, after) else {
            return Duration::ZERO;
        };
        let link = egress_port.link();
        let PacketCount { packets, size } = after.accepted - before.accepted;
        let added = link.rate().time_for(size + link.framing() * packets);
        // At a rate of zero nothing ends.
        let work = before.busy_for.as_nanos().saturating_add(added.as_nanos());
        let busy = work.saturating_sub(after.busy_for.as_nanos());
        let passed = now.since(before.at).as_nanos();
        Duration::from_nanos(passed.saturating_sub(busy))
    }
}
