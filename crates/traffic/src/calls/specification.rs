//! The text form of a transport and its settings: `quinn`, `quinn@8972`, `tcp-tls/bbr`,
//! `floor@1452+spin`, `dcquic@5000+buffer=200KB`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use weir_units::ByteSize;

use crate::calls::error::Error;

/// The format of a transport's text.
const FORM: &str =
    "a transport is NAME[@PACKET][/CONGESTION][+spin][+armed][+by-task][+fast-open][+buffer=SIZE]";

/// A transport and its settings. Its text is
/// `NAME[@PACKET][/CONGESTION][+spin][+armed][+by-task][+fast-open][+buffer=SIZE]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportSpecification {
    /// The driver's name.
    pub driver: String,
    /// UDP payload bytes per packet; the driver's default if absent.
    pub packet_size: Option<u16>,
    /// Congestion control by name; the driver's default if absent.
    pub congestion: Option<String>,
    /// Whether both sides poll for about 50 µs, yielding, before they sleep.
    pub spin: bool,
    /// Whether the client holds a second path ready for migration.
    pub armed: bool,
    /// Whether the packet size follows the DCQUIC paper's rule for the task.
    pub by_task: bool,
    /// Whether TCP sends data with its SYN (TCP Fast Open, RFC 7413).
    pub fast_open: bool,
    /// The requested size of the UDP socket buffers; the driver's default if absent.
    pub socket_buffer: Option<ByteSize>,
}

/// The settings that a driver supports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capabilities {
    /// The packet size.
    pub packet_size: bool,
    /// The congestion control.
    pub congestion: bool,
    /// Spinning.
    pub spin: bool,
    /// TCP Fast Open.
    pub fast_open: bool,
    /// Settings of DCQUIC only: paths held ready, packet size by task, socket buffers.
    pub paths_and_sizes: bool,
}

impl TransportSpecification {
    /// Returns a driver with its default settings.
    #[must_use]
    pub fn named(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            ..Self::default()
        }
    }

    /// Rejects settings that the driver named `transport` does not support.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names the setting.
    pub fn require(&self, transport: &'static str, abilities: Capabilities) -> Result<(), Error> {
        let only_ours = self.armed || self.by_task || self.socket_buffer.is_some();
        let what = match self {
            Self {
                packet_size: Some(_),
                ..
            } if !abilities.packet_size => "choose its packet size",
            Self {
                congestion: Some(_),
                ..
            } if !abilities.congestion => "choose its congestion control",
            Self { spin: true, .. } if !abilities.spin => "spin",
            Self {
                fast_open: true, ..
            } if !abilities.fast_open => "use TCP Fast Open",
            _ if only_ours && !abilities.paths_and_sizes => {
                "be armed, size packets by task or choose its socket buffers"
            }
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
        let flags = [
            (self.spin, "+spin"),
            (self.armed, "+armed"),
            (self.by_task, "+by-task"),
            (self.fast_open, "+fast-open"),
        ];
        for (_, text) in flags.into_iter().filter(|(on, _)| *on) {
            f.write_str(text)?;
        }
        match self.socket_buffer {
            Some(size) => write!(f, "+buffer={size}"),
            None => Ok(()),
        }
    }
}

impl FromStr for TransportSpecification {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Specification {
            text: text.to_owned(),
            reason: format!("{reason}; {FORM}"),
        };
        let mut parts = text.split('+');
        let rest = parts.next().unwrap_or_default();
        let mut specification = Self::default();
        for setting in parts {
            match setting.split_once('=') {
                None if setting == "spin" => specification.spin = true,
                None if setting == "armed" => specification.armed = true,
                None if setting == "by-task" => specification.by_task = true,
                None if setting == "fast-open" => specification.fast_open = true,
                Some(("buffer", size)) => {
                    let size = size
                        .parse()
                        .map_err(|_| wrong("no size after \"buffer=\""))?;
                    specification.socket_buffer = Some(size);
                }
                _ => return Err(wrong("there is no such setting")),
            }
        }
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
            ..specification
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
            flags: [bool; 4],
            buffer in prop::option::of(1_u64..1 << 30),
        ) {
            let [spin, armed, by_task, fast_open] = flags;
            let specification = TransportSpecification {
                driver,
                packet_size,
                congestion,
                spin,
                armed,
                by_task,
                fast_open,
                socket_buffer: buffer.map(ByteSize::from_bytes),
            };
            let text = specification.to_string();
            prop_assert_eq!(text.parse::<TransportSpecification>().unwrap(), specification);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = text.parse::<TransportSpecification>();
        }
    }

    #[test]
    fn invalid_specifications_are_refused() {
        for text in [
            "",
            "@1452",
            "quinn@",
            "quinn@99",
            "quinn@65508",
            "tcp/",
            "floor+spun",
            "dcquic+buffer",
            "dcquic+buffer=much",
        ] {
            assert!(text.parse::<TransportSpecification>().is_err(), "{text}");
        }
    }
}
