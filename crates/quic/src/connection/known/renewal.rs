//! Renewal of a path secret on an open connection, by a Diffie-Hellman exchange
//! (`docs/known-peers.md`, section 2.3).

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use rand_core::Rng;
use weir_units::{Duration, Time};
use zeroize::Zeroize;

use crate::TransportError;
use crate::connection::Connection;
use crate::connection::control_frames::PathKey;
use crate::connection::receive::violation;
use crate::known_peers::PathSecret;

/// The exporter's label of the part of a renewed secret that comes from the connection.
const LABEL: &[u8] = b"EXPORTER-weir-known-peers renewal";
/// A server answers at most one renewal of a connection in this time.
const SHORTEST: Duration = Duration::from_millis(100);

/// The renewals of a connection.
#[derive(Default)]
pub(super) struct Renewal {
    /// When a client renews the secret.
    pub(super) due: Option<Time>,
    /// A client's key, until the server answers.
    key: Option<PrivateKey>,
    /// When a server answered last.
    answered: Option<Time>,
}

impl Connection {
    /// Returns when a client renews the secret.
    pub(in crate::connection) fn renewal_deadline(&self) -> Option<Time> {
        let due = self.known.renewal.due;
        due.filter(|_| self.handshake.confirmed)
    }

    /// Begins the renewal of the secret, if it is due.
    pub(in crate::connection) fn renew_secret_if_due(&mut self, now: Time) {
        if self.renewal_deadline().is_none_or(|due| now < due) {
            return;
        }
        let claimed = self.claim_renewal(now);
        self.known.renewal.due = claimed.err().flatten();
        if claimed.is_ok()
            && let Some((key, public)) = new_key(&mut self.rng)
        {
            self.known.renewal.key = Some(key);
            self.control.send_key(PathKey::Request(public));
        }
    }

    /// Returns our key for a client's, and the secret of both.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for an invalid key, or for one that follows the last one too soon.
    pub(in crate::connection) fn answer_key(
        &mut self,
        now: Time,
        theirs: &[u8; 32],
    ) -> Result<Option<([u8; 32], PathSecret)>, TransportError> {
        let last = self.known.renewal.answered.replace(now);
        if last.is_some_and(|last| now < last + SHORTEST) {
            return Err(violation("a path secret renewed too often"));
        }
        let Some((key, public)) = new_key(&mut self.rng) else {
            return Ok(None);
        };
        let secret = self.renewed(&key, theirs)?;
        Ok(secret.map(|secret| (public, secret)))
    }

    /// Takes the server's key, the answer to ours; returns the secret of both.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for an invalid key, or without a key of ours.
    pub(in crate::connection) fn take_answered_key(
        &mut self,
        theirs: &[u8; 32],
    ) -> Result<Option<PathSecret>, TransportError> {
        let Some(key) = self.known.renewal.key.take() else {
            return Err(violation("an answer to no renewal"));
        };
        self.renewed(&key, theirs)
    }

    /// Returns the secret of both keys and this connection; `None` if it exports no keying material.
    fn renewed(
        &self,
        ours: &PrivateKey,
        theirs: &[u8; 32],
    ) -> Result<Option<PathSecret>, TransportError> {
        let mut material = [0; 64];
        let (exported, shared) = material.split_at_mut(32);
        if !self.session.export(exported, LABEL, b"") {
            return Ok(None);
        }
        let theirs = UnparsedPublicKey::new(&X25519, theirs);
        let invalid = violation("an invalid key for a path secret");
        agree(ours, theirs, invalid, |agreed| {
            shared.copy_from_slice(agreed);
            Ok(())
        })?;
        let secret = PathSecret::from_exported(&material);
        material.zeroize();
        Ok(Some(secret))
    }
}

/// Returns a new key and its public part.
fn new_key(rng: &mut impl Rng) -> Option<(PrivateKey, [u8; 32])> {
    let mut seed = [0; 32];
    rng.fill_bytes(&mut seed);
    let key = PrivateKey::from_private_key(&X25519, &seed).ok();
    seed.zeroize();
    let key = key?;
    let public = key.compute_public_key().ok()?;
    let public = public.as_ref().try_into().ok()?;
    Some((key, public))
}
