//! Address validation tokens (RFC 9000, section 8.1): what a server has a client show so that it
//! need not keep anything in mind.
//!
//! A token is sealed by an AEAD under a key of the endpoint; nothing in it is looked at before it
//! proved authentic. Two kinds of them say in the sealed part which they are:
//!
//! - **Retry** tokens go out in Retry packets and come back at once. They are bound to the client's
//!   address and port, to the version and to both connection IDs, and hold for
//!   [`RETRY_LIFETIME`].
//! - Tokens for **later** go out in NEW_TOKEN frames. They are bound to the client's IP address
//!   alone, since the port will be another, and to the version, hold as long as
//!   [`ServerConfig::token_lifetime`](crate::ServerConfig::token_lifetime), and are good for one
//!   connection: see [`ReplayFilter`].
//!
//! The seal is AES-256-GCM-SIV (RFC 8452) under random nonces: it stays safe for the billions of
//! tokens that servers with a common key issue, and even where a nonce comes twice.

mod replay;
mod store;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use rand_core::Rng;
use weir_units::{Duration, Time};

pub(crate) use replay::ReplayFilter;
pub use store::TokenStore;

use crate::codec::{Reader, Truncated};
use crate::{ConnectionId, Version};

/// How long a Retry token holds: a round trip and some repetitions of packets that got lost.
pub(crate) const RETRY_LIFETIME: Duration = Duration::from_secs(15);
/// Servers' clocks may disagree by this much.
const CLOCK_SKEW: Duration = Duration::from_secs(5);

const NONCE_LENGTH: usize = 12;
const TAG_LENGTH: usize = 16;
const RETRY: u8 = 1;
const LATER: u8 = 2;

/// By what a token is known again.
pub(crate) type TokenId = [u8; NONCE_LENGTH];

/// The key that seals tokens.
pub(crate) struct TokenKey(LessSafeKey);

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// When it was issued, by the wall clock.
    pub(crate) issued: Time,
    /// The version of the connection that it was issued on (RFC 9369, section 5).
    pub(crate) version: Version,
    pub(crate) kind: TokenKind,
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// For the answer to a Retry packet.
    Retry {
        remote: SocketAddr,
        /// The destination ID of the client's first packet.
        original_destination: ConnectionId,
        /// The source ID of the Retry packet, which is the destination ID of the answer.
        retry_source: ConnectionId,
    },
    /// For a later connection.
    Later { ip: IpAddr },
}

/// A client's first packet, as far as a token is bound to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenHolder {
    pub(crate) remote: SocketAddr,
    pub(crate) version: Version,
    pub(crate) destination: ConnectionId,
}

/// What a token proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: the client is treated as if it had shown none (RFC 9000, section 8.1.3).
    Nothing,
    /// The client answers a Retry packet, so its address is validated.
    Retried {
        original_destination: ConnectionId,
        retry_source: ConnectionId,
    },
    /// The client answers a Retry packet that was not meant for it, or too late. It will take no
    /// second one, so waiting would not help it (RFC 9000, section 8.1.2).
    InvalidRetry,
    /// The client was at this address before, unless somebody plays the token again.
    Known { issued: Time, id: TokenId },
}

