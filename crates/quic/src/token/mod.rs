//! Address validation tokens (RFC 9000, section 8.1), which let a server validate clients without
//! storing state.
//!
//! A token is sealed by an AEAD under a key of the endpoint; its content is not used before it is
//! authenticated. The sealed part contains one of two kinds:
//!
//! - **Retry** tokens are sent in Retry packets and return at once. They are bound to the client's
//!   address and port, to the version and to both connection IDs, and are valid for
//!   [`RETRY_LIFETIME`].
//! - Tokens for **later** are sent in NEW_TOKEN frames. They are bound to the version and to the
//!   client's IP address alone, since the port will change. They are valid for
//!   [`ServerConfig::token_lifetime`](crate::ServerConfig::token_lifetime) and for one connection:
//!   see [`ReplayFilter`].
//!
//! The seal is AES-256-GCM-SIV (RFC 8452) with random nonces. It stays secure for the billions of
//! tokens of servers with a common key, even if a nonce repeats.

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

/// The lifetime of a Retry token: a round trip and some retransmissions.
pub(crate) const RETRY_LIFETIME: Duration = Duration::from_secs(15);
/// The largest clock difference between servers.
const CLOCK_SKEW: Duration = Duration::from_secs(5);

const NONCE_LENGTH: usize = 12;
const TAG_LENGTH: usize = 16;
const RETRY: u8 = 1;
const LATER: u8 = 2;

/// The ID of a token.
pub(crate) type TokenId = [u8; NONCE_LENGTH];

/// The key that seals tokens.
pub(crate) struct TokenKey(LessSafeKey);

/// The content of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The wall-clock time of issue.
    pub(crate) issued: Time,
    /// The version of the connection that it was issued on (RFC 9369, section 5).
    pub(crate) version: Version,
    pub(crate) kind: TokenKind,
}

/// The purpose of a token.
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
    NewConnection { ip: IpAddr },
}

/// The properties of a client's first packet that a token is bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenHolder {
    pub(crate) remote: SocketAddr,
    pub(crate) version: Version,
    pub(crate) destination: ConnectionId,
}

/// The result of a token check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenCheck {
    /// Nothing: the client is handled as if it had sent no token (RFC 9000, section 8.1.3).
    Nothing,
    /// The client answers a Retry packet, so its address is validated.
    Retried {
        original_destination: ConnectionId,
        retry_source: ConnectionId,
    },
    /// The client answers a Retry packet that was not meant for it, or too late. It will not accept
    /// a second one, so waiting would not help it (RFC 9000, section 8.1.2).
    InvalidRetry,
    /// The client was at this address before, unless the token is replayed.
    Known { issued: Time, id: TokenId },
}

impl TokenKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).expect("32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Seals the token for the wire.
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

    /// Returns the content and the ID of a token; `None` if it is not authentic.
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

    /// Checks a token from `bearer` at the wall-clock time `now`.
    pub(crate) fn check(
        &self,
        token: &[u8],
        bearer: &TokenHolder,
        now: Time,
        lifetime: Duration,
    ) -> TokenCheck {
        let Some((token, id)) = self.open(token) else {
            return TokenCheck::Nothing;
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
                    TokenCheck::Retried {
                        original_destination,
                        retry_source,
                    }
                } else {
                    TokenCheck::InvalidRetry
                }
            }
            TokenKind::NewConnection { ip } if ip == bearer.remote.ip().to_canonical() => {
                if holds(lifetime) {
                    let issued = token.issued;
                    TokenCheck::Known { issued, id }
                } else {
                    TokenCheck::Nothing
                }
            }
            TokenKind::NewConnection { .. } => TokenCheck::Nothing,
        }
    }
}

impl Token {
    /// Creates a token for the answer to a Retry packet to `bearer` with this source ID.
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

    /// Creates a token for a later connection of a client at this address.
    pub(crate) fn later(issued: Time, version: Version, ip: IpAddr) -> Self {
        Self {
            issued,
            version,
            kind: TokenKind::NewConnection {
                ip: ip.to_canonical(),
            },
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            TokenKind::Retry { .. } => RETRY,
            TokenKind::NewConnection { .. } => LATER,
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
            TokenKind::NewConnection { ip } => put_ip(out, *ip),
        }
    }

    /// Parses authenticated content. An older or newer program may have sealed it.
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
            LATER => TokenKind::NewConnection { ip },
            _ => return None,
        };
        reader.is_empty().then_some(Self {
            issued,
            version,
            kind,
        })
    }
}

/// Normalizes an address: IPv4 instead of IPv4 mapped into IPv6, and without IPv6's flow
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
