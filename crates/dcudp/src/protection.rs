//! The seam for authenticated connections. DCUDP is neither encrypted nor authenticated of itself.
//!
//! Who has a pre-shared key brings a [`SharedKey`]. Handshake packets then carry a tag, and every
//! other packet goes as: header (16 bytes, in clear), packet number (8 bytes, in clear, counted up
//! from zero for each direction and never used twice), and the sealed rest with the AEAD's tag. Header
//! and packet number are the associated data. A window of 1024 numbers keeps old packets from being
//! played again.

use std::fmt;

use crate::packet::{HEADER_LENGTH, SocketId};

/// Bytes of a packet number.
pub const PACKET_NUMBER_LENGTH: usize = 8;
/// Bytes in clear before what is sealed: header and packet number.
pub const ASSOCIATED_LENGTH: usize = HEADER_LENGTH + PACKET_NUMBER_LENGTH;

/// What a connection's keys are to be derived from, beside the shared key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whether this end is the client: each direction needs a key of its own.
    pub is_client: bool,
    /// What the client has chosen at random.
    pub client_random: [u8; 16],
    /// What the server has chosen at random.
    pub server_random: [u8; 16],
    /// The client's name for the connection.
    pub client: SocketId,
    /// The server's name for the connection.
    pub server: SocketId,
}

/// A key that both ends know beforehand.
pub trait SharedKey: fmt::Debug + Send + Sync {
    /// A message authentication code of a handshake packet. Deterministic.
    fn tag(&self, message: &[u8]) -> [u8; 16];

    /// The protection of a connection's packets.
    fn session(&self, session: &Session) -> Box<dyn PacketProtection>;
}

/// Seals and opens the packets of one connection.
pub trait PacketProtection: fmt::Debug + Send + Sync {
    /// How many bytes longer a packet's rest becomes.
    fn overhead(&self) -> usize;

    /// Seals `buffer[body..]` in place and lets it grow by [`Self::overhead`].
    fn seal(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        buffer: &mut Vec<u8>,
        body: usize,
    );

    /// Opens `body` in place. How many bytes of it are the packet's rest, or `None` where it was not
    /// sealed by the peer.
    fn open(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        body: &mut [u8],
    ) -> Option<usize>;
}

/// Whether two tags are equal, in a time that does not tell where they differ.
pub(crate) fn tags_agree(left: &[u8; 16], right: &[u8; 16]) -> bool {
    let pairs = left.iter().zip(right);
    pairs.fold(0, |difference, (left, right)| difference | (left ^ right)) == 0
}

const WORDS: usize = 16;
const SPAN: u64 = 64 * WORDS as u64;

/// Which packet numbers have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayWindow {
    /// One past the highest.
    next: u64,
    /// A bit for each of the last [`SPAN`] numbers, by the number modulo the span.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Whether a packet of this number is new. What is too old to tell is not.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        number >= self.next || (self.next - number <= SPAN && self.seen[word] & bit == 0)
    }

    /// A packet of this number has come.
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
        fn the_window_knows_what_came(numbers in prop::collection::vec(0_u64..4000, 1..400)) {
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
    fn the_last_number_is_no_trap() {
        let mut window = ReplayWindow::default();
        window.note(u64::MAX - 1);
        assert!(!window.is_new(u64::MAX - 1) && window.is_new(u64::MAX - 2));
    }
}
