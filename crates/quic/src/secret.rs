//! An endpoint's secret and the keys derived from it: the key of address validation tokens, and the
//! stateless reset tokens of its connection IDs (RFC 9000, sections 8.1 and 10.3).

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::ConnectionId;
use crate::token::TokenKey;

/// The length of a stateless reset token in bytes.
pub(crate) const RESET_TOKEN_LENGTH: usize = 16;

/// The secret of an endpoint, 32 random bytes.
///
/// Servers with the same secret accept each other's address validation tokens. A server that
/// restarts with its old secret can notify its former peers that their connections are gone. Two
/// endpoints that run at the same time with one secret must not issue the same connection IDs,
/// which random ones of 8 bytes avoid.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EndpointSecret([u8; 32]);

impl EndpointSecret {
    /// Creates a secret from these bytes, which must be unpredictable.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Derives a secret from an endpoint's seed; the seed cannot be derived from it.
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Self {
        Self(derive(seed, b"weir endpoint secret"))
    }
}

impl fmt::Debug for EndpointSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndpointSecret")
    }
}

/// A token that proves that an endpoint has lost a connection's state.
pub(crate) type ResetToken = [u8; RESET_TOKEN_LENGTH];

/// The lookup key of a peer's reset token. A lookup, and its duration, reveal nothing about the
/// token itself (RFC 9000, section 10.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResetTokenDigest([u8; RESET_TOKEN_LENGTH]);

/// The keys derived from an endpoint's secret.
pub(crate) struct EndpointKeys {
    pub(crate) tokens: TokenKey,
    resets: hmac::Key,
    digests: hmac::Key,
    /// The key of the tokens that prove the loss of path secrets.
    pub(crate) refusals: hmac::Key,
}

impl EndpointKeys {
    pub(crate) fn new(secret: &EndpointSecret) -> Self {
        let key = |purpose| derive(&secret.0, purpose);
        let mac = |purpose| hmac::Key::new(hmac::HMAC_SHA256, &key(purpose));
        Self {
            tokens: TokenKey::new(&key(b"weir address validation tokens")),
            resets: mac(b"weir stateless reset tokens"),
            digests: mac(b"weir stateless reset token digests"),
            refusals: mac(b"weir refusals of path secrets"),
        }
    }

    /// Returns the reset token of one of our connection IDs: always the same, so that it needs no
    /// memory (RFC 9000, section 10.3.2).
    pub(crate) fn reset_token(&self, id: &ConnectionId) -> ResetToken {
        truncated(&hmac::sign(&self.resets, id.as_bytes()))
    }

    /// Returns the lookup key of a peer's reset token.
    pub(crate) fn digest(&self, token: &ResetToken) -> ResetTokenDigest {
        ResetTokenDigest(truncated(&hmac::sign(&self.digests, token)))
    }
}

/// Whether two reset tokens are equal, in constant time.
pub(crate) fn tokens_are_equal(one: &ResetToken, other: &ResetToken) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}

/// Derives a key for one purpose.
fn derive(secret: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), purpose);
    let mut key = [0; 32];
    key.copy_from_slice(tag.as_ref());
    key
}

fn truncated(tag: &hmac::Tag) -> [u8; RESET_TOKEN_LENGTH] {
    let mut token = [0; RESET_TOKEN_LENGTH];
    token.copy_from_slice(&tag.as_ref()[..RESET_TOKEN_LENGTH]);
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_tokens_depend_only_on_secret_and_connection_id() {
        let id = |byte| ConnectionId::new(&[byte; 8]).unwrap();
        let [one, same, other] = [1, 1, 2].map(|byte| {
            let secret = EndpointSecret::from_seed(&[byte; 32]);
            EndpointKeys::new(&secret)
        });
        assert_eq!(one.reset_token(&id(1)), same.reset_token(&id(1)));
        assert_ne!(one.reset_token(&id(1)), one.reset_token(&id(2)));
        assert_ne!(one.reset_token(&id(1)), other.reset_token(&id(1)));
        let token = one.reset_token(&id(1));
        assert!(one.digest(&token) == same.digest(&token));
        assert!(one.digest(&token) != other.digest(&token));
        assert!(tokens_are_equal(&token, &same.reset_token(&id(1))));
        assert!(!tokens_are_equal(&token, &one.reset_token(&id(2))));
    }

    #[test]
    fn secrets_are_not_printed_in_debug_output() {
        let secret = EndpointSecret::new([0x5a; 32]);
        assert_eq!(format!("{secret:?}"), "EndpointSecret");
    }
}
