//! The parameters of a test: the part of the control protocol that both sides must agree on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_units::{ByteSize, Duration, Rate};

use super::error::Error;

/// The maximum number of streams of one test.
pub const MAX_PARALLEL: u16 = 128;

/// DCUDP's default sending rate with [`Profile::DataCenter`].
pub const DEFAULT_RATE: Rate = Rate::from_gbps(10);

/// The maximum duration of a test.
pub const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// The transport of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// DCQUIC over UDP.
    Dcquic,
    /// DCUDP over UDP, without encryption unless both ends have a key.
    Dcudp,
    /// The kernel's TCP without encryption.
    Tcp,
    /// TLS 1.3 over the kernel's TCP.
    TcpTls,
}

impl Transport {
    /// All transports.
    pub const ALL: [Self; 4] = [Self::Dcquic, Self::Dcudp, Self::Tcp, Self::TcpTls];

    /// Returns its name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dcquic => "dcquic",
            Self::Dcudp => "dcudp",
            Self::Tcp => "tcp",
            Self::TcpTls => "tcp-tls",
        }
    }

    /// Returns whether the server has a certificate, which the client must pin.
    pub fn is_secure(self) -> bool {
        matches!(self, Self::Dcquic | Self::TcpTls)
    }

    /// Returns whether the transport uses the kernel's TCP, with the kernel's congestion controls.
    pub fn uses_kernel_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::TcpTls)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Transport {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|transport| transport.name() == text)
            .ok_or_else(|| Error::UnknownTransport {
                name: text.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// How a DCUDP sender finds its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Upwards from ten packets per round trip, by a congestion control that losses slow down: for any
    /// network.
    #[default]
    Shared,
    /// At its full rate, until marks slow it down: for networks whose switches mark.
    DataCenter,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 2] = [Self::Shared, Self::DataCenter];

    /// Returns its name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::DataCenter => "data-center",
        }
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or_else(|| Error::UnknownProfile {
                name: text.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the client to the server.
    Upload,
    /// From the server to the client.
    Download,
}

/// One side of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that requests the test.
    Client,
    /// The side that waits for clients.
    Server,
}

impl Side {
    /// Returns whether this side sends the data of a test.
    #[must_use]
    pub fn sends(self, test: &Parameters) -> bool {
        (self == Self::Client) == (test.direction == Direction::Upload)
    }
}

/// The extent of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// After this time.
    Time(Duration),
    /// After this much data, on all streams together.
    Bytes(ByteSize),
}

/// The parameters of a test. Call [`Parameters::validate`] on parameters from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The transport.
    pub transport: Transport,
    /// The direction of the data.
    pub direction: Direction,
    /// The duration or the amount of data.
    pub extent: Extent,
    /// The number of parallel data connections, with one stream each.
    pub parallel: u16,
    /// The sender's congestion control; the transport's default if absent.
    pub congestion: Option<String>,
    /// DCQUIC and DCUDP: the maximum UDP payload; TCP: the maximum data of a segment. The
    /// transport's default if absent.
    pub packet_size: Option<ByteSize>,
    /// DCUDP: how the sender finds its rate; [`Profile::Shared`] if absent.
    pub profile: Option<Profile>,
    /// DCUDP: the highest rate, in UDP payload. With [`Profile::DataCenter`] it is the rate without
    /// congestion, and [`DEFAULT_RATE`] if absent.
    pub rate: Option<Rate>,
    /// DCUDP with [`Profile::DataCenter`]: whether losses that go on for two round trips are congestion,
    /// as marks are.
    pub congestion_on_loss: bool,
    /// DCUDP: whether the client has a key, and rejects a server without it.
    pub keyed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_names_round_trip() {
        for transport in Transport::ALL {
            assert_eq!(
                transport.to_string().parse::<Transport>().unwrap(),
                transport
            );
            let json = serde_json::to_string(&transport).unwrap();
            assert_eq!(json, format!("\"{transport}\""));
        }
        let message = "sctp".parse::<Transport>().unwrap_err().to_string();
        assert!(message.contains("tcp-tls"), "{message}");
    }
}
