//! Reading `transport` and its table: `[groups.NAME.tcp]`, `[groups.NAME.udp]` and so on.

use weir_congestion::AlgorithmSpec;
use weir_units::ByteSize;

use super::dcudp::default_congestion;
use super::{
    Around, DcudpOptions, QuicOptions, Recovery, TCP_HEADERS, TcpEcn, TcpOptions, TlsOptions,
    Transport, UdpOptions,
};
use crate::document::{At, Fields, Node, Reported, Table, Value};
use crate::{Topology, congestion};

impl Transport {
    /// Reads the keys of a group that say what carries its data.
    pub(crate) fn read(group: &Fields<'_>, topology: &Topology) -> Result<Self, Reported> {
        // A table that was not written has all its defaults.
        let empty = Node::new(Value::Table(Table::default()), group.at.node.place.clone());
        let table = |name: &str| match group.at(name) {
            Some(at) => at,
            None => At {
                node: &empty,
                key: group.at.child(name, group.at.node).key,
                problems: group.at.problems,
            },
        };
        let transport: String = group.get("transport")?;
        check_tables(group, &transport)?;
        let mtu = topology.smallest_mtu();
        let congestion = || match group.at("congestion") {
            Some(at) => congestion::read(&at),
            None => Ok(AlgorithmSpec::default()),
        };
        match transport.as_str() {
            "udp" => Ok(Self::Udp {
                ecn: UdpOptions::read_keys(&Fields::open(table("udp"), UdpOptions::SECTION)?, ())?
                    .ecn,
            }),
            "quic" => {
                let (congestion, options) = (congestion(), QuicOptions::read(table("quic"), mtu));
                Ok(Self::Quic {
                    options: options?,
                    congestion: congestion?,
                })
            }
            "dcudp" => {
                let congestion = match group.has("congestion") {
                    true => congestion()?,
                    false => default_congestion(topology.slowest_rate()),
                };
                Ok(Self::Dcudp {
                    options: DcudpOptions::read(table("dcudp"), &congestion, mtu)?,
                    congestion,
                })
            }
            "tls" => {
                let congestion = congestion()?;
                let options = TcpOptions::read(table("tcp"), &congestion, mtu);
                let tls = TlsOptions::read(table("tls"))?;
                Ok(Self::Tls {
                    options: options?,
                    congestion,
                    tls,
                })
            }
            _ => {
                let congestion = congestion()?;
                Ok(Self::Tcp {
                    options: TcpOptions::read(table("tcp"), &congestion, mtu)?,
                    congestion,
                })
            }
        }
    }
}

/// Reports a table of another transport.
fn check_tables(group: &Fields<'_>, transport: &str) -> Result<(), Reported> {
    let useless: &[&str] = match transport {
        "udp" => &["tcp", "tls", "quic", "dcudp", "congestion"],
        "quic" => &["tcp", "tls", "dcudp", "udp"],
        "dcudp" => &["tcp", "tls", "quic", "udp"],
        "tls" => &["quic", "dcudp", "udp"],
        _ => &["tls", "quic", "dcudp", "udp"],
    };
    let Some(key) = useless.iter().find(|key| group.has(key)) else {
        return Ok(());
    };
    let meant = match *key {
        "congestion" => "tcp",
        table => table,
    };
    Err(group.blame(key).conflict(
        format!("`{key}` has no meaning for this transport"),
        format!("remove it, or set `transport = \"{meant}\"`"),
    ))
}

impl TcpOptions {
    /// Reads `[groups.NAME.tcp]`, for connections under `congestion` over links with this MTU.
    pub(crate) fn read(
        at: At<'_>,
        congestion: &AlgorithmSpec,
        mtu: ByteSize,
    ) -> Result<Self, Reported> {
        let fields = Fields::open(at, Self::SECTION)?;
        let options = Self::read_keys(&fields, Around { congestion, mtu })?;
        options.check(&fields)?;
        Ok(options)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if self.min_rto > self.max_rto {
            return Err(fields.blame("min_rto").conflict(
                format!("{} is above `max_rto`, {}", self.min_rto, self.max_rto),
                "`min_rto` must be at most `max_rto`",
            ));
        }
        for (name, buffer) in [
            ("send_buffer", self.send_buffer),
            ("receive_buffer", self.receive_buffer),
        ] {
            if buffer.is_some_and(|buffer| buffer < self.mss) {
                return Err(fields.blame(name).conflict(
                    format!("the buffer is smaller than a segment of {}", self.mss),
                    format!("set a larger `{name}`, or a smaller `mss`"),
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn mss(fields: &Fields<'_>, context: Around<'_>) -> Result<ByteSize, Reported> {
    let mtu = context.mtu;
    let largest = mtu - TCP_HEADERS;
    match fields.optional::<ByteSize>("mss")? {
        None => Ok(largest),
        Some(mss) if mss > largest => Err(fields.blame("mss").conflict(
            format!("segments of {mss} and 40B of headers exceed the smallest MTU, {mtu}"),
            format!("set `mss` up to {largest}, or a larger `mtu`"),
        )),
        Some(mss) => Ok(mss),
    }
}

pub(super) fn recovery(fields: &Fields<'_>, _: Around<'_>) -> Result<Option<Recovery>, Reported> {
    let (sack, recovery) = (fields.get("sack"), fields.get("recovery"));
    match (sack?, recovery?) {
        (false, _) if fields.has("recovery") => Err(fields.blame("recovery").conflict(
            "without SACK, duplicate ACKs tell of losses",
            "remove `recovery`, or set `sack = true`",
        )),
        (false, _) => Ok(None),
        (true, recovery) => Ok(Some(recovery)),
    }
}

pub(super) fn ecn(fields: &Fields<'_>, context: Around<'_>) -> Result<TcpEcn, Reported> {
    let wants_exact_echo = ["dctcp", "d2tcp"].contains(&context.congestion.name());
    let usual = if wants_exact_echo {
        TcpEcn::Dctcp
    } else {
        TcpEcn::Off
    };
    Ok(fields.optional("ecn")?.unwrap_or(usual))
}
