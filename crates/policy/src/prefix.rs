//! Address prefixes (CIDR: RFC 4632, RFC 4291 section 2.3).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address prefix: `10.0.0.0/8`, `2001:db8::/32`. A single address is a prefix of full length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// A text that is no address prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem}; write for example 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1")]
pub struct PrefixError {
    text: String,
    problem: String,
}

impl Prefix {
    /// Returns the first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the prefix length in bits.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Returns whether the address has this prefix. IPv4-mapped addresses (`::ffff:10.0.0.1`) count
    /// as version 4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.length);
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.length);
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }

    /// Returns the first address of a prefix.
    fn first(address: IpAddr, length: u8) -> IpAddr {
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        }
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let wrong = |problem: String| PrefixError {
            text: text.to_owned(),
            problem,
        };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr =
            (address.parse()).map_err(|_| wrong(format!("`{address}` is no IP address")))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            Some(length) => (length.parse().ok())
                .filter(|length| *length <= longest)
                .ok_or_else(|| wrong(format!("the length of a prefix is 0 to {longest}")))?,
        };
        let first = Self::first(address, length);
        if first != address {
            return Err(wrong(format!(
                "there are bits behind the prefix; {first}/{length} is the set that it lies in"
            )));
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
