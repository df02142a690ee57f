//! The results of paper 000, section 4.1, for its private data center: DCQUIC's time savings over
//! TCP + TLS 1.3, each including connection set-up.
//!
//! Its TCP used CUBIC (it calls the combination DCTCP). Its 12.6 ms savings on a 1 Gbps network are
//! due to the implementation rather than to round trips; a rerun with equally optimized sides gives
//! smaller gains.

use crate::calls::driver::Phase;

/// The baseline of the paper's ratios, and of ours.
pub const BASELINE: &str = "tcp-tls";

/// The transport of the paper's ratios.
pub const SUBJECT: &str = "dcquic";

/// Returns the paper's ratio of DCQUIC's time to TCP + TLS 1.3's, if it reports one.
#[must_use]
pub fn ratio(phase: Phase, size_bytes: u64) -> Option<f64> {
    let saved_percent = match (phase, size_bytes) {
        (Phase::Handshake, _) => 73.02,
        (Phase::Fresh, 10_000) => 63.70,
        (Phase::Fresh, 100_000) => 50.92,
        _ => return None,
    };
    Some(1.0 - saved_percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratios_match_the_paper() {
        let rounded = |phase, size| ratio(phase, size).map(|ratio| (ratio * 100.0).round());
        assert_eq!(rounded(Phase::Handshake, 0), Some(27.0));
        assert_eq!(rounded(Phase::Fresh, 10_000), Some(36.0));
        assert_eq!(rounded(Phase::Fresh, 100_000), Some(49.0));
        assert_eq!(rounded(Phase::Established, 10_000), None);
        assert_eq!(rounded(Phase::Fresh, 20_000), None);
    }
}
