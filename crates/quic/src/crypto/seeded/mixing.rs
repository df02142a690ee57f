//! Mixing of 64-bit words, with hashes and secrets based on it. None of it is cryptography.

/// An odd constant without structure (2⁶⁴ divided by the golden ratio).
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word so that each output bit depends on each input bit: the finalizer of SplitMix64
/// (Steele, Lea, Flood 2014). Bijective: different words stay different.
pub(super) const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(GOLDEN);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Mixes two words into one: the halves of their product.
pub(super) const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    (product as u64) ^ (product >> 64) as u64
}

/// A secret of the toy key schedule, or a hash: 128 bits from which others are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Secret(u64, u64);

impl Secret {
    /// Creates a secret from two words.
    pub(super) const fn new(a: u64, b: u64) -> Self {
        Self(mix(a), mix(b ^ GOLDEN))
    }

    /// Derives another secret for the purpose `label`.
    pub(super) const fn derive(self, label: u64) -> Self {
        let first = mix(self.0 ^ mix(label));
        Self(first, mix(self.1 ^ first.rotate_left(17)))
    }

    /// Derives another secret with the words of `other`.
    pub(super) const fn join(self, other: Self) -> Self {
        self.derive(other.0).derive(other.1)
    }

    /// Derives another secret from these bytes and their number.
    pub(super) fn absorb(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words
            .iter()
            .chain([&last])
            .fold(self, |secret, word| {
                secret.derive(u64::from_le_bytes(*word))
            })
            .derive(bytes.len() as u64)
    }

    /// Fills `output` with bytes derived from the secret.
    pub(super) fn expand(self, output: &mut [u8]) {
        for (index, chunk) in output.chunks_mut(8).enumerate() {
            let Self(word, _) = self.derive(index as u64);
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }

    /// Returns 64 bits of it.
    pub(super) const fn word(self) -> u64 {
        self.0 ^ self.1.rotate_left(32)
    }
}
