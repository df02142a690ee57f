//! CUBIC's own parameters.

use weir_units::Duration;

use super::curve::C;
use crate::algorithm::Typed;

pub(super) const AGGRESSIVENESS: Typed<f64> = Typed {
    name: "c",
    doc: "aggressiveness C, in packets per second cubed",
    default: C,
    min: 0.001,
    max: 1e9,
};

pub(super) const FAST_CONVERGENCE: Typed<bool> = Typed {
    name: "fast_convergence",
    doc: "give way to new flows by lowering the plateau while windows shrink",
    default: true,
    min: false,
    max: true,
};

/// RFC 9438 section 4.3. Other simulators leave it out (ns-3's `TcpCubic`).
pub(super) const RENO_FRIENDLY: Typed<bool> = Typed {
    name: "reno_friendly",
    doc: "never slower than Reno with the same reduction",
    default: true,
    min: false,
    max: true,
};

/// ns-3 does this, Linux does not.
pub(super) const KEEP_COUNT: Typed<bool> = Typed {
    name: "keep_count",
    doc: "with whole_packets: packets that were counted towards growth count on after reductions",
    default: false,
    min: false,
    max: true,
};

/// Linux: `hystart` and `hystart_detect`, both signs.
pub(super) const HYSTART: Typed<bool> = Typed {
    name: "hystart",
    doc: "HyStart as in Linux: leave slow start when acknowledgments fill the path or the round-trip time rises",
    default: true,
    min: false,
    max: true,
};

pub(super) const HYSTART_PLUS_PLUS: Typed<bool> = Typed {
    name: "hystart_plus_plus",
    doc: "HyStart++ in its place: slow growth first when the round-trip time rises (RFC 9406)",
    default: false,
    min: false,
    max: true,
};

/// Linux: `HYSTART_DELAY_MIN`; RFC 9406 section 4.3: `MIN_RTT_THRESH`. A fabric of 50 us needs far
/// less than 4 ms.
pub(super) const HYSTART_MIN: Typed<Duration> = Typed {
    name: "hystart_min_threshold",
    doc: "HyStart, HyStart++: the smallest rise of the round-trip time that counts",
    default: Duration::from_millis(4),
    min: Duration::ZERO,
    max: Duration::from_secs(10),
};

/// Linux: `HYSTART_DELAY_MAX`; RFC 9406 section 4.3: `MAX_RTT_THRESH`.
pub(super) const HYSTART_MAX: Typed<Duration> = Typed {
    name: "hystart_max_threshold",
    doc: "HyStart, HyStart++: the largest rise that is waited for",
    default: Duration::from_millis(16),
    min: Duration::ZERO,
    max: Duration::from_secs(10),
};

/// Linux: `hystart_low_window`.
pub(super) const HYSTART_LOW_WINDOW: Typed<u64> = Typed {
    name: "hystart_low_window",
    doc: "HyStart: smaller windows stay in slow start, in packets",
    default: 16,
    min: 0,
    max: 1_000_000,
};

/// Linux: `hystart_ack_delta_us`.
pub(super) const HYSTART_ACK_DELTA: Typed<Duration> = Typed {
    name: "hystart_ack_delta",
    doc: "HyStart: a longer gap ends a train of acknowledgments; 0s counts no trains",
    default: Duration::from_millis(2),
    min: Duration::ZERO,
    max: Duration::from_secs(10),
};
