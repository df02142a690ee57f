//! Packet headers, as far as they can be read under header protection.

use std::ops::Range;

use super::{FIXED_BIT, KNOWN_TOKEN_LENGTH, LONG_FORM, RETRY_TAG_LENGTH, known_kind, long_kind};
use crate::codec::{Reader, Truncated};
use crate::known_peers::{CredentialId, KNOWN_PEERS_VERSION};
use crate::{ConnectionId, Level, Version};

/// The type of a packet (RFC 9000, section 17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The start of the handshake.
    Initial,
    /// The client's early data.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// A server requests a token.
    Retry,
    /// A server does not support the client's version.
    VersionNegotiation,
    /// Application data, with a short header.
    OneRtt,
    /// Application data of a client that is a known peer, before it knows the server's connection
    /// ID.
    KnownFirst,
    /// Application data of the server, until the client knows its connection ID.
    KnownAnswer,
    /// A server refuses a connection without a handshake.
    KnownControl,
}

impl Kind {
    /// Returns the level whose keys protect the packet; `None` if it has no packet protection.
    pub const fn level(self) -> Option<Level> {
        match self {
            Self::Initial => Some(Level::Initial),
            Self::ZeroRtt => Some(Level::ZeroRtt),
            Self::Handshake => Some(Level::Handshake),
            Self::OneRtt | Self::KnownFirst | Self::KnownAnswer => Some(Level::OneRtt),
            Self::Retry | Self::VersionNegotiation | Self::KnownControl => None,
        }
    }
}

/// The header of a datagram's first packet, still protected. It borrows nothing: positions are
/// offsets from the start of the parsed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The packet type.
    pub kind: Kind,
    /// The version; `None` for Version Negotiation, for a short header, which does not contain it,
    /// and for packets of known peers.
    pub version: Option<Version>,
    /// The connection ID by which the receiver routes the packet.
    pub destination: ConnectionId,
    /// The sender's connection ID; empty for a packet with a short header.
    pub source: ConnectionId,
    /// The token of an Initial or Retry packet, or the credential and the key ID of a known peer's
    /// First packet; empty for any other.
    pub token: Range<usize>,
    /// The offset of the packet number; in a Retry packet of the integrity tag, in a Version
    /// Negotiation packet of the list of versions, in a Control packet of its content.
    pub number_offset: usize,
    /// The end of the packet. Another packet may follow in the datagram.
    pub end: usize,
    /// Whether the fixed bit is set. Only an endpoint that announced `grease_quic_bit` (RFC 9287)
    /// processes packets without it; it has no meaning in Version Negotiation.
    pub fixed_bit: bool,
}

/// Why bytes are not a packet that can be processed. Such a datagram, or the rest of it, is
/// dropped; only [`UnsupportedVersion`](Self::UnsupportedVersion) may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// It ends before its header does, or before its Length.
    #[error("the packet is truncated")]
    Truncated,
    /// A long header of an unsupported version: see [`Invariants`].
    #[error("QUIC version {0:#010x} is not supported")]
    UnsupportedVersion(u32),
    /// A connection ID of more than 20 bytes.
    #[error("a connection ID is longer than 20 bytes")]
    ConnectionIdTooLong,
    /// A Retry packet without a token (RFC 9000, section 17.2.5.2).
    #[error("the Retry packet has no token")]
    EmptyRetryToken,
    /// A Version Negotiation packet whose list is empty or ends within a version (RFC 8999, section
    /// 6).
    #[error("the list of versions is empty or truncated")]
    MalformedVersionList,
    /// A short header instead of a long one.
    #[error("the packet has a short header")]
    NotLong,
}

