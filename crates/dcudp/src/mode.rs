//! The two sending modes, and a guard against a peer that keeps switching between them.

use weir_units::{Duration, Time};

/// The sending mode (section III-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Sends at the configured rate, without ACKs: OBS is 0.
    #[default]
    Udp,
    /// Sends at the congestion controller's rate, with one ACK per round trip: OBS is 1.
    Congestion,
}

/// More switches than this in a short time are a violation.
const MOST_SWITCHES: u64 = 64;
/// A receiver needs K² ≥ 4 packets, or some time without any, to detect the end of congestion.
const PACKETS_PER_SWITCH: u64 = 4;
const TIME_PER_SWITCH: Duration = Duration::from_millis(1);

/// A leaky bucket of mode switches, drained by sent packets and by time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SwitchGuard {
    level: u64,
    packets: u64,
    since: Time,
}

impl SwitchGuard {
    pub(crate) fn on_sent(&mut self) {
        self.packets += 1;
    }

    /// Records a mode switch. Returns whether it is plausible.
    pub(crate) fn on_switch(&mut self, now: Time) -> bool {
        let elapsed = now.since(self.since).as_nanos() / TIME_PER_SWITCH.as_nanos();
        let leaked = self.packets / PACKETS_PER_SWITCH + elapsed;
        self.level = self.level.saturating_sub(leaked) + 1;
        self.packets = 0;
        self.since = now;
        self.level <= MOST_SWITCHES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_switches_are_limited_per_packets_sent() {
        let mut guard = SwitchGuard::default();
        for _ in 0..1000 {
            for _ in 0..PACKETS_PER_SWITCH {
                guard.on_sent();
            }
            assert!(guard.on_switch(Time::ZERO));
        }
        let believed = (0..1000)
            .take_while(|_| guard.on_switch(Time::ZERO))
            .count() as u64;
        assert_eq!(believed, MOST_SWITCHES - 1);
        assert!(guard.on_switch(Time::ZERO + Duration::from_secs(1)));
    }
}
