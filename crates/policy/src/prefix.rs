//! Sets of addresses (CIDR: RFC 4632, RFC 4291 section 2.3).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses that begin with the same bits: `10.0.0.0/8`, `2001:db8::/32`. An address alone is a
/// set of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// A text that is no set of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem}; write for example 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1")]
pub struct PrefixError {
    text: String,
    problem: String,
}

impl Prefix {
    /// The first of the addresses.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits they have in common.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether the address is one of them. Addresses of version 4 that are written as version 6
    /// (`::ffff:10.0.0.1`) are taken for what they are.
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

    /// The first of the addresses.
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