impl From<Truncated> for HeaderError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl Header {
    /// Reads the header of the first packet in `datagram`. `short_dcid_len` is the length in bytes
    /// of the receiver's connection IDs, which a short header does not contain.
    ///
    /// # Errors
    /// [`HeaderError`] if it is not a packet that can be processed.
    pub fn decode(datagram: &[u8], short_dcid_len: usize) -> Result<Self, HeaderError> {
        let first = *datagram.first().ok_or(HeaderError::Truncated)?;
        if first & LONG_FORM == 0 {
            return Self::decode_short(datagram, short_dcid_len);
        }
        let mut reader = Reader::new(datagram);
        let invariants = Invariants::read(&mut reader)?;
        let header = match invariants.version {
            0 => Self::decode_version_negotiation(&reader, &invariants, datagram.len()),
            KNOWN_PEERS_VERSION => {
                Self::decode_known(&mut reader, first, &invariants, datagram.len())
            }
            number => match Version::from_wire(number) {
                None => Err(HeaderError::UnsupportedVersion(number)),
                Some(version) => {
                    let kind = long_kind(version, first);
                    Self::decode_long(&mut reader, kind, &invariants, datagram.len())
                }
            },
        }?;
        Ok(Self {
            fixed_bit: first & FIXED_BIT != 0,
            ..header
        })
    }

    /// Whether the datagram begins with a short header.
    #[inline]
    pub(crate) fn is_short(datagram: &[u8]) -> bool {
        datagram.first().is_some_and(|first| first & LONG_FORM == 0)
    }

    /// Reads a short header, as [`Self::decode`] does.
    #[inline(always)]
    pub(crate) fn decode_short(datagram: &[u8], dcid_len: usize) -> Result<Self, HeaderError> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        let destination = connection_id(reader.bytes(dcid_len)?)?;
        let number_offset = reader.position();
        Ok(Self {
            kind: Kind::OneRtt,
            version: None,
            destination,
            source: ConnectionId::EMPTY,
            token: number_offset..number_offset,
            number_offset,
            end: datagram.len(),
            fixed_bit: first & FIXED_BIT != 0,
        })
    }

    fn decode_version_negotiation(
        reader: &Reader<'_>,
        invariants: &Invariants<'_>,
        end: usize,
    ) -> Result<Self, HeaderError> {
        if reader.is_empty() || !reader.remaining().is_multiple_of(size_of::<u32>()) {
            return Err(HeaderError::MalformedVersionList);
        }
        let list = reader.position();
        invariants.header(Kind::VersionNegotiation, list..list, list, end)
    }

    fn decode_long(
        reader: &mut Reader<'_>,
        kind: Kind,
        invariants: &Invariants<'_>,
        datagram_end: usize,
    ) -> Result<Self, HeaderError> {
        if kind == Kind::Retry {
            return Self::decode_retry(reader, invariants, datagram_end);
        }
        let token_length = match kind {
            Kind::Initial => reader.length_prefixed()?.len(),
            _ => 0,
        };
        let token_end = reader.position();
        let length = reader.varint()?;
        let number_offset = reader.position();
        if length > reader.remaining() as u64 {
            return Err(HeaderError::Truncated);
        }
        invariants.header(
            kind,
            token_end - token_length..token_end,
            number_offset,
            number_offset + length as usize,
        )
    }

    fn decode_known(
        reader: &mut Reader<'_>,
        first: u8,
        invariants: &Invariants<'_>,
        datagram_end: usize,
    ) -> Result<Self, HeaderError> {
        let unsupported = HeaderError::UnsupportedVersion(KNOWN_PEERS_VERSION);
        let kind = known_kind(first).ok_or(unsupported)?;
        if kind == Kind::KnownControl {
            let at = reader.position();
            return invariants.header(kind, at..at, at, datagram_end);
        }
        let mut credential_at = reader.position();
        if kind == Kind::KnownFirst {
            if reader.bytes(1)? != [KNOWN_TOKEN_LENGTH] {
                return Err(unsupported);
            }
            credential_at = reader.position();
            reader.bytes(KNOWN_TOKEN_LENGTH.into())?;
        }
        let credential = credential_at..reader.position();
        let length = reader.varint()?;
        let number_offset = reader.position();
        if length > reader.remaining() as u64 {
            return Err(HeaderError::Truncated);
        }
        let end = number_offset + length as usize;
        invariants.header(kind, credential, number_offset, end)
    }

    /// Returns the credential and the key ID of a known peer's First packet in `datagram`; `None`
    /// for any other packet.
    pub fn credential(&self, datagram: &[u8]) -> Option<(CredentialId, u64)> {
        if self.kind != Kind::KnownFirst {
            return None;
        }
        let mut reader = Reader::new(datagram.get(self.token.clone())?);
        let id = CredentialId::new(reader.array().ok()?);
        let key_id = u64::from_be_bytes(reader.array().ok()?);
        Some((id, key_id))
    }

    fn decode_retry(
        reader: &Reader<'_>,
        invariants: &Invariants<'_>,
        end: usize,
    ) -> Result<Self, HeaderError> {
        let token_length = reader.remaining().checked_sub(RETRY_TAG_LENGTH);
        let tag = match token_length.ok_or(HeaderError::Truncated)? {
            0 => return Err(HeaderError::EmptyRetryToken),
            length => reader.position() + length,
        };
        invariants.header(Kind::Retry, reader.position()..tag, tag, end)
    }
}