impl TokenKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).expect("32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// The token as it goes over the wire.
    pub(crate) fn seal(&self, token: &Token, rng: &mut impl Rng) -> Vec<u8> {
        let mut id = TokenId::default();
        rng.fill_bytes(&mut id);
        let mut sealed = id.to_vec();
        token.encode(&mut sealed);
        let nonce = Nonce::assume_unique_for_key(id);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut sealed[NONCE_LENGTH..])
            .expect("a token is far shorter than what an AEAD takes");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// What a token says, and by what it is known again; `None` where it is not authentic.
    pub(crate) fn open(&self, token: &[u8]) -> Option<(Token, TokenId)> {
        /// A Retry token with two of the longest connection IDs.
        const LONGEST: usize = NONCE_LENGTH + 1 + 8 + 4 + 18 + 2 * 21 + TAG_LENGTH;
        if token.len() > LONGEST {
            return None;
        }
        let (id, sealed) = token.split_first_chunk()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*id);
        let contents = self
            .0
            .open_in_place(nonce, Aad::empty(), &mut sealed)
            .ok()?;
        Some((Token::decode(contents)?, *id))
    }

    /// What a token proves of who bears it at the wall-clock time `now`.
    pub(crate) fn check(
        &self,
        token: &[u8],
        bearer: &TokenHolder,
        now: Time,
        lifetime: Duration,
    ) -> Verdict {
        let Some((token, id)) = self.open(token) else {
            return Verdict::Nothing;
        };
        let holds = |lifetime| {
            token.version == bearer.version
                && now <= token.issued + lifetime
                && token.issued <= now + CLOCK_SKEW
        };
        match token.kind {
            TokenKind::Retry {
                remote,
                original_destination,
                retry_source,
            } => {
                let meant = remote == canonical(bearer.remote)
                    && retry_source == bearer.destination
                    && holds(RETRY_LIFETIME);
                if meant {
                    Verdict::Retried {
                        original_destination,
                        retry_source,
                    }
                } else {
                    Verdict::InvalidRetry
                }
            }
            TokenKind::Later { ip } if ip == bearer.remote.ip().to_canonical() => {
                if holds(lifetime) {
                    let issued = token.issued;
                    Verdict::Known { issued, id }
                } else {
                    Verdict::Nothing
                }
            }
            TokenKind::Later { .. } => Verdict::Nothing,
        }
    }
}

impl Token {
    /// A token for the answer to a Retry packet that goes to `bearer` with this source ID.
    pub(crate) fn retry(issued: Time, bearer: &TokenHolder, retry_source: ConnectionId) -> Self {
        Self {
            issued,
            version: bearer.version,
            kind: TokenKind::Retry {
                remote: canonical(bearer.remote),
                original_destination: bearer.destination,
                retry_source,
            },
        }
    }

    /// A token for a later connection of a client at this address.
    pub(crate) fn later(issued: Time, version: Version, ip: IpAddr) -> Self {
        Self {
            issued,
            version,
            kind: TokenKind::Later {
                ip: ip.to_canonical(),
            },
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            TokenKind::Retry { .. } => RETRY,
            TokenKind::Later { .. } => LATER,
        });
        out.extend_from_slice(&self.version.as_u32().to_be_bytes());
        out.extend_from_slice(&self.issued.as_nanos().to_be_bytes());
        match &self.kind {
            TokenKind::Retry {
                remote,
                original_destination,
                retry_source,
            } => {
                put_ip(out, remote.ip());
                out.extend_from_slice(&remote.port().to_be_bytes());
                for id in [original_destination, retry_source] {
                    out.push(id.len() as u8);
                    out.extend_from_slice(id.as_bytes());
                }
            }
            TokenKind::Later { ip } => put_ip(out, *ip),
        }
    }

    /// Reads what a key sealed. It may still be what an older or newer program sealed.
    fn decode(contents: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(contents);
        let kind = reader.u8().ok()?;
        let version = Version::from_wire(reader.u32().ok()?)?;
        let issued = Time::from_nanos(u64::from_be_bytes(reader.array().ok()?));
        let ip = get_ip(&mut reader).ok()?;
        let kind = match kind {
            RETRY => TokenKind::Retry {
                remote: SocketAddr::new(ip, reader.u16().ok()?),
                original_destination: get_id(&mut reader)?,
                retry_source: get_id(&mut reader)?,
            },
            LATER => TokenKind::Later { ip },
            _ => return None,
        };
        reader.is_empty().then_some(Self {
            issued,
            version,
            kind,
        })
    }
}

/// The same address whether a socket shows it as IPv4 or mapped into IPv6, without IPv6's flow
/// information and scope.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// IPv4 addresses are written mapped into IPv6.
fn put_ip(out: &mut Vec<u8>, ip: IpAddr) {
    let octets = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    out.extend_from_slice(&octets);
}

fn get_ip(reader: &mut Reader<'_>) -> Result<IpAddr, Truncated> {
    let octets: [u8; 16] = reader.array()?;
    Ok(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical())
}

fn get_id(reader: &mut Reader<'_>) -> Option<ConnectionId> {
    let length = usize::from(reader.u8().ok()?);
    ConnectionId::new(reader.bytes(length).ok()?)
}

#[cfg(test)]
mod tests;
