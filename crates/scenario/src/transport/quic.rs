//! DCQUIC: its options, and the table `[groups.NAME.quic]`.

use serde::{Deserialize, Serialize};
use weir_scenario_derive::Keys;
use weir_units::{ByteSize, Duration};

use super::UDP_HEADERS;
use crate::document::{Cursor, Reported, Table, Value};
use crate::schema::{Accepts, Fields};

/// Options of both ends of a DCQUIC connection; all others are those of the engine's data center
/// profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[keys(
    title = "[groups.NAME.quic]",
    doc = "How both ends of the group's DCQUIC connections are set up; what has no key here is as in \
           the engine's data center profile. Further links of the hosts are paths that a connection \
           holds ready.",
    context = ByteSize
)]
pub struct QuicOptions {
    /// The size of packets: the MTU of the interfaces at both ends, used at once; probed from 1252
    /// bytes of UDP payload on (RFC 8899); by the size of the task, 8972 bytes below 1 MB and 5000
    /// from there on (DCQUIC paper, section 4.2); or this UDP payload.
    #[key(
        accepts = Accepts::Other(
            "\"interface\", \"probe\", \"task\", or the size of a UDP payload from 1.2KB to \
             65.527KB, in text",
        ),
        default = "interface",
        by = QuicPacketSize::read(fields, context)
    )]
    pub packet_size: QuicPacketSize,
    /// The buffer size of a live host's UDP sockets in each direction (SO_RCVBUF, SO_SNDBUF). It
    /// has no effect in a simulation, where a host processes each packet when it arrives.
    #[key(
        accepts = Accepts::Size(ByteSize::from_kib(4), ByteSize::from_mib(1024)),
        absent = "as the engine sets them, 8 MB"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_buffers: Option<ByteSize>,
    /// Whether packets are sent with ECT(0), as long as the path supports it.
    #[key(default = true)]
    pub ecn: bool,
    /// Whether connections after the first one between two hosts have no handshake, and their first
    /// datagram carries the request: see docs/known-peers.md. Live, each flow has a server of its own,
    /// so that the first connection of each flow has a handshake.
    #[key(default = false)]
    pub known_peers: bool,
    /// Whether, and when, a client migrates by itself to another path that it holds ready.
    #[key(
        accepts = Accepts::Other("true, false, or a table"),
        default = true,
        by = MigrationOptions::read_switchable(fields),
        name = "proactive_migration"
    )]
    #[serde(
        rename = "proactive_migration",
        serialize_with = "write_migration",
        deserialize_with = "read_migration"
    )]
    pub migration: Option<MigrationOptions>,
}

/// The size of DCQUIC's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum QuicPacketSize {
    /// The MTU of the interfaces at both ends, from the first packet after the handshake on.
    Interface,
    /// This UDP payload.
    Fixed(ByteSize),
    /// From 1252 bytes of UDP payload on, with probes for larger sizes (RFC 8899).
    Probe,
    /// By the size of the task: 8972 bytes of UDP payload below 1 MB, 5000 from there on (Tan et al.,
    /// *DCQUIC*, section 4.2).
    ByTask,
}

/// Proactive migration (Tan et al., *DCQUIC*, section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[keys(
    title = "[groups.NAME.quic.proactive_migration]",
    doc = "When a DCQUIC client leaves a path without being asked: see docs/migration.md.",
    check = table.check(fields)
)]
pub struct MigrationOptions {
    /// The detector of slow paths: a comparison within size classes, or equations 1 to 4 of the
    /// DCQUIC paper as printed.
    #[key(
        accepts = Accepts::Word(&["size-class", "paper"]),
        default = "size-class",
        by = MigrationDetector::read(fields)
    )]
    #[serde(flatten)]
    pub detector: MigrationDetector,
    /// The number of streams or samples of the long-term averages; above `short_window`.
    #[key(accepts = Accepts::Count(2, 4096), default = 50)]
    pub long_window: u32,
    /// The number of streams or samples of the short-term averages; at most 64 with `size-class`.
    #[key(accepts = Accepts::Count(1, 4095), default = 10)]
    pub short_window: u32,
    /// The factor by which the current value must exceed the long-term average.
    #[key(
        accepts = Accepts::Number(1.001, 1_000_000.0),
        absent = "2",
        or = 2.0,
        then = ConfirmationsKey
    )]
    pub alpha: f64,
    /// The number of probe timeouts without an answer after which the path counts as interrupted.
    #[key(accepts = Accepts::Count(2, 64), default = 3)]
    pub probe_timeouts: u32,
    /// Time differences below this never cause a migration.
    #[key(accepts = Accepts::SPAN, default = "1ms")]
    pub min_increase: Duration,
    /// The minimum time between two migrations.
    #[key(accepts = Accepts::POSITIVE_SPAN, default = "1s")]
    pub hysteresis: Duration,
    /// The time for which the preferred path must be healthy before the connection returns to it.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "it stays")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_after: Option<Duration>,
}

/// The detector of slow paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "detector", rename_all = "kebab-case")]
pub enum MigrationDetector {
    /// Equations 1 to 4 of the paper as printed.
    Paper,
    /// Compares tasks of similar size, and only the time that the network takes.
    SizeClass {
        /// The number of consecutive slow round trips that are required.
        confirmations: u32,
    },
}

