//! The TCP handshake: the options that the two ends negotiate.

use weir_wire::tcp::{Flags, Options, Segment, Sequence, SynOptions};

/// The direction of a segment in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the sender of the first SYN that was seen.
    Forward,
    /// Towards it.
    Reverse,
}

impl Direction {
    /// Returns the other direction.
    pub const fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }

    /// Returns the index into an array of two.
    pub const fn index(self) -> usize {
        match self {
            Self::Forward => 0,
            Self::Reverse => 1,
        }
    }
}

/// The SYN of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its sequence number.
    pub sequence: Sequence,
    /// Its options.
    pub options: SynOptions,
    /// Whether it carried time stamps (RFC 7323, section 3.2).
    pub timestamps: bool,
    /// Its control bits: ECE and CWR announce its ECN support (RFC 3168, section 6.1.1).
    pub flags: Flags,
}

/// The SYNs of a connection, as far as they have been seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    offers: [Option<Offer>; 2],
}

impl Offer {
    pub(super) fn of(segment: &Segment) -> Self {
        let options = match segment.options {
            Options::Syn(options) => options,
            Options::None | Options::Sack(_) => SynOptions::NONE,
        };
        Self {
            sequence: segment.sequence,
            options,
            timestamps: segment.timestamps.is_some(),
            flags: segment.flags,
        }
    }
}

impl Handshake {
    pub(super) fn record(&mut self, direction: Direction, offer: Offer) {
        if let Some(slot) = self.offers.get_mut(direction.index()) {
            *slot = Some(offer);
        }
    }

    /// Returns the SYN that was sent in direction `direction`.
    pub fn offer(&self, direction: Direction) -> Option<&Offer> {
        self.offers.get(direction.index())?.as_ref()
    }

    /// Returns the window scale of segments in direction `direction`, after the SYNs: 0 unless both ends have
    /// offered scaling (RFC 7323, section 2.2). `None` while a SYN is missing.
    pub fn window_scale(&self, direction: Direction) -> Option<u8> {
        let own = self.offer(direction)?.options.window_scale;
        let other = self.offer(direction.reversed())?.options.window_scale;
        Some(other.and(own).unwrap_or(0))
    }

    /// Returns the window scale of this segment in direction `direction`. The window of a SYN is never scaled
    /// (RFC 7323, section 2.2).
    pub fn scale_of(&self, segment: &Segment, direction: Direction) -> Option<u8> {
        if segment.flags.contains(Flags::SYN) {
            Some(0)
        } else {
            self.window_scale(direction)
        }
    }

    /// Returns the largest payload, in bytes, of a segment in direction `direction`: the MSS of the other end
    /// (RFC 9293, section 3.7.1), less the room for time stamps (RFC 6691). `None` while a SYN is missing.
    pub fn segment_size(&self, direction: Direction) -> Option<u32> {
        let accepted = self
            .offer(direction.reversed())?
            .options
            .maximum_segment_size;
        let stamps = if self.has_timestamps() {
            TIMESTAMPS_LENGTH
        } else {
            0
        };
        self.offer(direction)?;
        Some(u32::from(accepted.saturating_sub(stamps).max(1)))
    }

    /// Whether both ends have offered SACK.
    pub fn has_sack(&self) -> bool {
        self.both(|offer| offer.options.sack_permitted)
    }

    /// Whether both ends have offered time stamps.
    pub fn has_timestamps(&self) -> bool {
        self.both(|offer| offer.timestamps)
    }

    /// Whether both SYNs have been seen.
    pub fn is_complete(&self) -> bool {
        self.both(|_| true)
    }

    fn both(&self, condition: impl Fn(&Offer) -> bool) -> bool {
        let mut offers = self.offers.iter();
        offers.all(|offer| offer.as_ref().is_some_and(&condition))
    }
}

/// Bytes that the time stamps option takes from a segment's data, with its padding (RFC 7323, appendix
/// A).
const TIMESTAMPS_LENGTH: u16 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(window_scale: Option<u8>, maximum_segment_size: u16, timestamps: bool) -> Offer {
        Offer {
            sequence: Sequence::new(1),
            options: SynOptions {
                maximum_segment_size,
                window_scale,
                sack_permitted: true,
            },
            timestamps,
            flags: Flags::SYN,
        }
    }

    fn handshake(forth: Offer, back: Offer) -> Handshake {
        let mut handshake = Handshake::default();
        handshake.record(Direction::Forward, forth);
        handshake.record(Direction::Reverse, back);
        handshake
    }

    #[test]
    fn window_scaling_needs_the_option_from_both_ends() {
        let both = handshake(offer(Some(3), 1460, true), offer(Some(7), 1400, true));
        assert_eq!(both.window_scale(Direction::Forward), Some(3));
        assert_eq!(both.window_scale(Direction::Reverse), Some(7));
        let one = handshake(offer(Some(3), 1460, true), offer(None, 1400, false));
        assert_eq!(one.window_scale(Direction::Forward), Some(0));
        assert_eq!(one.window_scale(Direction::Reverse), Some(0));
        let mut half = Handshake::default();
        half.record(Direction::Forward, offer(Some(3), 1460, true));
        assert_eq!(half.window_scale(Direction::Forward), None);
        assert!(!half.is_complete() && !half.has_sack());
        let syn = Segment {
            flags: Flags::SYN,
            ..Segment::default()
        };
        assert_eq!(half.scale_of(&syn, Direction::Forward), Some(0));
    }

    #[test]
    fn the_segment_size_is_limited_by_the_peer() {
        let stamped = handshake(offer(None, 1460, true), offer(None, 1400, true));
        assert_eq!(stamped.segment_size(Direction::Forward), Some(1388));
        assert_eq!(stamped.segment_size(Direction::Reverse), Some(1448));
        let plain = handshake(offer(None, 1460, true), offer(None, 5, false));
        assert_eq!(plain.segment_size(Direction::Forward), Some(5));
        assert_eq!(plain.segment_size(Direction::Reverse), Some(1460));
    }
}
