//! Detection of delivery rates that the algorithm limited itself.
//!
//! In ProbeRTT a BBR sender keeps the path nearly empty. The drafts mark the connection as
//! application-limited meanwhile, so that the low rates do not count. Here that mark belongs to the
//! transport, and the algorithm detects its own gap by send times: samples count again for packets
//! that were sent once the gap has left the network.

use weir_units::Time;

use crate::AckSample;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum SelfLimit {
    #[default]
    No,
    /// The path is kept empty.
    Yes,
    /// The path has been refilling since this time; no packet sent since then has been
    /// acknowledged.
    Refilling(Time),
    /// Packets sent up to this time still followed the gap.
    Until(Time),
}

impl SelfLimit {
    /// Returns whether the delivery rate that `ack` measures was limited by the algorithm.
    pub(crate) fn on_ack(&mut self, ack: &AckSample) -> bool {
        match *self {
            Self::No => return false,
            Self::Yes => {}
            Self::Refilling(since) => {
                if ack.newest_sent > since {
                    *self = Self::Until(ack.now);
                }
            }
            Self::Until(end) => {
                if ack.newest_sent > end {
                    *self = Self::No;
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{ack, micros};

    #[test]
    fn the_limit_lasts_until_packets_sent_after_the_gap_are_acknowledged() {
        let mut limited = SelfLimit::default();
        assert!(!limited.on_ack(&ack(100, 50, 1)));
        limited = SelfLimit::Yes;
        assert!(limited.on_ack(&ack(200, 150, 1)));
        limited = SelfLimit::Refilling(micros(300));
        assert!(limited.on_ack(&ack(340, 290, 1)));
        assert!(limited.on_ack(&ack(351, 301, 1)));
        assert!(limited.on_ack(&ack(400, 350, 1)));
        assert!(!limited.on_ack(&ack(402, 352, 1)));
    }
}