/// The key of the detector `size-class` alone.
#[derive(Keys)]
struct ConfirmationsKey {
    /// The number of consecutive slow round trips that are required; with `size-class`.
    #[key(accepts = Accepts::Count(1, 64), absent = "3")]
    confirmations: Option<u32>,
}

/// The UDP payload sizes that QUIC allows (RFC 9000, section 14).
const PAYLOAD: Accepts = Accepts::Size(
    ByteSize::from_bytes(SMALLEST_PAYLOAD),
    ByteSize::from_bytes(65_527),
);
const SMALLEST_PAYLOAD: u64 = 1200;

impl QuicPacketSize {
    /// Reads the options of connections over links with this MTU.
    fn read(fields: &Fields<'_>, mtu: ByteSize) -> Result<Self, Reported> {
        let largest = mtu - UDP_HEADERS;
        if largest.bytes() < SMALLEST_PAYLOAD {
            return Err(fields.at.conflict(
                format!("QUIC needs UDP payloads of 1200 bytes, and the smallest MTU is {mtu}"),
                "set a larger `mtu`, or another transport",
            ));
        }
        let Some(at) = fields.at("packet_size") else {
            return Ok(Self::Interface);
        };
        match &at.node.value {
            Value::Text(text) if text == "interface" => return Ok(Self::Interface),
            Value::Text(text) if text == "probe" => return Ok(Self::Probe),
            Value::Text(text) if text == "task" => return Ok(Self::ByTask),
            _ => {}
        }
        match PAYLOAD.read(&at)? {
            size if size > largest => Err(at.conflict(
                format!("UDP payloads of {size} exceed the smallest MTU less 28B of headers"),
                format!("set `packet_size` up to {largest}, or a larger `mtu`"),
            )),
            size => Ok(Self::Fixed(size)),
        }
    }
}

impl MigrationOptions {
    /// Reads a table, or `true` for the defaults, or `false`.
    fn read_switchable(fields: &Fields<'_>) -> Result<Option<Self>, Reported> {
        const KEY: &str = "proactive_migration";
        let read = |at: &Cursor<'_>| Self::read(at, ()).map(Some);
        match fields.at(KEY) {
            None => fields.table(KEY, read),
            Some(at) => match at.node.value {
                Value::Boolean(false) => Ok(None),
                Value::Boolean(true) => fields.as_if(KEY, Value::Table(Table::default()), read),
                Value::Table(_) => read(&at),
                _ => Err(at.wrong_kind("true, false, or a table")),
            },
        }
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        /// The detector `size-class` stores verdicts as bits of a `u64`.
        const LONGEST_VERDICTS: u32 = 64;
        let is_size_class = matches!(self.detector, MigrationDetector::SizeClass { .. });
        if is_size_class && self.short_window > LONGEST_VERDICTS {
            return Err(fields.error_position("short_window").conflict(
                format!(
                    "{} is too long for the detector `size-class`",
                    self.short_window
                ),
                format!("set it up to {LONGEST_VERDICTS}, or `detector = \"paper\"`"),
            ));
        }
        if self.long_window <= self.short_window {
            return Err(fields.error_position("long_window").conflict(
                format!(
                    "{} is not above `short_window`, {}",
                    self.long_window, self.short_window
                ),
                "set a larger `long_window`, or a smaller `short_window`",
            ));
        }
        Ok(())
    }
}

impl MigrationDetector {
    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let (detector, keys) = (
            fields.get::<String>("detector"),
            ConfirmationsKey::read_keys(fields, ()),
        );
        match (detector?.as_str(), keys?.confirmations) {
            ("paper", Some(_)) => Err(fields.error_position("confirmations").conflict(
                "the detector `paper` takes no confirmations",
                "remove it, or set `detector = \"size-class\"`",
            )),
            ("paper", None) => Ok(Self::Paper),
            (_, confirmations) => Ok(Self::SizeClass {
                confirmations: confirmations.unwrap_or(3),
            }),
        }
    }
}

impl From<QuicPacketSize> for String {
    fn from(size: QuicPacketSize) -> Self {
        match size {
            QuicPacketSize::Interface => "interface".to_owned(),
            QuicPacketSize::Probe => "probe".to_owned(),
            QuicPacketSize::ByTask => "task".to_owned(),
            QuicPacketSize::Fixed(size) => size.to_string(),
        }
    }
}

impl TryFrom<String> for QuicPacketSize {
    type Error = weir_units::ParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "interface" => Ok(Self::Interface),
            "probe" => Ok(Self::Probe),
            "task" => Ok(Self::ByTask),
            size => size.parse().map(Self::Fixed),
        }
    }
}

/// The forms that a file may use.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Switchable {
    Off(bool),
    On(MigrationOptions),
}

fn write_migration<S: serde::Serializer>(
    migration: &Option<MigrationOptions>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match migration {
        None => Switchable::Off(false).serialize(to),
        Some(options) => Switchable::On(*options).serialize(to),
    }
}

fn read_migration<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<MigrationOptions>, D::Error> {
    match Switchable::deserialize(from)? {
        Switchable::Off(false) => Ok(None),
        Switchable::On(options) => Ok(Some(options)),
        Switchable::Off(true) => Err(serde::de::Error::custom("options of migration are missing")),
    }
}
