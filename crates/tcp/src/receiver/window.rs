//! The announced window (RFC 9293, section 3.8.6; RFC 7323, section 2).
//!
//! The right edge never moves back. The wire format expresses it in units of the scale, counted
//! from the acknowledgment. It is rounded up, so the announced edge may vary by less than one unit
//! (RFC 7323, section 2.4). Data within an announced window stays acceptable.

use weir_units::ByteSize;

use crate::Config;

#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The offset up to which the application has read.
    read: u64,
    /// The right edge.
    edge: u64,
    /// The largest right edge that was announced, rounding included.
    max_announced_edge: u64,
    /// The buffer size, limited to what the window field can express: 30 bits.
    size: u32,
    /// The last announced window field.
    field: u16,
    /// The field that announces the whole buffer.
    whole: u16,
    /// Whether nothing has changed since it was announced.
    is_announced: bool,
    scale: u8,
    automatic: bool,
}

impl Window {
    pub(super) fn new(config: &Config, scale: u8) -> Self {
        let initial = Self::initial(config);
        let mut window = Self {
            read: 0,
            // The peer's first flight may use the window of the SYN.
            edge: u64::from(initial),
            max_announced_edge: u64::from(initial),
            size: 0,
            field: 0,
            whole: 0,
            is_announced: false,
            scale,
            automatic: config.read_automatically,
        };
        window.set_scale(scale, config);
        window
    }

    fn buffer(config: &Config) -> u64 {
        config.receive_buffer.map_or(u64::MAX, ByteSize::bytes)
    }

    /// Sets the shift count of the window field. A SYN's window is not shifted.
    pub(super) fn set_scale(&mut self, scale: u8, config: &Config) {
        self.scale = scale;
        self.is_announced = false;
        let most = u64::from(u16::MAX) << scale;
        // A scale is at most 14.
        self.size = u32::try_from(Self::buffer(config).min(most)).unwrap_or(u32::MAX);
        self.whole = self.field_of(u64::from(self.size));
    }

    /// Announces the whole buffer; both ends know it without a handshake.
    pub(super) fn offer_all(&mut self) {
        self.edge = u64::from(self.size);
        self.is_announced = false;
        self.max_announced_edge = self.edge;
    }

    /// Returns the window field of a SYN, which is not shifted.
    pub(super) fn initial(config: &Config) -> u16 {
        u16::try_from(Self::buffer(config)).unwrap_or(u16::MAX)
    }

    /// Returns the end of acceptable data.
    #[inline]
    pub(super) fn acceptable_up_to(&self) -> u64 {
        self.max_announced_edge
    }

    /// Records that data up to `received` can be read.
    #[inline]
    pub(super) fn on_delivered(&mut self, received: u64) {
        self.is_announced = false;
        if self.automatic {
            self.read = received;
        }
    }

    pub(super) fn on_read(&mut self, bytes: ByteSize, received: u64) {
        self.is_announced = false;
        self.read = self.read.saturating_add(bytes.bytes()).min(received);
    }

    pub(super) fn unread(&self, received: u64) -> u64 {
        received.saturating_sub(self.read)
    }

    /// Returns the new right edge. It does not advance by small steps (RFC 9293, section
    /// 3.8.6.2.2).
    #[inline]
    fn candidate(&self, mss: u64) -> u64 {
        let size = u64::from(self.size);
        let candidate = self.read + size;
        let worthwhile = self.worthwhile(mss);
        if candidate >= self.edge + worthwhile {
            candidate
        } else {
            self.edge
        }
    }

    /// Returns whether the new window is at least twice what is left of the last one.
    pub(super) fn has_opened(&self, next: u64, mss: u64) -> bool {
        let candidate = self.candidate(mss);
        let left = self.edge.saturating_sub(next);
        candidate > self.edge && candidate.saturating_sub(next) >= 2 * left
    }

    /// Returns the smallest step of the right edge.
    #[inline]
    fn worthwhile(&self, mss: u64) -> u64 {
        mss.min(u64::from(self.size / 2)).max(1)
    }

    /// Announces a window starting at the next byte expected.
    #[inline(always)]
    pub(super) fn announce(&mut self, next: u64, mss: u64) -> u16 {
        if self.is_announced {
            return self.field;
        }
        let edge = next + u64::from(self.size);
        if self.read == next && edge >= self.edge + self.worthwhile(mss) {
            // Everything has been read.
            self.edge = edge;
            self.note_announced(next, self.whole);
            self.field = self.whole;
        } else {
            self.field = self.advertise(next, mss);
        }
        self.is_announced = true;
        self.field
    }

    /// Announces a window starting at `next`, which may be a byte received before.
    pub(super) fn advertise(&mut self, next: u64, mss: u64) -> u16 {
        self.is_announced = false;
        self.edge = self.candidate(mss);
        let field = self.field_of(self.edge.saturating_sub(next));
        self.note_announced(next, field);
        field
    }

    /// Returns the field that announces a window of this size.
    fn field_of(&self, window: u64) -> u16 {
        let step = (1u64 << self.scale) - 1;
        ((window + step) >> self.scale).min(u64::from(u16::MAX)) as u16
    }

    #[inline]
    fn note_announced(&mut self, next: u64, field: u16) {
        let edge = next + (u64::from(field) << self.scale);
        self.max_announced_edge = self.max_announced_edge.max(edge);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MSS: u64 = 1000;

    fn window(buffer: Option<u64>, scale: u8, automatic: bool) -> Window {
        let config = Config {
            receive_buffer: buffer.map(ByteSize::from_bytes),
            read_automatically: automatic,
            ..Config::default()
        };
        Window::new(&config, scale)
    }

    #[test]
    fn the_window_reopens_only_by_a_full_segment() {
        let mut window = window(Some(10_000), 0, false);
        assert_eq!(window.advertise(0, MSS), 10_000);
        assert_eq!(window.advertise(4_000, MSS), 6_000);
        assert_eq!(window.advertise(10_000, MSS), 0);
        window.on_read(ByteSize::from_bytes(999), 10_000);
        assert!(!window.has_opened(10_000, MSS));
        assert_eq!(window.advertise(10_000, MSS), 0);
        window.on_read(ByteSize::from_bytes(1), 10_000);
        assert!(window.has_opened(10_000, MSS));
        assert_eq!(window.advertise(10_000, MSS), 1_000);
    }

    #[test]
    fn an_unbounded_buffer_advertises_the_largest_window() {
        let mut window = window(None, 14, true);
        assert_eq!(window.advertise(0, MSS), u16::MAX);
        assert_eq!(window.acceptable_up_to(), 65_535 << 14);
    }

    proptest! {
        #[test]
        fn the_window_edge_never_retracts_and_stays_within_the_buffer(
            buffer in 1u64..3_000_000,
            scale in 0u8..=14,
            steps in prop::collection::vec((0u64..5_000, 0u64..5_000), 1..100),
        ) {
            let mut window = window(Some(buffer), scale, false);
            let (mut next, mut heard) = (0, window.acceptable_up_to());
            for (arrives, read) in steps {
                next = (next + arrives).min(window.acceptable_up_to());
                window.on_delivered(next);
                window.on_read(ByteSize::from_bytes(read), next);
                let before = window.edge;
                let edge = next + (u64::from(window.advertise(next, MSS)) << scale);
                heard = heard.max(edge);
                prop_assert!(window.edge >= before);
                prop_assert!(edge + (1 << scale) > heard);
                prop_assert_eq!(heard, window.acceptable_up_to());
                prop_assert!(edge < window.read + buffer + (1 << scale));
            }
        }
    }
}
