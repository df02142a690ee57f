//! Reading `transport` and its table: `[groups.NAME.tcp]`, `[groups.NAME.udp]` and so on.

use weir_congestion::AlgorithmSpec;
use weir_units::ByteSize;

use super::dcudp::default_congestion;
use super::{
    DcudpOptions, DelayedAck, Pacing, QuicOptions, Recovery, TCP, TCP_HEADERS, TcpEcn, TcpOptions,
    TlsOptions, Transport, UDP, UdpEcn,
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
                ecn: UdpEcn::read(table("udp"))?,
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
        let fields = Fields::open(at, &TCP)?;
        // Evaluated before any `?`, so that all mistakes are reported together.
        let (mss, ecn) = (read_mss(&fields, mtu), read_ecn(&fields, congestion));
        let (handshake, sack) = (fields.get("handshake"), fields.get("sack"));
        let (timestamps, recovery) = (fields.get("timestamps"), read_recovery(&fields));
        let (limited_transmit, prr) = (fields.get("limited_transmit"), fields.get("prr"));
        let (delayed_ack, pacing) = (DelayedAck::read(&fields), fields.get::<String>("pacing"));
        let (initial, min) = (fields.get("initial_rto"), fields.get("min_rto"));
        let (max, tso_segments) = (fields.get("max_rto"), fields.get("tso_segments"));
        let (send, receive) = (fields.get("send_buffer"), fields.get("receive_buffer"));
        let (idle_restart, nagle) = (fields.get("idle_restart"), fields.get("nagle"));
        let small_queues = fields.get("small_queues");
        let options = Self {
            mss: mss?,
            handshake: handshake?,
            ecn: ecn?,
            sack: sack?,
            timestamps: timestamps?,
            recovery: recovery?,
            limited_transmit: limited_transmit?,
            prr: prr?,
            delayed_ack: delayed_ack?,
            initial_rto: initial?,
            min_rto: min?,
            max_rto: max?,
            pacing: match pacing?.as_str() {
                "window" => Pacing::Window,
                _ => Pacing::Controller,
            },
            tso_segments: tso_segments?,
            send_buffer: send?,
            receive_buffer: receive?,
            idle_restart: idle_restart?,
            nagle: nagle?,
            small_queues: small_queues?,
        };
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

fn read_mss(fields: &Fields<'_>, mtu: ByteSize) -> Result<ByteSize, Reported> {
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

fn read_recovery(fields: &Fields<'_>) -> Result<Option<Recovery>, Reported> {
    let (sack, recovery) = (fields.get::<bool>("sack"), fields.get::<String>("recovery"));
    let (sack, recovery) = (sack?, recovery?);
    match (sack, recovery.as_str()) {
        (false, _) if fields.has("recovery") => Err(fields.blame("recovery").conflict(
            "without SACK, duplicate ACKs tell of losses",
            "remove `recovery`, or set `sack = true`",
        )),
        (false, _) => Ok(None),
        (true, "rfc6675") => Ok(Some(Recovery::Rfc6675)),
        (true, _) => Ok(Some(Recovery::Rack)),
    }
}

fn read_ecn(fields: &Fields<'_>, congestion: &AlgorithmSpec) -> Result<TcpEcn, Reported> {
    let written: Option<String> = fields.optional("ecn")?;
    let wants_exact_echo = ["dctcp", "d2tcp"].contains(&congestion.name());
    Ok(match written.as_deref() {
        Some("off") => TcpEcn::Off,
        Some("rfc3168") => TcpEcn::Rfc3168,
        None if !wants_exact_echo => TcpEcn::Off,
        _ => TcpEcn::Dctcp,
    })
}

impl DelayedAck {
    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let (every, timeout) = (fields.get("ack_every"), fields.get("delayed_ack_timeout"));
        let quick = fields.get("quick_ack_segments");
        Ok(Self {
            ack_every: every?,
            delayed_ack_timeout: timeout?,
            quick_ack_segments: quick?,
        })
    }
}

impl UdpEcn {
    /// Reads `[groups.NAME.udp]`.
    pub(crate) fn read(at: At<'_>) -> Result<Self, Reported> {
        let ecn: String = Fields::open(at, &UDP)?.get("ecn")?;
        Ok(match ecn.as_str() {
            "ect0" => Self::Ect0,
            "ect1" => Self::Ect1,
            _ => Self::NotEct,
        })
    }
}
