//! Pacing functions shared by both versions of BBR.

use weir_units::{ByteSize, Duration, Rate};

/// Returns `rate`, but at least `size` per second, so that a mismeasurement cannot stop the flow.
pub(crate) fn at_least_per_second(rate: Rate, size: ByteSize) -> Rate {
    rate.max(Rate::from_size_over(size, Duration::from_secs(1)))
}

/// Returns the pacing rate before there is a bandwidth estimate: `gain` times the initial window
/// per RTT. An unknown RTT counts as one millisecond.
pub(crate) fn initial_rate(window: ByteSize, rtt: Option<Duration>, gain: f64) -> Rate {
    let rtt = rtt.unwrap_or(Duration::from_millis(1));
    at_least_per_second(Rate::from_size_over(window, rtt).mul_f64(gain), window)
}
