//! `[live]`: options of an emulated network only.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Serialize, Serializer};
use weir_scenario_derive::{Keys, Word};
use weir_units::Duration;

use crate::document::Reported;
use crate::schema::{Accepts, Fields, LONGEST};

/// Options of a live run of the scenario; a simulation ignores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Keys)]
#[keys(
    title = "[live]",
    doc = "Settings of `weir run --live`: see docs/lab.md. A simulation ignores them."
)]
pub struct LiveOptions {
    /// The IP version of the hosts.
    #[key(default = "ipv4")]
    pub address_family: AddressFamily,
    /// The network from which hosts get their addresses; it must not be in use on the machine itself.
    #[key(
        accepts = Accepts::Other("a private network such as \"10.77.0.0/16\" or \"fd77:6562:7765::/48\""),
        absent = "`\"10.77.0.0/16\"`, or `\"fd77:6562:7765::/48\"` for IPv6",
        by = read_network(fields)
    )]
    pub network: Network,
    /// The maximum number of segments that a host's stack may pass to its link at once.
    #[key(
        accepts = Accepts::Count(1, 65_535),
        absent = "as many as keep the scenario's rates faithful"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso_segments: Option<u32>,
    /// If the error of the links' delays exceeds this for 1 % of the packets, the run is not
    /// faithful. A larger value may do where the compared times are longer.
    #[key(accepts = Accepts::Duration(Duration::from_micros(1), LONGEST), default = "250us")]
    pub delay_error: Duration,
}

/// The IP version of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum AddressFamily {
    /// IP version 4.
    Ipv4,
    /// IP version 6.
    Ipv6,
}

/// An IP network: all addresses with its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The first address.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub prefix: u8,
}

/// The text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it takes an address, a slash and a number of bits, after which the address is zero")]
pub struct NetworkParseError;

const IPV4: Network = Network {
    address: IpAddr::V4(Ipv4Addr::new(10, 77, 0, 0)),
    prefix: 16,
};

const IPV6: Network = Network {
    address: IpAddr::V6(Ipv6Addr::new(0xfd77, 0x6562, 0x7765, 0, 0, 0, 0, 0)),
    prefix: 48,
};

fn read_network(fields: &Fields<'_>) -> Result<Network, Reported> {
    let family = fields.get("address_family")?;
    let Some(at) = fields.at("network") else {
        return Ok(match family {
            AddressFamily::Ipv4 => IPV4,
            AddressFamily::Ipv6 => IPV6,
        });
    };
    let text = at.text("a network such as \"10.77.0.0/16\"")?;
    let network: Network = text.parse().map_err(|error: NetworkParseError| {
        at.conflict(
            format!("`{text}` is no network: {error}"),
            "write, for example, \"10.77.0.0/16\"",
        )
    })?;
    let fits = match (family, network.address) {
        (AddressFamily::Ipv4, IpAddr::V4(address)) => {
            address.is_private() && (8..=24).contains(&network.prefix)
        }
        (AddressFamily::Ipv6, IpAddr::V6(address)) => {
            address.is_unique_local() && (32..=64).contains(&network.prefix)
        }
        _ => false,
    };
    if fits {
        Ok(network)
    } else {
        Err(at.conflict(
            format!("`{text}` is not one that the hosts' addresses can be taken from"),
            "with `address_family = \"ipv4\"` name a private network (RFC 1918) of 8 to 24 bits, with \
             \"ipv6\" a unique local one (RFC 4193) of 32 to 64",
        ))
    }
}

impl FromStr for Network {
    type Err = NetworkParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = text.split_once('/').ok_or(NetworkParseError)?;
        let address: IpAddr = address.parse().map_err(|_| NetworkParseError)?;
        let prefix: u8 = prefix.parse().map_err(|_| NetworkParseError)?;
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let rest = bits.checked_shl(prefix.into()).unwrap_or(0);
        if prefix <= width && rest == 0 {
            Ok(Self { address, prefix })
        } else {
            Err(NetworkParseError)
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_they_are_written() {
        for text in [
            "10.77.0.0/16",
            "fd77:6562:7765::/48",
            "0.0.0.0/0",
            "1.2.3.4/32",
        ] {
            let network: Network = text.parse().unwrap();
            assert_eq!(network.to_string(), text);
        }
        for text in [
            "",
            "10.77.0.0",
            "10.77.0.1/16",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "fd77::1/64",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NetworkParseError), "{text}");
        }
        assert_eq!("10.77.0.0/16".parse(), Ok(IPV4));
        assert_eq!("fd77:6562:7765::/48".parse(), Ok(IPV6));
    }
}
