//! What a test is to be: the part of the control protocol that both sides must agree on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_units::{ByteSize, Duration, Rate};

use super::error::Error;
use super::settings;

/// The most streams that one test may have.
pub const MAX_PARALLEL: u16 = 128;

/// How fast DCUDP sends where nothing else is asked for.
pub const DEFAULT_RATE: Rate = Rate::from_gbps(10);

/// The longest test.
pub const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// Which transport carries the test.
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dcquic, Self::Dcudp, Self::Tcp, Self::TcpTls];

    /// Its name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dcquic => "dcquic",
            Self::Dcudp => "dcudp",
            Self::Tcp => "tcp",
            Self::TcpTls => "tcp-tls",
        }
    }

    /// Whether the server shows a certificate, which the client has to pin.
    pub fn is_secure(self) -> bool {
        matches!(self, Self::Dcquic | Self::TcpTls)
    }

    /// Whether the kernel does the work, with congestion controls of its own.
    pub fn is_kernels(self) -> bool {
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

/// Which way the data go.
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
    /// The side that asks for the test.
    Client,
    /// The side that waits for clients.
    Server,
}

impl Side {
    /// Whether this side sends the data of a test.
    #[must_use]
    pub fn sends(self, test: &Parameters) -> bool {
        (self == Self::Client) == (test.direction == Direction::Upload)
    }
}

/// When a test ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// After this time.
    Time(Duration),
    /// After this much data, on all streams together.
    Bytes(ByteSize),
}

/// A test. [`Parameters::validate`] has to be called on what comes from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Which transport carries it.
    pub transport: Transport,
    /// Which way the data go.
    pub direction: Direction,
    /// When it ends.
    pub extent: Extent,
    /// How many connections carry data at once, with one stream each.
    pub parallel: u16,
    /// The sender's congestion control; the transport's default if absent.
    pub congestion: Option<String>,
    /// DCQUIC and DCUDP: the largest UDP payload; TCP: the largest segment's data. The transport's
    /// default if absent.
    pub packet_size: Option<ByteSize>,
    /// DCUDP: how fast it sends while nothing is congested, in UDP payload;
    /// [`DEFAULT_RATE`] if absent.
    pub rate: Option<Rate>,
    /// DCUDP: whether the client has a key, and takes no server without it.
    pub keyed: bool,
}

impl Parameters {
    /// Checks all that can be checked without touching the network.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the first setting that is wrong, and what would be right.
    pub fn validate(&self) -> Result<(), Error> {
        if !(1..=MAX_PARALLEL).contains(&self.parallel) {
            return Err(Error::parameter(
                "parallel",
                format!(
                    "{} streams: it must be from 1 to {MAX_PARALLEL}",
                    self.parallel
                ),
            ));
        }
        match self.extent {
            Extent::Time(time) if time.is_zero() || time > MAX_TIME => Err(Error::parameter(
                "time",
                format!("{time}: it must be above zero and at most {MAX_TIME}"),
            )),
            Extent::Bytes(size) if size.is_zero() => {
                Err(Error::parameter("bytes", "nothing to transmit".to_owned()))
            }
            _ => self.validate_transport(),
        }
    }

    fn validate_transport(&self) -> Result<(), Error> {
        match self.transport {
            Transport::Dcudp => settings::dcudp(self).map(drop),
            _ if self.rate.is_some() => {
                let problem = format!(
                    "{} finds its rate itself: only dcudp is told",
                    self.transport
                );
                Err(Error::parameter("rate", problem))
            }
            _ if self.keyed => {
                let problem = format!("{} takes no shared key: only dcudp does", self.transport);
                Err(Error::parameter("key-file", problem))
            }
            Transport::Dcquic => settings::dcquic(self).map(drop),
            Transport::Tcp | Transport::TcpTls => settings::check_tcp(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            transport: Transport::Tcp,
            direction: Direction::Upload,
            extent: Extent::Time(Duration::from_secs(1)),
            parallel: 1,
            congestion: None,
            packet_size: None,
            rate: None,
            keyed: false,
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        assert!(parameters().validate().is_ok());
        type Change = fn(&mut Parameters);
        let wrong: [(&str, Change); 14] = [
            ("parallel", |it| it.parallel = 0),
            ("parallel", |it| it.parallel = 129),
            ("time", |it| it.extent = Extent::Time(Duration::ZERO)),
            ("time", |it| {
                it.extent = Extent::Time(Duration::from_secs(86_401))
            }),
            ("bytes", |it| it.extent = Extent::Bytes(ByteSize::ZERO)),
            ("mps", |it| it.packet_size = Some(ByteSize::from_bytes(20))),
            ("congestion", |it| it.congestion = Some("nosuch".to_owned())),
            ("congestion", |it| {
                it.transport = Transport::Dcquic;
                it.congestion = Some("dctcp,nosuch=1".to_owned());
            }),
            ("mps", |it| {
                it.transport = Transport::Dcquic;
                it.packet_size = Some(ByteSize::from_bytes(100_000));
            }),
            ("rate", |it| it.rate = Some(Rate::from_gbps(1))),
            ("key-file", |it| {
                it.transport = Transport::Dcquic;
                it.keyed = true;
            }),
            ("rate", |it| {
                it.transport = Transport::Dcudp;
                it.rate = Some(Rate::ZERO);
            }),
            ("mps", |it| {
                it.transport = Transport::Dcudp;
                it.packet_size = Some(ByteSize::from_bytes(100_000));
            }),
            ("congestion", |it| {
                it.transport = Transport::Dcudp;
                it.congestion = Some("dctcp,nosuch=1".to_owned());
            }),
        ];
        for (name, change) in wrong {
            let mut it = parameters();
            change(&mut it);
            let message = it.validate().unwrap_err().to_string();
            assert!(message.starts_with(name), "{message}");
        }
    }

    #[test]
    fn an_unknown_congestion_control_is_answered_with_those_that_exist() {
        let check = |name: &str| {
            let congestion = Some(name.to_owned());
            let test = Parameters {
                congestion,
                ..parameters()
            };
            test.validate()
        };
        let message = check("nosuch").unwrap_err().to_string();
        assert!(message.contains("`nosuch`"), "{message}");
        assert!(
            message.contains("cubic") || message.contains("reno"),
            "{message}"
        );
        assert!(check("reno").is_ok());
        let message = check("cubic,beta=0.5").unwrap_err().to_string();
        assert!(message.contains("takes no parameters"), "{message}");
    }

    #[test]
    fn transports_read_what_they_write() {
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
