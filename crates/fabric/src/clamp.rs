//! The receive-window clamp: lowers the window that a receiver announces to its sender.
//!
//! [`Connections`](crate::Connections) know the window scale of each connection. A [`WindowLimit`] sets
//! the largest window. It never widens a window. The lowered window is a multiple of the scale's unit:
//! rounded down, but not below the floor.

use weir_units::ByteSize;
use weir_wire::tcp::{Flags, Segment};

use crate::connections::{Direction, Handshake};
use crate::packet::Packet;

/// The largest window that a receiver may announce.
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
/// // In units of 16 KiB one unit keeps to the limit; two would exceed it.
/// assert_eq!(limit.applied_to(512, 14), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// The largest window, in bytes.
    pub allowed: ByteSize,
    /// The smallest window that clamping leaves, unless the receiver announces less itself. With less
    /// than one segment a sender may wait for its persist timer. Zero allows a window of zero.
    pub floor: ByteSize,
}

/// The result of clamping a packet's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clamped {
    /// The window was lowered.
    Lowered,
    /// The window was within the limit, or the segment has no valid window: a reset.
    Kept,
    /// The window scale is unknown, as a SYN has not been seen.
    UnknownScale,
}

impl WindowLimit {
    /// Returns the window field for `window`; both are in units of 2^`scale` bytes.
    pub fn applied_to(self, window: u16, scale: u8) -> u16 {
        let scale = u32::from(scale);
        let allowed = self.allowed.bytes().checked_shr(scale).unwrap_or(0);
        let unit = 1_u64.checked_shl(scale).unwrap_or(u64::MAX);
        let floor = self.floor.bytes().div_ceil(unit);
        let limit = u16::try_from(allowed.max(floor)).unwrap_or(u16::MAX);
        window.min(limit)
    }

    /// Lowers the window of a packet in direction `direction` of a connection with this handshake, if it
    /// exceeds the limit.
    pub fn clamp<P: Packet>(
        self,
        packet: &mut P,
        handshake: &Handshake,
        direction: Direction,
    ) -> Clamped {
        let Some(segment) = packet.tcp().filter(has_window) else {
            return Clamped::Kept;
        };
        let Some(scale) = handshake.scale_of(&segment, direction) else {
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

/// A reset has no valid window, nor has a segment without ACK, except a SYN.
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
    fn the_floor_is_rounded_up_and_the_limit_down() {
        assert_eq!(limit(1000, 0).applied_to(100, 7), 7);
        assert_eq!(limit(1000, 1000).applied_to(100, 7), 8);
        assert_eq!(limit(0, 0).applied_to(100, 7), 0);
        assert_eq!(limit(u64::MAX, 0).applied_to(u16::MAX, 0), u16::MAX);
        assert_eq!(limit(0, 1).applied_to(u16::MAX, 14), 1);
    }

    proptest! {
        /// A window is never widened. It is within the limit, or at the floor and less than one unit
        /// above it. No larger window keeps to the limit.
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

        /// Clamping is idempotent.
        #[test]
        fn clamping_is_idempotent(window: u16, scale in 0_u8..=14, allowed in 0_u64..1 << 31, floor in 0_u64..100_000) {
            let limit = limit(allowed, floor);
            let once = limit.applied_to(window, scale);
            prop_assert_eq!(limit.applied_to(once, scale), once);
        }
    }
}
