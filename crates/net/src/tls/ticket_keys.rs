//! Keys of session tickets that several servers share, so that a client resumes its session at any of
//! them (RFC 8446, section 4.6.1).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::server::ProducesTickets;

use super::identity::read;
use super::{Fingerprint, TlsError};

/// How long a ticket is valid, in seconds.
const LIFETIME: u32 = 12 * 3600;
/// The first bytes of a ticket name its key.
const NAME: usize = 4;
/// Most keys of a file: one current and several previous ones.
const MOST_KEYS: usize = 16;

/// Secrets from which servers make session tickets: the first one seals new tickets, and all open those
/// of clients.
///
/// Who has a secret cannot read recorded connections, each of which has a key exchange of its own, but can
/// impersonate the client whose ticket it has seen, and the server towards that client. Rotate: put a new
/// line first, keep the last one for the 12 hours that tickets live, and delete the others. Servers
/// that know a new key only later refuse its tickets, and clients have full handshakes: so first
/// distribute a new key in the second line, then move it to the first.
#[derive(Clone)]
pub struct TicketKeys {
    keys: Vec<Arc<TicketKey>>,
    file: Option<PathBuf>,
}

struct TicketKey {
    name: [u8; NAME],
    key: LessSafeKey,
    fingerprint: Fingerprint,
}

impl TicketKey {
    fn new(secret: &[u8; 32]) -> Result<Self, TlsError> {
        let key = UnboundKey::new(&AES_256_GCM_SIV, secret).map_err(|_| TlsError::TicketKey)?;
        let fingerprint = Fingerprint::of(&[b"weir ticket key".as_slice(), secret].concat());
        let mut name = [0; NAME];
        name.copy_from_slice(&fingerprint.bytes()[..NAME]);
        Ok(Self {
            name,
            key: LessSafeKey::new(key),
            fingerprint,
        })
    }
}

impl TicketKeys {
    /// Uses these secrets, the current one first.
    ///
    /// # Errors
    /// [`TlsError::NoTicketKey`] without any.
    pub fn from_secrets(secrets: &[[u8; 32]]) -> Result<Self, TlsError> {
        Self::new(secrets, &"the given secrets")
    }

    /// Reads a file with a secret in each line, 64 hexadecimal digits as of `openssl rand -hex 32`, the
    /// current one first. Empty lines, and those that begin with `#`, are skipped. Credentials read it
    /// again when they are reloaded.
    ///
    /// # Errors
    /// [`TlsError::Read`] or [`TlsError::NoTicketKey`] with the file's name.
    pub fn from_file(file: impl AsRef<Path>) -> Result<Self, TlsError> {
        let file = file.as_ref();
        let bytes = read(file)?;
        let missing = || TlsError::NoTicketKey {
            origin: file.display().to_string(),
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| missing())?;
        let lines = text.lines().map(str::trim);
        let secrets: Option<Vec<_>> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(secret)
            .collect();
        let keys = Self::new(&secrets.ok_or_else(missing)?, &file.display())?;
        Ok(Self {
            file: Some(file.to_owned()),
            ..keys
        })
    }

    fn new(secrets: &[[u8; 32]], origin: &dyn fmt::Display) -> Result<Self, TlsError> {
        if !(1..=MOST_KEYS).contains(&secrets.len()) {
            return Err(TlsError::NoTicketKey {
                origin: origin.to_string(),
            });
        }
        let keys: Result<Vec<_>, _> = secrets
            .iter()
            .map(|secret| TicketKey::new(secret).map(Arc::new))
            .collect();
        Ok(Self {
            keys: keys?,
            file: None,
        })
    }

    pub(super) fn reread(&self) -> Result<Self, TlsError> {
        match &self.file {
            Some(file) => Self::from_file(file),
            None => Ok(self.clone()),
        }
    }

    /// Returns the source of tickets that only servers with the same keys and the same `context`
    /// accept.
    pub(super) fn tickets(&self, context: Fingerprint) -> Arc<dyn ProducesTickets> {
        Arc::new(SharedTickets {
            keys: self.clone(),
            context,
        })
    }
}

impl PartialEq for TicketKeys {
    fn eq(&self, other: &Self) -> bool {
        let fingerprints =
            |keys: &Self| -> Vec<_> { keys.keys.iter().map(|key| key.fingerprint).collect() };
        fingerprints(self) == fingerprints(other)
    }
}

