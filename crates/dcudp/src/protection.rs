//! The interface for authenticated connections. DCUDP alone is neither encrypted nor authenticated.
//!
//! A pre-shared key implements [`SharedKey`]. Handshake packets then carry a tag. Every other
//! packet consists of the header (16 bytes, in clear), the packet number (8 bytes, in clear,
//! counted from zero per direction and never reused), and the sealed body with the AEAD's tag.
//! Header and packet number are the associated data. A window of 1024 numbers protects against
//! replayed packets.

use std::fmt;

use crate::packet::{HEADER_LENGTH, SocketId};

/// Bytes of a packet number.
pub const PACKET_NUMBER_LENGTH: usize = 8;
/// Bytes in clear before the sealed body: header and packet number.
pub const ASSOCIATED_LENGTH: usize = HEADER_LENGTH + PACKET_NUMBER_LENGTH;

/// The inputs of a connection's key derivation, beside the shared key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whether this end is the client: each direction has its own key.
    pub is_client: bool,
    /// The client's random value.
    pub client_random: [u8; 16],
    /// The server's random value.
    pub server_random: [u8; 16],
    /// The client's socket id.
    pub client: SocketId,
    /// The server's socket id.
    pub server: SocketId,
}

/// A key shared by both ends beforehand.
pub trait SharedKey: fmt::Debug + Send + Sync {
    /// Returns a message authentication code of a handshake packet. Must be deterministic.
    fn tag(&self, message: &[u8]) -> [u8; 16];

    /// Returns the protection of a connection's packets.
    fn session(&self, session: &Session) -> Box<dyn PacketProtection>;
}

/// Seals and opens the packets of one connection.
pub trait PacketProtection: fmt::Debug + Send + Sync {
    /// Returns the number of bytes by which a packet grows.
    fn overhead(&self) -> usize;

    /// Seals `buffer[body..]` in place and extends it by [`Self::overhead`].
    fn seal(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        buffer: &mut Vec<u8>,
        body: usize,
    );

    /// Opens `body` in place. Returns the length of the opened body, or `None` if the peer did not
    /// seal it.
    fn open(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        body: &mut [u8],
    ) -> Option<usize>;
}

/// Compares two tags in constant time.
pub(crate) fn tags_agree(left: &[u8; 16], right: &[u8; 16]) -> bool {
    let pairs = left.iter().zip(right);
    pairs.fold(0, |difference, (left, right)| difference | (left ^ right)) == 0
}

const WORDS: usize = 16;
const SPAN: u64 = 64 * WORDS as u64;

/// The packet numbers received so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayWindow {
    /// One past the highest number.
    next: u64,
    /// A bit for each of the last [`SPAN`] numbers, indexed by the number modulo the span.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Returns whether this number is new. Numbers older than the window count as old.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        number >= self.next || (self.next - number <= SPAN && self.seen[word] & bit == 0)
    }

    /// Records a packet with this number.
    pub(crate) fn note(&mut self, number: u64) {
        if number >= self.next {
            let fresh = (number - self.next).min(SPAN - 1);
            for passed in number - fresh..number {
                let (word, bit) = place(passed);
                self.seen[word] &= !bit;
            }
            self.next = number.saturating_add(1);
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number % SPAN / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_replay_window_rejects_duplicates_and_old_numbers(numbers in prop::collection::vec(0_u64..4000, 1..400)) {
            let (mut window, mut came) = (ReplayWindow::default(), BTreeSet::new());
            for number in numbers {
                let highest = came.last().copied().unwrap_or(0);
                let too_old = number + SPAN < highest + 1;
                prop_assert_eq!(window.is_new(number), !too_old && !came.contains(&number));
                if window.is_new(number) {
                    window.note(number);
                    came.insert(number);
                }
            }
        }
    }

    #[test]
    fn the_largest_packet_number_does_not_overflow_the_window() {
        let mut window = ReplayWindow::default();
        window.note(u64::MAX - 1);
        assert!(!window.is_new(u64::MAX - 1) && window.is_new(u64::MAX - 2));
    }
}
