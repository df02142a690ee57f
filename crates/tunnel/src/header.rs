//! What a client sends first on each stream.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version: 1 |
//! | 1 | protocol: 6 for TCP, 17 for UDP (IANA's numbers) |
//! | 1 | what the destination's host is: 4 and 6 an address, 0 a name |
//! | 1 | length of the host: 4, 16, or 1 to 255 |
//! | … | the host |
//! | 2 | the destination's port |
//! | 1 | the application's address: 4, 6, or 0 for none |
//! | … | that address and its port, 6 or 18 bytes |
//!
//! Numbers are big-endian. The application's bytes follow at once.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::destination::{Destination, Host};

/// The version of the protocol.
pub const VERSION: u8 = 1;
/// The longest header in bytes.
pub const LONGEST: usize = 4 + 255 + 2 + 1 + 18;

const ADDRESS_4: u8 = 4;
const ADDRESS_6: u8 = 6;
const NAME: u8 = 0;

/// The transport protocol of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A byte stream: the stream itself.
    Tcp,
    /// Datagrams, which name the stream; it has no bytes but the header.
    Udp,
}

/// Where a stream goes, and on whose behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The transport protocol.
    pub protocol: Protocol,
    /// The destination.
    pub destination: Destination,
    /// The application's address at the client, where it is told.
    pub source: Option<SocketAddr>,
}

/// Bytes that are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The peer has another version.
    #[error("the other end has version {0} of the protocol, this one {VERSION}")]
    Version(u8),
    /// A field has a value that it cannot have.
    #[error("the {0} is not valid")]
    Field(&'static str),
}

impl Protocol {
    const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

impl Header {
    /// Appends the header to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&[VERSION, self.protocol.number()]);
        match self.destination.host() {
            Host::Address(IpAddr::V4(address)) => {
                buffer.extend_from_slice(&[ADDRESS_4, 4]);
                buffer.extend_from_slice(&address.octets());
            }
            Host::Address(IpAddr::V6(address)) => {
                buffer.extend_from_slice(&[ADDRESS_6, 16]);
                buffer.extend_from_slice(&address.octets());
            }
            Host::Name(name) => {
                // A name has at most 255 bytes.
                buffer.extend_from_slice(&[NAME, name.len() as u8]);
                buffer.extend_from_slice(name.as_bytes());
            }
        }
        buffer.extend_from_slice(&self.destination.port().to_be_bytes());
        match self.source {
            None => buffer.push(0),
            Some(source) => {
                match source.ip() {
                    IpAddr::V4(address) => {
                        buffer.push(ADDRESS_4);
                        buffer.extend_from_slice(&address.octets());
                    }
                    IpAddr::V6(address) => {
                        buffer.push(ADDRESS_6);
                        buffer.extend_from_slice(&address.octets());
                    }
                }
                buffer.extend_from_slice(&source.port().to_be_bytes());
            }
        }
    }

    /// Decodes the header at the beginning of `bytes`; returns it with its length, or `None` where more
    /// bytes are needed.
    ///
    /// # Errors
    /// [`HeaderError`] as soon as the bytes cannot become a header.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, HeaderError> {
        let mut reader = Reader { rest: bytes };
        let decoded = Self::read(&mut reader)?;
        Ok(decoded.map(|header| (header, bytes.len() - reader.rest.len())))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, HeaderError> {
        let Some([version]) = reader.take() else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let Some([protocol]) = reader.take() else {
            return Ok(None);
        };
        let protocol = match protocol {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            _ => return Err(HeaderError::Field("protocol")),
        };
        let Some([kind, length]) = reader.take() else {
            return Ok(None);
        };
        let host = match (kind, length) {
            (ADDRESS_4, 4) => reader.address_4(),
            (ADDRESS_6, 16) => reader.address_6(),
            (NAME, 1..) => match reader.slice(length.into()) {
                Some(name) => Some(read_name(name)?),
                None => None,
            },
            _ => return Err(HeaderError::Field("kind of host")),
        };
        let Some(host) = host else {
            return Ok(None);
        };
        let Some(port) = reader.take().map(u16::from_be_bytes) else {
            return Ok(None);
        };
        let destination = Destination::new(host, port).ok_or(HeaderError::Field("port"))?;
        let Some([kind]) = reader.take() else {
            return Ok(None);
        };
        let source = match kind {
            0 => None,
            ADDRESS_4 | ADDRESS_6 => match reader.socket_address(kind) {
                Some(source) => Some(source),
                None => return Ok(None),
            },
            _ => return Err(HeaderError::Field("kind of the application's address")),
        };
        Ok(Some(Self {
            protocol,
            destination,
            source,
        }))
    }
}