impl fmt::Debug for TicketKeys {
    /// Omits the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys")
            .field("keys", &self.keys.len())
            .field("file", &self.file)
            .finish()
    }
}

fn secret(line: &str) -> Option<[u8; 32]> {
    // The same form as a fingerprint's.
    line.parse::<Fingerprint>()
        .ok()
        .map(|digits| digits.bytes())
}

/// Seals tickets: the key's name, a nonce, and the time and the session, sealed.
#[derive(Debug)]
struct SharedTickets {
    keys: TicketKeys,
    /// What a session depends on: clients that one server accepted by other rules than another one's
    /// must not resume there.
    context: Fingerprint,
}

fn seconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

impl SharedTickets {
    fn seal_at(&self, now: u64, session: &[u8]) -> Option<Vec<u8>> {
        let key = self.keys.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce).ok()?;
        let mut sealed = Vec::with_capacity(NAME + NONCE_LEN + 8 + session.len() + 16);
        sealed.extend_from_slice(&now.to_be_bytes());
        sealed.extend_from_slice(session);
        let aad = Aad::from(self.context.bytes());
        let unique = Nonce::assume_unique_for_key(nonce);
        (key.key)
            .seal_in_place_append_tag(unique, aad, &mut sealed)
            .ok()?;
        Some([&key.name[..], &nonce, &sealed].concat())
    }

    fn open_at(&self, now: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let key = self.keys.keys.iter().find(|key| key.name == *name)?;
        let mut sealed = sealed.to_vec();
        let aad = Aad::from(self.context.bytes());
        let unique = Nonce::assume_unique_for_key(*nonce);
        let opened = key.key.open_in_place(unique, aad, &mut sealed).ok()?;
        let (issued, session) = opened.split_first_chunk()?;
        let age = now.saturating_sub(u64::from_be_bytes(*issued));
        (age <= u64::from(LIFETIME)).then(|| session.to_vec())
    }
}

impl ProducesTickets for SharedTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.seal_at(seconds_since_1970(), session)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open_at(seconds_since_1970(), ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets(secrets: &[[u8; 32]], context: &[u8]) -> SharedTickets {
        SharedTickets {
            keys: TicketKeys::from_secrets(secrets).unwrap(),
            context: Fingerprint::of(context),
        }
    }

    #[test]
    fn a_ticket_opens_with_its_key_context_and_age_only() {
        let old = tickets(&[[1; 32]], b"trust");
        let ticket = old.seal_at(1000, b"session").unwrap();
        let opened = |other: &SharedTickets, now| other.open_at(now, &ticket);
        let lifetime = u64::from(LIFETIME);
        assert_eq!(opened(&old, 1000).unwrap(), b"session");
        assert_eq!(opened(&old, 1000 + lifetime).unwrap(), b"session");
        assert_eq!(opened(&old, 1001 + lifetime), None);
        let rotated = tickets(&[[2; 32], [1; 32]], b"trust");
        assert_eq!(opened(&rotated, 1000).unwrap(), b"session");
        assert_ne!(
            rotated.seal_at(1000, b"session").unwrap()[..NAME],
            ticket[..NAME]
        );
        assert_eq!(opened(&tickets(&[[2; 32]], b"trust"), 1000), None);
        assert_eq!(opened(&tickets(&[[1; 32]], b"other"), 1000), None);
        for bit in 0..8 * ticket.len() {
            let mut changed = ticket.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(old.open_at(1000, &changed), None);
        }
        for length in 0..ticket.len() {
            assert_eq!(old.open_at(1000, &ticket[..length]), None);
        }
    }

    #[test]
    fn files_hold_a_secret_per_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tickets");
        let (first, second) = ("01".repeat(32), "02".repeat(32));
        std::fs::write(&file, format!("# current\n{first}\n\n{second}\n")).unwrap();
        let keys = TicketKeys::from_file(&file).unwrap();
        assert!(keys == TicketKeys::from_secrets(&[[1; 32], [2; 32]]).unwrap());
        assert!(keys == keys.reread().unwrap());
        assert!(!format!("{keys:?}").contains("01"));
        for wrong in [
            "",
            "# none\n",
            "0101\n",
            &format!("{first}\nx\n"),
            &format!("{first}\n").repeat(17),
        ] {
            std::fs::write(&file, wrong).unwrap();
            let error = keys.reread().unwrap_err();
            assert!(error.to_string().contains("tickets"), "{error}");
        }
    }
}
