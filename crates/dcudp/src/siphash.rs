//! SipHash-2-4 (Aumasson and Bernstein, 2012): a short keyed hash, for cookies and for numbers that
//! nobody else can guess.

/// A secret of 128 bits.
#[derive(Clone, Copy)]
pub(crate) struct HashKey([u64; 2]);

impl HashKey {
    pub(crate) const fn new(first: u64, second: u64) -> Self {
        Self([first, second])
    }

    /// The hash of `bytes`.
    pub(crate) fn hash(&self, bytes: &[u8]) -> u64 {
        let [k0, k1] = self.0;
        let mut state = State([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ]);
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            state.absorb(little_endian(word));
        }
        // The length stands in the highest byte of the last word.
        state.absorb(little_endian(words.remainder()) | (bytes.len() as u64) << 56);
        state.finish()
    }
}

/// Up to eight bytes as a number.
fn little_endian(bytes: &[u8]) -> u64 {
    let value = |value, byte: &u8| value << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, value)
}

struct State([u64; 4]);

impl State {
    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        self.0.into_iter().fold(0, |hash, word| hash ^ word)
    }

    fn round(&mut self) {
        let [mut v0, mut v1, mut v2, mut v3] = self.0;
        v0 = v0.wrapping_add(v1);
        v1 = v1.rotate_left(13) ^ v0;
        v0 = v0.rotate_left(32);
        v2 = v2.wrapping_add(v3);
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.wrapping_add(v3);
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.wrapping_add(v1);
        v1 = v1.rotate_left(17) ^ v2;
        v2 = v2.rotate_left(32);
        self.0 = [v0, v1, v2, v3];
    }
}

/// Numbers that follow from a seed and cannot be guessed without it.
pub(crate) struct Random {
    key: HashKey,
    drawn: u64,
}

impl Random {
    pub(crate) const fn new(key: HashKey) -> Self {
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

    /// From the reference implementation's vectors: key 00 01 … 0f, input 00 01 …
    #[test]
    fn agrees_with_the_reference() {
        let key = HashKey::new(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let input: Vec<u8> = (0..15).collect();
        assert_eq!(key.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.hash(&input[..1]), 0x74f8_39c5_93dc_67fd);
        assert_eq!(key.hash(&input[..8]), 0x93f5_f579_9a93_2462);
        assert_eq!(key.hash(&input), 0xa129_ca61_49be_45e5);
    }
}
