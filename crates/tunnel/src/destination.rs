//! Where a connection goes: a host, by name or address, and a port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest name of a host in bytes (RFC 1035, section 2.3.4).
pub const LONGEST_NAME: usize = 255;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    host: Host,
    port: u16,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Its address.
    Address(IpAddr),
    /// Its name, in lower case, which the server resolves.
    Name(String),
}

/// Text that names no destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host and port such as redis.svc:6379, 10.0.0.7:5432 or [::1]:22")]
pub struct DestinationError(String);

impl Host {
    /// Returns the host of a text: an address, or a name of letters, digits, hyphens, dots and
    /// underscores.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(is_name_byte);
        is_name.then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Destination {
    /// Creates a destination; port 0 is none.
    pub fn new(host: Host, port: u16) -> Option<Self> {
        (port != 0).then_some(Self { host, port })
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let parts = || {
            let (host, port) = text.rsplit_once(':')?;
            let bracketed = host
                .strip_prefix('[')
                .and_then(|host| host.strip_suffix(']'));
            let host = match bracketed {
                Some(inner) => {
                    Host::parse(inner).filter(|host| matches!(host, Host::Address(_)))?
                }
                None => Host::parse(host)?,
            };
            // Without brackets the last part of an IPv6 address would be the port.
            let is_ambiguous = bracketed.is_none() && matches!(host, Host::Address(IpAddr::V6(_)));
            Self::new(host, port.parse().ok()?).filter(|_| !is_ambiguous)
        };
        parts().ok_or_else(|| DestinationError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_host_and_a_port() {
        for text in ["redis.svc:6379", "10.0.0.7:5432", "[::1]:22", "a_b-c:1"] {
            let destination: Destination = text.parse().unwrap();
            assert_eq!(destination.to_string(), text);
        }
        let upper: Destination = "Redis.SVC:6379".parse().unwrap();
        assert_eq!(upper.to_string(), "redis.svc:6379");
        for wrong in [
            "redis.svc",
            ":80",
            "a:0",
            "a:65536",
            "::1:22",
            "[a]:1",
            "a b:1",
            "a/b:1",
            "",
        ] {
            assert!(wrong.parse::<Destination>().is_err(), "{wrong}");
        }
    }
}
