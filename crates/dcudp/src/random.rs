//! Unpredictable random numbers.

use siphasher::sip::SipHasher24;

/// A generator whose numbers derive from a seed and are unpredictable without it.
pub(crate) struct Random {
    key: SipHasher24,
    drawn: u64,
}

impl Random {
    pub(crate) const fn new(key: SipHasher24) -> Self {
        Self { key, drawn: 0 }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.key.hash(&self.drawn.to_le_bytes())
    }

    pub(crate) fn draw_bytes(&mut self) -> [u8; 16] {
        let value = u128::from(self.draw()) << 64 | u128::from(self.draw());
        value.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the vectors of Aumasson and Bernstein (2012): key 00 01 … 0f, input 00 01 …
    #[test]
    fn the_cookie_hash_matches_siphash_2_4_vectors() {
        let key = SipHasher24::new_with_keys(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let input: Vec<u8> = (0..15).collect();
        assert_eq!(key.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.hash(&input[..1]), 0x74f8_39c5_93dc_67fd);
        assert_eq!(key.hash(&input[..8]), 0x93f5_f579_9a93_2462);
        assert_eq!(key.hash(&input), 0xa129_ca61_49be_45e5);
    }
}