/// Reads a name, which is none that could be an address.
fn read_name(name: &[u8]) -> Result<Host, HeaderError> {
    let text = std::str::from_utf8(name).map_err(|_| HeaderError::Field("name"))?;
    match Host::parse(text) {
        Some(host @ Host::Name(_)) => Ok(host),
        _ => Err(HeaderError::Field("name")),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*first)
    }

    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(first)
    }

    fn address_4(&mut self) -> Option<Host> {
        let octets: [u8; 4] = self.take()?;
        Some(Host::Address(Ipv4Addr::from(octets).into()))
    }

    fn address_6(&mut self) -> Option<Host> {
        let octets: [u8; 16] = self.take()?;
        Some(Host::Address(
            IpAddr::from(Ipv6Addr::from(octets)).to_canonical(),
        ))
    }

    fn socket_address(&mut self, kind: u8) -> Option<SocketAddr> {
        let host = match kind {
            ADDRESS_4 => IpAddr::from(self.take::<4>()?),
            _ => IpAddr::from(self.take::<16>()?),
        };
        let port = u16::from_be_bytes(self.take()?);
        Some(SocketAddr::new(host, port))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host() -> impl Strategy<Value = Host> {
        prop_oneof![
            any::<Ipv4Addr>().prop_map(|address| Host::Address(address.into())),
            any::<Ipv6Addr>()
                .prop_map(|address| Host::Address(IpAddr::from(address).to_canonical())),
            "[a-z_-][a-z0-9._-]{0,254}".prop_map(Host::Name),
        ]
    }

    fn header() -> impl Strategy<Value = Header> {
        let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp)];
        (protocol, host(), 1u16.., any::<Option<SocketAddr>>()).prop_map(
            |(protocol, host, port, source)| Header {
                protocol,
                destination: Destination::new(host, port).unwrap(),
                // A flow label and a scope are not told.
                source: source.map(|source| SocketAddr::new(source.ip(), source.port())),
            },
        )
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(header in header(), rest: [u8; 3]) {
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            let length = bytes.len();
            prop_assert!(length <= LONGEST);
            for short in 0..length {
                prop_assert_eq!(Header::decode(&bytes[..short]), Ok(None));
            }
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(Header::decode(&bytes), Ok(Some((header, length))));
        }

        #[test]
        fn any_bytes_end_in_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), LONGEST..400)) {
            prop_assert_ne!(Header::decode(&bytes), Ok(None));
        }
    }

    #[test]
    fn what_is_not_valid_is_named() {
        let field = |name| Err(HeaderError::Field(name));
        assert_eq!(Header::decode(&[2]), Err(HeaderError::Version(2)));
        assert_eq!(Header::decode(&[1, 1]), field("protocol"));
        assert_eq!(Header::decode(&[1, 6, 4, 5]), field("kind of host"));
        assert_eq!(Header::decode(&[1, 6, 0, 0]), field("kind of host"));
        assert_eq!(Header::decode(b"\x01\x06\x00\x01/"), field("name"));
        // An address is told as one.
        assert_eq!(Header::decode(b"\x01\x06\x00\x07127.0.1"), Ok(None));
        assert_eq!(Header::decode(b"\x01\x06\x00\x09127.0.0.1"), field("name"));
        assert_eq!(Header::decode(b"\x01\x06\x00\x01a\0\0"), field("port"));
        let kind = "kind of the application's address";
        assert_eq!(Header::decode(b"\x01\x06\x00\x01a\0\x01\x05"), field(kind));
    }
}
