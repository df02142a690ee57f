//! Rewrites of a TCP header in flight, on a [`Segment`] and on real bytes.
//!
//! A [`Rewrite`] collects changes; [`Rewrite::view`] returns a segment with them, and
//! [`Rewrite::apply`] makes them in bytes. The two agree, the header's length does not change, and
//! a correct checksum stays correct.

#[cfg(test)]
mod tests;

use super::header::{MAXIMUM, MINIMUM, kind};
use super::{Flags, Options, Segment, Sequence, Timestamps};
use crate::Checksum;

/// Offsets in the header.
const ACKNOWLEDGMENT: usize = 8;
const FLAGS: usize = 13;
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;

/// Changes of a TCP header. The empty one, its default, changes nothing.
///
/// ```
/// use weir_wire::tcp::{Ports, Rewrite, Segment};
///
/// let header = Segment { window: 1000, ..Segment::default() }.emit(Ports::default());
/// let mut bytes = header.as_bytes().to_vec();
/// let mut rewrite = Rewrite::default();
/// rewrite.set_window(20);
/// rewrite.apply(&mut bytes, true);
/// let (_, segment) = Segment::parse(&bytes)?;
/// assert_eq!(segment.window, 20);
/// # Ok::<(), weir_wire::tcp::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    window: Option<u16>,
    acknowledgment: Option<Sequence>,
    timestamps: Option<Timestamps>,
    /// Control bits to set, and to clear.
    set: Flags,
    cleared: Flags,
    without_sack: bool,
}

impl Rewrite {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns control bits that may be newly set.
    pub const fn added_flags(&self) -> Flags {
        self.set
    }

    /// Sets the window field, unscaled.
    pub fn set_window(&mut self, window: u16) {
        self.window = Some(window);
    }

    /// Sets the acknowledgment number.
    pub fn set_acknowledgment(&mut self, number: Sequence) {
        self.acknowledgment = Some(number);
    }

    /// Sets the time stamps, where there are any.
    pub fn set_timestamps(&mut self, timestamps: Timestamps) {
        self.timestamps = Some(timestamps);
    }

    /// Changes the control bits `now` to `wanted`. SYN stays as it is: the meaning of options
    /// depends on it.
    pub fn set_flags(&mut self, now: Flags, wanted: Flags) {
        let (now, wanted) = (now.without(Flags::SYN), wanted.without(Flags::SYN));
        let (set, cleared) = (wanted.without(now), now.without(wanted));
        self.set = self.set.without(cleared) | set;
        self.cleared = self.cleared.without(set) | cleared;
    }

    /// Replaces SACK blocks, and on a SYN the SACK-permitted option, by padding.
    pub fn remove_sack(&mut self) {
        self.without_sack = true;
    }

    /// Returns a segment with these changes.
    pub fn view(&self, mut segment: Segment) -> Segment {
        segment.window = self.window.unwrap_or(segment.window);
        segment.acknowledgment = self.acknowledgment.unwrap_or(segment.acknowledgment);
        segment.timestamps = segment.timestamps.map(|own| self.timestamps.unwrap_or(own));
        segment.flags = segment.flags.without(self.cleared) | self.set;
        if self.without_sack {
            match &mut segment.options {
                Options::Syn(syn) => syn.sack_permitted = false,
                Options::Sack(_) => segment.options = Options::None,
                Options::None => {}
            }
        }
        segment
    }

    /// Makes the changes in a header with its options; the payload may follow. A `finished`
    /// checksum is updated incrementally (RFC 1624, equation 3), so that a wrong one stays wrong; a
    /// partial one, to be completed by offload, is not touched. A header that [`Segment::parse`]
    /// rejects stays as it is.
    pub fn apply(&self, header: &mut [u8], finished: bool) {
        if self.is_empty() || Segment::parse(header).is_err() {
            return;
        }
        let length = header
            .get(12)
            .map_or(0, |offset| usize::from(offset >> 4) * 4);
        let Some(header) = header.get_mut(..length) else {
            return;
        };
        let mut before = [0; MAXIMUM];
        let Some(before) = before.get_mut(..length) else {
            return;
        };
        before.copy_from_slice(header);
        self.change_fields(header);
        if let Some(options) = header.get_mut(MINIMUM..) {
            self.change_options(options);
        }
        if finished && let Some(field) = header.get(CHECKSUM..).and_then(<[u8]>::first_chunk) {
            let sum = Checksum::updated(u16::from_be_bytes(*field), before, header);
            put(header, CHECKSUM, sum.to_be_bytes());
        }
    }

    fn change_fields(&self, header: &mut [u8]) {
        if let Some(number) = self.acknowledgment {
            put(header, ACKNOWLEDGMENT, number.number().to_be_bytes());
        }
        if let Some(window) = self.window {
            put(header, WINDOW, window.to_be_bytes());
        }
        if let Some(bits) = header.get_mut(FLAGS) {
            *bits = (Flags::from_bits(*bits).without(self.cleared) | self.set).bits();
        }
    }

    /// The options are known to be well-formed.
    fn change_options(&self, mut options: &mut [u8]) {
        while let Some(&kind) = options.first() {
            let length = match kind {
                kind::END => return,
                kind::NOP => 1,
                _ => options.get(1).map_or(1, |length| usize::from(*length)),
            };
            let Some((option, rest)) = options.split_at_mut_checked(length.max(1)) else {
                return;
            };
            match (kind, self.timestamps) {
                (kind::SACK | kind::SACK_PERMITTED, _) if self.without_sack => {
                    option.fill(kind::NOP);
                }
                (kind::TIMESTAMPS, Some(Timestamps { value, echo })) if length == 10 => {
                    put(option, 2, value.to_be_bytes());
                    put(option, 6, echo.to_be_bytes());
                }
                _ => {}
            }
            options = rest;
        }
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = value;
    }
}