fn connection_id(bytes: &[u8]) -> Result<ConnectionId, HeaderError> {
    ConnectionId::new(bytes).ok_or(HeaderError::ConnectionIdTooLong)
}

/// The fields of a long header in every version of QUIC (RFC 8999, section 5.1): enough to answer
/// an unknown version with Version Negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariants<'a> {
    /// The version.
    pub version: u32,
    /// The destination connection ID, up to 255 bytes.
    pub destination: &'a [u8],
    /// The source connection ID, up to 255 bytes.
    pub source: &'a [u8],
}

impl<'a> Invariants<'a> {
    /// Reads the start of a datagram.
    ///
    /// # Errors
    /// [`HeaderError::NotLong`] for a short header, [`HeaderError::Truncated`].
    pub fn decode(datagram: &'a [u8]) -> Result<Self, HeaderError> {
        Self::read(&mut Reader::new(datagram))
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, HeaderError> {
        if reader.u8()? & LONG_FORM == 0 {
            return Err(HeaderError::NotLong);
        }
        let version = reader.u32()?;
        let destination_length = usize::from(reader.u8()?);
        let destination = reader.bytes(destination_length)?;
        let source_length = usize::from(reader.u8()?);
        let source = reader.bytes(source_length)?;
        Ok(Self {
            version,
            destination,
            source,
        })
    }

    fn header(
        &self,
        kind: Kind,
        token: Range<usize>,
        number_offset: usize,
        end: usize,
    ) -> Result<Header, HeaderError> {
        Ok(Header {
            kind,
            version: Version::from_wire(self.version),
            destination: connection_id(self.destination)?,
            source: connection_id(self.source)?,
            token,
            number_offset,
            end,
            fixed_bit: true,
        })
    }
}

/// Returns the versions in a Version Negotiation packet, given its header.
pub fn supported_versions<'a>(
    packet: &'a [u8],
    header: &Header,
) -> impl Iterator<Item = u32> + use<'a> {
    let list = match header.kind {
        Kind::VersionNegotiation => packet.get(header.number_offset..header.end),
        _ => None,
    };
    let (versions, _) = list.unwrap_or_default().as_chunks();
    versions.iter().map(|version| u32::from_be_bytes(*version))
}

/// The content of a Retry packet (RFC 9000, section 17.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// The token for the client's next Initial packet; not empty.
    pub token: &'a [u8],
    /// The packet without its tag, the input of the tag (RFC 9001, section 5.8).
    pub signed: &'a [u8],
    /// The integrity tag.
    pub tag: [u8; 16],
}

impl<'a> Retry<'a> {
    /// Reads the content of a Retry packet, given its header; `None` for any other packet.
    pub fn decode(packet: &'a [u8], header: &Header) -> Option<Self> {
        if header.kind != Kind::Retry {
            return None;
        }
        let (signed, tag) = packet.get(..header.end)?.split_last_chunk()?;
        Some(Self {
            token: packet.get(header.token.clone())?,
            signed,
            tag: *tag,
        })
    }
}
