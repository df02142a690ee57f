//! Validates the parameters of a test without network access.

use super::error::Error;
use super::parameters::{Extent, MAX_PARALLEL, MAX_TIME, Parameters, Transport};
use super::settings;

impl Parameters {
    /// Checks the parameters without network access.
    ///
    /// # Errors
    /// [`Error::Parameter`] contains the first invalid setting and a remedy.
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
            _ if self.profile.is_some() => {
                let problem = format!("{} has no profiles: only dcudp does", self.transport);
                Err(Error::parameter("profile", problem))
            }
            _ if self.congestion_on_loss => {
                let problem = format!("{} always treats losses as congestion", self.transport);
                Err(Error::parameter("congestion-on-loss", problem))
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
    use weir_units::{ByteSize, Duration, Rate};

    use super::*;
    use crate::throughput::parameters::{Direction, Profile};

    fn parameters() -> Parameters {
        Parameters {
            transport: Transport::Tcp,
            direction: Direction::Upload,
            extent: Extent::Time(Duration::from_secs(1)),
            parallel: 1,
            congestion: None,
            packet_size: None,
            profile: None,
            rate: None,
            congestion_on_loss: false,
            keyed: false,
        }
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        assert!(parameters().validate().is_ok());
        type Change = fn(&mut Parameters);
        let wrong: [(&str, Change); 19] = [
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
            ("profile", |it| it.profile = Some(Profile::Shared)),
            ("congestion-on-loss", |it| it.congestion_on_loss = true),
            ("congestion-on-loss", |it| {
                it.transport = Transport::Dcudp;
                it.congestion_on_loss = true;
            }),
            ("congestion", |it| {
                it.transport = Transport::Dcudp;
                it.congestion = Some("dcudp".to_owned());
            }),
            ("congestion", |it| {
                it.transport = Transport::Dcudp;
                it.profile = Some(Profile::DataCenter);
                it.congestion = Some("nosuch".to_owned());
            }),
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
    fn an_unknown_congestion_control_is_reported_with_known_ones() {
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
}
