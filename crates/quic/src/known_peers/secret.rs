//! A path secret, and what is derived from it (`docs/known-peers.md`, sections 2.1 and 3).

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use zeroize::Zeroize;

use super::KeyId;
use super::hkdf::PseudorandomKey;
use super::keys::{KnownKeyUpdates, keys};
use super::refusal::RefusalKind;
use crate::Side;
use crate::crypto::{KeyUpdates, Keys};

const SALT: &[u8] = b"weir known peers 1";
/// Key, IV, header protection key, and the secret of the next key phase.
const PHASE_LENGTH: usize = 16 + 12 + 16 + 32;

/// The name of a path secret, which nobody without the secret can guess.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialId([u8; CredentialId::LENGTH]);

impl CredentialId {
    /// Its length in bytes.
    pub const LENGTH: usize = 16;

    pub(crate) const fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, _) = self.0.split_at(8);
        write!(f, "CredentialId({number:02x?}...)")
    }
}

/// A path secret: the pseudorandom key of HKDF. Its memory is cleared at its end.
pub(crate) struct PathSecret {
    key: PseudorandomKey,
    id: CredentialId,
}

impl PathSecret {
    /// Takes the exported keying material of a handshake.
    pub(crate) fn from_exported(exported: &[u8]) -> Self {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SALT), exported);
        let mut key = [0; 32];
        key.copy_from_slice(tag.as_ref());
        let mut id = [0; CredentialId::LENGTH];
        let prk = PseudorandomKey::new(&key);
        key.zeroize();
        prk.expand(&[b"credential"], &mut id);
        Self {
            key: prk,
            id: CredentialId(id),
        }
    }

    /// Returns its name.
    pub(crate) fn id(&self) -> CredentialId {
        self.id
    }

    /// Returns the keys of the connection with this key ID, and the source of its key updates.
    pub(crate) fn keys(&self, key_id: KeyId, side: Side) -> (Keys, Box<dyn KeyUpdates>) {
        let mut phases = [[0; PHASE_LENGTH]; 2];
        for (direction, phase) in (0u8..).zip(&mut phases) {
            let purpose: [&[u8]; 3] = [b"keys", &[direction], &key_id.to_be_bytes()];
            self.key.expand(&purpose, phase);
        }
        if side == Side::Server {
            phases.reverse();
        }
        let [local, remote] = &phases;
        let split = |phase| {
            let (parts, next) =
                <[u8]>::split_last_chunk(phase).expect("a phase ends with a secret");
            (parts, *next)
        };
        let ((local, next_local), (remote, next_remote)) = (split(local), split(remote));
        let keys = keys(local, remote);
        phases.zeroize();
        let updates = KnownKeyUpdates::new(next_local, next_remote);
        (keys, Box::new(updates))
    }

    /// Derives keying material for the application on the connection with this key ID.
    pub(crate) fn export(
        &self,
        key_id: KeyId,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> bool {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, context);
        let Ok(length) = u16::try_from(label.len()) else {
            return false;
        };
        let purpose: [&[u8]; 5] = [
            b"exporter",
            &key_id.to_be_bytes(),
            &length.to_be_bytes(),
            label,
            digest.as_ref(),
        ];
        self.key.try_expand(&purpose, output).is_ok()
    }

    /// Returns the tag of a refusal of this key ID.
    pub(crate) fn refusal_tag(&self, kind: RefusalKind, key_id: KeyId) -> [u8; 16] {
        let mut control = [0; 32];
        self.key.expand(&[b"control"], &mut control);
        let mut input = [0; 9];
        input[0] = kind.as_u8();
        input[1..].copy_from_slice(&key_id.to_be_bytes());
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &control), &input);
        control.zeroize();
        let mut short = [0; 16];
        short.copy_from_slice(&tag.as_ref()[..16]);
        short
    }
}

/// Whether two tags are equal, in constant time.
pub(super) fn tags_are_equal(one: &[u8; 16], other: &[u8; 16]) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}

impl fmt::Debug for PathSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathSecret").field(&self.id).finish()
    }
}
