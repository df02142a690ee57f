//! How a transport and its settings are named: `quinn`, `quinn@8972`, `tcp-tls/bbr`,
//! `floor@1452+spin`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Which transport, and with which settings. Its text is `NAME[@PACKET][/CONGESTION][+spin]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportSpecification {
    /// The driver's name.
    pub driver: String,
    /// UDP payload bytes per packet; the driver's default if absent.
    pub packet_size: Option<u16>,
    /// Congestion control by name; the driver's default if absent.
    pub congestion: Option<String>,
    /// Whether both sides spin for about 50 µs, yielding, before they sleep.
    pub spin: bool,
}

impl TransportSpecification {
    /// A driver with its default settings.
    #[must_use]
    pub fn named(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            ..Self::default()
        }
    }

    /// Refuses each setting that the driver named `transport` does not know.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names the setting.
    pub fn require(
        &self,
        transport: &'static str,
        packet_size: bool,
        congestion: bool,
        spin: bool,
    ) -> Result<(), Error> {
        let what = match self {
            Self {
                packet_size: Some(_),
                ..
            } if !packet_size => "choose its packet size",
            Self {
                congestion: Some(_),
                ..
            } if !congestion => "choose its congestion control",
            Self { spin: true, .. } if !spin => "spin",
            _ => return Ok(()),
        };
        Err(Error::Unsupported {
            transport,
            what: what.to_owned(),
        })
    }
}

impl fmt::Display for TransportSpecification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.driver)?;
        if let Some(size) = self.packet_size {
            write!(f, "@{size}")?;
        }
        if let Some(congestion) = &self.congestion {
            write!(f, "/{congestion}")?;
        }
        if self.spin {
            f.write_str("+spin")?;
        }
        Ok(())
    }
}

impl FromStr for TransportSpecification {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Specification {
            text: text.to_owned(),
            reason: format!("{reason}; a transport is NAME[@PACKET][/CONGESTION][+spin]"),
        };
        let (rest, spin) = match text.split_once('+') {
            Some((rest, "spin")) => (rest, true),
            Some(_) => return Err(wrong("only \"spin\" may follow \"+\"")),
            None => (text, false),
        };
        let (rest, congestion) = match rest.split_once('/') {
            Some((_, "")) => return Err(wrong("no congestion control after \"/\"")),
            Some((rest, congestion)) => (rest, Some(congestion.to_owned())),
            None => (rest, None),
        };
        let (driver, packet_size) = match rest.split_once('@') {
            Some((driver, size)) => match size.parse::<u16>() {
                Ok(size @ 1200..=65_507) => (driver, Some(size)),
                _ => return Err(wrong("the packet size must be from 1200 to 65507 bytes")),
            },
            None => (rest, None),
        };
        if driver.is_empty() {
            return Err(wrong("no transport is named"));
        }
        Ok(Self {
            driver: driver.to_owned(),
            packet_size,
            congestion,
            spin,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_round_trips(
            driver in "[a-z][a-z0-9-]{0,8}",
            packet_size in prop::option::of(1200_u16..=65_507),
            congestion in prop::option::of("[a-z][a-z0-9]{0,6}"),
            spin: bool,
        ) {
            let specification = TransportSpecification { driver, packet_size, congestion, spin };
            let text = specification.to_string();
            prop_assert_eq!(text.parse::<TransportSpecification>().unwrap(), specification);
        }

        #[test]
        fn any_text_is_taken_or_refused(text in ".{0,40}") {
            let _ = text.parse::<TransportSpecification>();
        }
    }

    #[test]
    fn wrong_text_is_refused() {
        for text in [
            "",
            "@1452",
            "quinn@",
            "quinn@99",
            "quinn@65508",
            "tcp/",
            "floor+spun",
        ] {
            assert!(text.parse::<TransportSpecification>().is_err(), "{text}");
        }
    }
}
