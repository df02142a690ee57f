//! Stateless resets: notify a peer that its connection is unknown here (RFC 9000, section 10.3).

use rand_core::Rng;
use weir_units::{Duration, Time};

use crate::ConnectionId;
use crate::rate_limit::RateLimit;
use crate::secret::{EndpointKeys, RESET_TOKEN_LENGTH, ResetToken};

/// A reset needs room for an apparent header and packet number before the token (RFC 9000, section
/// 10.3): 5 bytes.
const SMALLEST_RESET: usize = 5 + RESET_TOKEN_LENGTH;
/// The size of the smallest packet to a peer with the longest connection ID: first byte, 20 bytes
/// of ID, packet number, and an AEAD's tag. Shorter ones might be recognized as resets.
const PREFERRED_RESET: usize = 1 + ConnectionId::MAX_LENGTH + 5 + RESET_TOKEN_LENGTH;
/// The most resets in a burst.
const BURST: u64 = 1000;
/// The interval of further resets: 1000 per second. A restarted server notifies all of its clients
/// within seconds, and an attacker who sends garbage costs 1000 small packets per second.
const INTERVAL: Duration = Duration::from_millis(1);

/// Writes stateless resets at a limited rate.
#[derive(Debug)]
pub(crate) struct Resets {
    limit: RateLimit,
}

impl Resets {
    pub(crate) fn new() -> Self {
        Self {
            limit: RateLimit::new(BURST, INTERVAL),
        }
    }

    /// Returns the answer to a datagram of this length to an unknown ID; `None` if none is allowed.
    /// It is shorter than the datagram, so that two endpoints without state stop answering each
    /// other (RFC 9000, section 10.3.3).
    pub(crate) fn answer(
        &mut self,
        now: Time,
        keys: &EndpointKeys,
        id: &ConnectionId,
        length: usize,
        rng: &mut impl Rng,
    ) -> Option<Vec<u8>> {
        if length <= SMALLEST_RESET || !self.limit.allow(now) {
            return None;
        }
        // Lengths vary a little; a fixed length would distinguish resets from packets.
        let spread = (rng.next_u32() & 0x0f) as usize;
        let mut reset = vec![0; (length - 1).min(PREFERRED_RESET + spread)];
        rng.fill_bytes(&mut reset);
        // A short header.
        reset[0] = reset[0] & 0x3f | 0x40;
        let token_at = reset.len() - RESET_TOKEN_LENGTH;
        reset[token_at..].copy_from_slice(&keys.reset_token(id));
        Some(reset)
    }
}

/// Returns the bytes of a datagram that would be the reset token of a stateless reset.
pub(crate) fn candidate(datagram: &[u8]) -> Option<ResetToken> {
    let first = *datagram.first()?;
    if first & 0x80 != 0 || datagram.len() < SMALLEST_RESET {
        return None;
    }
    datagram.last_chunk().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::ChaCha12Rng;
    use rand_core::SeedableRng;

    use super::*;
    use crate::EndpointSecret;

    fn keys() -> EndpointKeys {
        EndpointKeys::new(&EndpointSecret::new([3; 32]))
    }

    fn id() -> ConnectionId {
        ConnectionId::new(&[1; 8]).unwrap()
    }

    proptest! {
        #[test]
        fn resets_look_like_short_headers_and_are_smaller_than_the_trigger(
            length in 0..2000_usize,
            seed: u64,
        ) {
            let mut rng = ChaCha12Rng::seed_from_u64(seed);
            let reset = Resets::new().answer(Time::ZERO, &keys(), &id(), length, &mut rng);
            prop_assert_eq!(reset.is_some(), length > SMALLEST_RESET);
            if let Some(reset) = reset {
                prop_assert!(reset.len() < length && reset.len() >= SMALLEST_RESET);
                prop_assert_eq!(reset[0] & 0xc0, 0x40);
                prop_assert_eq!(candidate(&reset), Some(keys().reset_token(&id())));
            }
        }
    }

    #[test]
    fn resets_are_rate_limited_under_a_flood() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let mut resets = Resets::new();
        let now = Time::from_nanos(1_000_000_000_000);
        let answers = (0..5000).filter(|_| {
            let answer = resets.answer(now, &keys(), &id(), 100, &mut rng);
            answer.is_some()
        });
        assert_eq!(answers.count() as u64, BURST);
    }

    #[test]
    fn long_headers_and_short_datagrams_are_not_resets() {
        assert_eq!(candidate(&[]), None);
        assert_eq!(candidate(&[0x40; SMALLEST_RESET - 1]), None);
        assert_eq!(candidate(&[0xc0; 100]), None);
        assert!(candidate(&[0x40; SMALLEST_RESET]).is_some());
    }
}
