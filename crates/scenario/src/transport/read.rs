//! Reads `transport` and its table: `[groups.NAME.tcp]`, `[groups.NAME.udp]` and so on.

use serde::Serialize;
use weir_congestion::AlgorithmSpec;
use weir_scenario_derive::{Keys, Word};
use weir_units::ByteSize;

use super::dcudp::default_congestion;
use super::{
    DcudpOptions, OptionContext, QuicOptions, Recovery, TCP_HEADERS, TcpEcn, TcpOptions,
    TlsOptions, Transport, UdpOptions,
};
use crate::document::Reported;
use crate::schema::{Accepts, Fields};
use crate::{Topology, congestion};

/// The keys of a group's transport. Only the table of the chosen transport may be present.
#[allow(dead_code, reason = "it declares keys alone")]
#[derive(Keys)]
#[keys(declares)]
pub(crate) struct TransportKeys {
    /// The transport: TCP, TLS 1.3 over TCP, DCQUIC, DCUDP, or plain datagrams; `udp` takes the
    /// workload `cbr`.
    #[key(default = "tcp")]
    transport: Protocol,
    /// TCP's options, with `tcp` and `tls`.
    #[key(accepts = Accepts::TABLE, absent = "Linux's values")]
    tcp: TcpOptions,
    /// TLS's options.
    #[key(accepts = Accepts::TABLE, absent = "its defaults")]
    tls: TlsOptions,
    /// DCQUIC's options.
    #[key(accepts = Accepts::TABLE, absent = "its defaults")]
    quic: QuicOptions,
    /// DCUDP's options.
    #[key(accepts = Accepts::TABLE, absent = "its defaults")]
    dcudp: DcudpOptions,
    /// UDP's options.
    #[key(accepts = Accepts::TABLE, absent = "Not-ECT datagrams")]
    udp: UdpOptions,
    /// The congestion control of TCP, DCQUIC or DCUDP and its parameters: see docs/algorithms.md; or a plug-in: see
    /// docs/plugins.md.
    #[key(
        accepts = congestion::ACCEPTS,
        absent = "`\"cubic\"`, as in Linux; with DCUDP's UDP Mode the paper's, its `capacity` the slowest link's rate"
    )]
    congestion: AlgorithmSpec,
}

/// The name of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    Tcp,
    Tls,
    Quic,
    Dcudp,
    Udp,
}

impl Transport {
    /// Reads the transport keys of a group.
    pub(crate) fn read(group: &Fields<'_>, topology: &Topology) -> Result<Self, Reported> {
        let protocol = group.get("transport")?;
        check_tables(group, protocol)?;
        let mtu = topology.smallest_mtu();
        let congestion = || match group.at("congestion") {
            Some(at) => congestion::read(&at),
            None if protocol == Protocol::Dcudp => {
                Ok(default_congestion(group, topology.slowest_rate()))
            }
            None => Ok(AlgorithmSpec::default()),
        };
        let tcp = |congestion: &AlgorithmSpec| {
            group.table("tcp", |at| {
                TcpOptions::read(at, OptionContext { congestion, mtu })
            })
        };
        match protocol {
            Protocol::Tcp => {
                let congestion = congestion()?;
                let options = tcp(&congestion)?;
                Ok(Self::Tcp {
                    congestion,
                    options,
                })
            }
            Protocol::Tls => {
                let congestion = congestion()?;
                let options = tcp(&congestion);
                let tls = group.table("tls", |at| TlsOptions::read(at, ()))?;
                let options = options?;
                Ok(Self::Tls {
                    congestion,
                    options,
                    tls,
                })
            }
            Protocol::Quic => {
                let congestion = congestion();
                let options = group.table("quic", |at| QuicOptions::read(at, mtu))?;
                let congestion = congestion?;
                Ok(Self::Quic {
                    congestion,
                    options,
                })
            }
            Protocol::Dcudp => {
                let congestion = congestion()?;
                let around = OptionContext {
                    congestion: &congestion,
                    mtu,
                };
                let options = group.table("dcudp", |at| DcudpOptions::read(at, around))?;
                Ok(Self::Dcudp {
                    congestion,
                    options,
                })
            }
            Protocol::Udp => {
                let options = group.table("udp", |at| UdpOptions::read(at, ()))?;
                Ok(Self::Udp { options })
            }
        }
    }

    /// Returns its name.
    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp { .. } => Protocol::Tcp,
            Self::Tls { .. } => Protocol::Tls,
            Self::Quic { .. } => Protocol::Quic,
            Self::Dcudp { .. } => Protocol::Dcudp,
            Self::Udp { .. } => Protocol::Udp,
        }
    }
}

/// Reports the table of a transport that is not the chosen one.
fn check_tables(group: &Fields<'_>, transport: Protocol) -> Result<(), Reported> {
    let useless: &[&str] = match transport {
        Protocol::Udp => &["tcp", "tls", "quic", "dcudp", "congestion"],
        Protocol::Quic => &["tcp", "tls", "dcudp", "udp"],
        Protocol::Dcudp => &["tcp", "tls", "quic", "udp"],
        Protocol::Tls => &["quic", "dcudp", "udp"],
        Protocol::Tcp => &["tls", "quic", "dcudp", "udp"],
    };
    let Some(key) = useless.iter().find(|key| group.has(key)) else {
        return Ok(());
    };
    let meant = match *key {
        "congestion" => "tcp",
        table => table,
    };
    Err(group.error_position(key).conflict(
        format!("`{key}` has no meaning for this transport"),
        format!("remove it, or set `transport = \"{meant}\"`"),
    ))
}

impl TcpOptions {
    pub(super) fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if self.min_rto > self.max_rto {
            return Err(fields.error_position("min_rto").conflict(
                format!("{} is above `max_rto`, {}", self.min_rto, self.max_rto),
                "`min_rto` must be at most `max_rto`",
            ));
        }
        for (name, buffer) in [
            ("send_buffer", self.send_buffer),
            ("receive_buffer", self.receive_buffer),
        ] {
            if buffer.is_some_and(|buffer| buffer < self.mss) {
                return Err(fields.error_position(name).conflict(
                    format!("the buffer is smaller than a segment of {}", self.mss),
                    format!("set a larger `{name}`, or a smaller `mss`"),
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn mss(fields: &Fields<'_>, mtu: ByteSize) -> Result<ByteSize, Reported> {
    let largest = mtu - TCP_HEADERS;
    match fields.optional::<ByteSize>("mss")? {
        None => Ok(largest),
        Some(mss) if mss > largest => Err(fields.error_position("mss").conflict(
            format!("segments of {mss} and 40B of headers exceed the smallest MTU, {mtu}"),
            format!("set `mss` up to {largest}, or a larger `mtu`"),
        )),
        Some(mss) => Ok(mss),
    }
}

pub(super) fn recovery(fields: &Fields<'_>) -> Result<Option<Recovery>, Reported> {
    let (sack, recovery) = (fields.get("sack"), fields.get("recovery"));
    match (sack?, recovery?) {
        (false, _) if fields.has("recovery") => Err(fields.error_position("recovery").conflict(
            "without SACK, duplicate ACKs tell of losses",
            "remove `recovery`, or set `sack = true`",
        )),
        (false, _) => Ok(None),
        (true, recovery) => Ok(Some(recovery)),
    }
}

impl TcpEcn {
    /// Returns Linux's ECN mode for a congestion control.
    pub(crate) fn of(congestion: &AlgorithmSpec) -> Self {
        match congestion.name() {
            "dctcp" | "d2tcp" => Self::Dctcp,
            _ => Self::Off,
        }
    }
}
