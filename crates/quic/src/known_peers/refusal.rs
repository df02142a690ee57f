//! Control packets: why a server did not begin a connection (`docs/known-peers.md`, section 5).

use aws_lc_rs::hmac;

use super::CredentialId;
use crate::packet;

/// Why a server refuses a First packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RefusalKind {
    /// The secret is not known.
    Unknown,
    /// The key ID is before the window.
    TooOld,
    /// The key ID was used.
    Used,
}

impl RefusalKind {
    pub(crate) const fn as_u8(self) -> u8 {
        match self {
            Self::Unknown => 1,
            Self::TooOld => 2,
            Self::Used => 3,
        }
    }

    const fn from_wire(value: u8) -> Option<Self> {
        match value {
            1 => Some(Self::Unknown),
            2 => Some(Self::TooOld),
            3 => Some(Self::Used),
            _ => None,
        }
    }
}

/// The content of a Control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    pub(crate) tag: [u8; 16],
}

/// The longest Control packet.
const LONGEST: usize = 64;

impl Refusal {
    /// Returns the Control packet that answers a First packet of `length` bytes; `None` if it would
    /// be too long.
    pub(crate) fn answer(
        &self,
        destination: &[u8],
        source: &[u8],
        length: usize,
    ) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(LONGEST);
        packet::write_control_header(&mut out, destination, source);
        out.push(self.kind.as_u8());
        out.extend_from_slice(&self.tag);
        (out.len() <= LONGEST.min(length)).then_some(out)
    }

    /// Reads the bytes after the header.
    pub(crate) fn decode(content: &[u8]) -> Option<Self> {
        let (kind, tag) = content.split_first()?;
        Some(Self {
            kind: RefusalKind::from_wire(*kind)?,
            tag: tag.try_into().ok()?,
        })
    }
}

/// Returns the token with which the owner of `key` proves that it has lost a path secret.
pub(crate) fn refusal_token(key: &hmac::Key, id: &CredentialId) -> [u8; 16] {
    let tag = hmac::sign(key, id.as_bytes());
    let mut token = [0; 16];
    token.copy_from_slice(&tag.as_ref()[..16]);
    token
}
