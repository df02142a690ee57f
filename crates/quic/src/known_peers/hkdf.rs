//! HKDF-Expand with SHA-256 (RFC 5869, section 2.3).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Compiles only where the hash states of a key are cleared at its end: HMAC is two of them.
const _: () = {
    const fn is_cleared<T: ZeroizeOnDrop>() {}
    is_cleared::<Sha256>();
};

/// The most bytes that HKDF derives from a key.
const MOST: usize = 255 * 32;

/// A pseudorandom key, as the hash states after HMAC's two padded blocks: half of the work for each
/// derivation of few bytes. They are cleared at its end.
#[derive(Clone)]
pub(super) struct PseudorandomKey(Hmac<Sha256>);

/// More than 255 blocks of 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLong;

impl PseudorandomKey {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    /// Derives `output.len()` bytes for these parts of a purpose.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(super) fn try_expand(&self, purpose: &[&[u8]], output: &mut [u8]) -> Result<(), TooLong> {
        if output.len() > MOST {
            return Err(TooLong);
        }
        let mut block = [0; 32];
        for (number, part) in (1..=u8::MAX).zip(output.chunks_mut(32)) {
            let mut mac = self.0.clone();
            if number > 1 {
                mac.update(&block);
            }
            purpose.iter().for_each(|part| mac.update(part));
            mac.update(&[number]);
            block = mac.finalize().into_bytes().into();
            part.copy_from_slice(&block[..part.len()]);
        }
        block.zeroize();
        Ok(())
    }

    /// Derives at most three blocks.
    pub(super) fn expand(&self, purpose: &[&[u8]], output: &mut [u8]) {
        self.try_expand(purpose, output)
            .expect("HKDF gives 255 blocks");
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
    use proptest::prelude::*;

    use super::*;

    struct Length(usize);

    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }

    proptest! {
        #[test]
        fn it_derives_what_another_implementation_does(
            key in any::<[u8; 32]>(),
            purpose in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
            length in prop_oneof![0..200_usize, MOST - 40..=MOST],
        ) {
            let purpose: Vec<&[u8]> = purpose.iter().map(Vec::as_slice).collect();
            let mut ours = vec![0; length];
            PseudorandomKey::new(&key).expand(&purpose, &mut ours);
            let mut theirs = vec![0; length];
            let prk = Prk::new_less_safe(HKDF_SHA256, &key);
            prk.expand(&purpose, Length(length)).unwrap().fill(&mut theirs).unwrap();
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn no_more_than_255_blocks_are_derived() {
        let key = PseudorandomKey::new(&[1; 32]);
        assert!(key.try_expand(&[b"x"], &mut [0; MOST]).is_ok());
        assert!(key.try_expand(&[b"x"], &mut [0; MOST + 1]).is_err());
    }
}
