//! HKDF-Expand with SHA-256 (RFC 5869, section 2.3).

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};

/// The length of derived key material.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives `output.len()` bytes for these parts of a purpose.
///
/// # Errors
/// More than 255 blocks of 32 bytes.
pub(super) fn try_expand(
    key: &[u8; 32],
    purpose: &[&[u8]],
    output: &mut [u8],
) -> Result<(), Unspecified> {
    Prk::new_less_safe(HKDF_SHA256, key)
        .expand(purpose, Length(output.len()))
        .and_then(|okm| okm.fill(output))
}

/// Derives at most three blocks.
pub(super) fn expand(key: &[u8; 32], purpose: &[&[u8]], output: &mut [u8]) {
    try_expand(key, purpose, output).expect("HKDF gives 255 blocks");
}
