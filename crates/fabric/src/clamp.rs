//! The receive-window clamp: what a sender hears that it may send, made smaller on the way.
//!
//! [`Connections`](crate::Connections) know by how many bits the windows of a connection are shifted; a
//! [`WindowLimit`] says how much may be allowed. It never widens a window, and what it makes of one is
//! a multiple of what the shift can express: rounded down, but not under the floor.

use weir_units::ByteSize;
use weir_wire::tcp::{Flags, Segment};

use crate::connections::{Direction, Handshake};
use crate::packet::Packet;

/// How much a receiver may be seen to allow.
///
/// ```
/// use weir_fabric::WindowLimit;
/// use weir_units::ByteSize;
///
/// let limit = WindowLimit {
///     allowed: ByteSize::from_bytes(20_000),
///     floor: ByteSize::from_bytes(2 * 1460),
/// };
/// // Windows in units of 128 bytes: 156 units are 19,968 bytes.
/// assert_eq!(limit.applied_to(512, 7), 156);
/// assert_eq!(limit.applied_to(100, 7), 100);
/// // In units of 16 KiB one unit is what keeps to the limit; two would be above it.
/// assert_eq!(limit.applied_to(512, 14), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// The largest window, in bytes.
    pub allowed: ByteSize,
    /// What is left of a window in any case, however little is allowed, unless the receiver offers less
    /// itself: under one segment a sender may wait for its persist timer. Zero lets a sender be stopped.
    pub floor: ByteSize,
}

/// What became of a packet's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clamped {
    /// It is smaller now.
    Lowered,
    /// It was within the limit, or the segment's window says nothing: a reset.
    Kept,
    /// Nobody has seen by how many bits it is shifted.
    UnknownScale,
}

impl WindowLimit {
    /// What the window field `window` becomes, in units of 2^`scale` bytes.
    pub fn applied_to(self, window: u16, scale: u8) -> u16 {
        let scale = u32::from(scale);
        let allowed = self.allowed.bytes().checked_shr(scale).unwrap_or(0);
        let unit = 1_u64.checked_shl(scale).unwrap_or(u64::MAX);
        let floor = self.floor.bytes().div_ceil(unit);
        let limit = u16::try_from(allowed.max(floor)).unwrap_or(u16::MAX);
        window.min(limit)
    }

    /// Lowers the window of a packet that goes `way` on a connection with this handshake, if it is too
    /// large.
    pub fn clamp<P: Packet>(
        self,
        packet: &mut P,
        handshake: &Handshake,
        way: Direction,
    ) -> Clamped {
        let Some(segment) = packet.tcp().filter(has_window) else {
            return Clamped::Kept;
        };
        let Some(scale) = handshake.scale_of(&segment, way) else {
            return Clamped::UnknownScale;
        };
        let window = self.applied_to(segment.window, scale);
        if window == segment.window {
            return Clamped::Kept;
        }
        packet.set_window(window);
        Clamped::Lowered
    }
}

/// A reset's window means nothing, nor does that of a segment that acknowledges nothing, but for a SYN.
fn has_window(segment: &Segment) -> bool {
    segment.flags.intersects(Flags::ACK | Flags::SYN) && !segment.flags.contains(Flags::RST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limit(allowed: u64, floor: u64) -> WindowLimit {
        WindowLimit {
            allowed: ByteSize::from_bytes(allowed),
            floor: ByteSize::from_bytes(floor),
        }
    }

    #[test]
    fn a_floor_is_rounded_up_and_what_is_allowed_down() {
        assert_eq!(limit(1000, 0).applied_to(100, 7), 7);
        assert_eq!(limit(1000, 1000).applied_to(100, 7), 8);
        assert_eq!(limit(0, 0).applied_to(100, 7), 0);
        assert_eq!(limit(u64::MAX, 0).applied_to(u16::MAX, 0), u16::MAX);
        assert_eq!(limit(0, 1).applied_to(u16::MAX, 14), 1);
    }

    proptest! {
        /// A window is never widened; it is within the limit, or at the floor and less than one unit
        /// above it; and there is no larger one that keeps to the limit.
        #[test]
        fn the_largest_window_within_the_limit(window: u16, scale in 0_u8..=14, allowed in 0_u64..1 << 31, floor in 0_u64..100_000) {
            let clamped = limit(allowed, floor).applied_to(window, scale);
            prop_assert!(clamped <= window);
            let (unit, bytes) = (1 << scale, u64::from(clamped) << scale);
            prop_assert!(bytes <= allowed || bytes < floor + unit);
            if clamped < window {
                prop_assert!(bytes >= floor);
                prop_assert!(bytes + unit > allowed);
            }
        }

        /// Whoever is clamped twice is clamped once.
        #[test]
        fn twice_is_once(window: u16, scale in 0_u8..=14, allowed in 0_u64..1 << 31, floor in 0_u64..100_000) {
            let limit = limit(allowed, floor);
            let once = limit.applied_to(window, scale);
            prop_assert_eq!(limit.applied_to(once, scale), once);
        }
    }
}
