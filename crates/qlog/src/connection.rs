//! Records of endpoints, transport parameters, paths and the end of a connection
//! (draft-ietf-quic-qlog-quic-events, sections "Connectivity events" and "parameters_set").

use std::net::{IpAddr, SocketAddr};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use weir_quic::migration::Decision;
use weir_quic::observe::{PathAddresses, Phase, Subject};
use weir_quic::transport_parameters::TransportParameters;
use weir_quic::{Code, ConnectionError, ConnectionId, PathEvent, Side};

use crate::hex::{DisplayText, Hex};
use crate::record::tuple;

/// One end of a path.
#[derive(Default, Serialize)]
pub(crate) struct End<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_v4: Option<DisplayText<IpAddr>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_v4: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_v6: Option<DisplayText<IpAddr>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_v6: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_ids: Option<[Hex<'a>; 1]>,
}

impl<'a> End<'a> {
    fn new(address: SocketAddr) -> Self {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        if ip.is_ipv4() {
            Self {
                ip_v4: Some(DisplayText(ip)),
                port_v4: Some(port),
                ..Self::default()
            }
        } else {
            Self {
                ip_v6: Some(DisplayText(ip)),
                port_v6: Some(port),
                ..Self::default()
            }
        }
    }

    fn with_id(mut self, id: &'a ConnectionId) -> Self {
        self.connection_ids = Some([Hex(id.as_bytes())]);
        self
    }
}

/// `connection_started`.
#[derive(Serialize)]
pub(crate) struct ConnectionStarted<'a> {
    local: End<'a>,
    remote: End<'a>,
}

impl<'a> ConnectionStarted<'a> {
    pub(crate) fn new(subject: &'a Subject) -> Self {
        let local = subject.local.map(End::new).unwrap_or_default();
        let remote = End::new(subject.remote);
        Self {
            local: local.with_id(&subject.local_id),
            remote,
        }
    }
}

/// `connection_state_updated`.
#[derive(Serialize)]
pub(crate) struct StateUpdated {
    new: &'static str,
}

impl StateUpdated {
    pub(crate) const ATTEMPTED: Self = Self { new: "attempted" };

    pub(crate) fn new(phase: Phase) -> Self {
        let new = match phase {
            Phase::HandshakeComplete => "handshake_complete",
            Phase::HandshakeConfirmed => "handshake_confirmed",
            Phase::Closing => "closing",
            Phase::Draining => "draining",
            Phase::Drained => "closed",
        };
        Self { new }
    }
}

/// `parameters_set`, without secrets of the two sides (tokens).
pub(crate) struct ParametersSet<'a> {
    pub(crate) initiator: &'static str,
    pub(crate) parameters: &'a TransportParameters,
}

impl Serialize for ParametersSet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let its = self.parameters;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("initiator", self.initiator)?;
        let ids = [
            (
                "original_destination_connection_id",
                &its.original_destination_connection_id,
            ),
            (
                "initial_source_connection_id",
                &its.initial_source_connection_id,
            ),
            (
                "retry_source_connection_id",
                &its.retry_source_connection_id,
            ),
        ];
        for (name, id) in ids {
            if let Some(id) = id {
                map.serialize_entry(name, &Hex(id.as_bytes()))?;
            }
        }
        map.serialize_entry("disable_active_migration", &its.disable_active_migration)?;
        map.serialize_entry("grease_quic_bit", &its.grease_quic_bit)?;
        let (bidi_local, bidi_remote) = (
            its.initial_max_stream_data_bidi_local,
            its.initial_max_stream_data_bidi_remote,
        );
        let numbers = [
            ("max_idle_timeout", its.max_idle_timeout.as_millis()),
            ("max_udp_payload_size", its.max_udp_payload_size),
            ("ack_delay_exponent", u64::from(its.ack_delay_exponent)),
            // The wire value is rounded up.
            (
                "max_ack_delay",
                its.max_ack_delay.as_nanos().div_ceil(1_000_000),
            ),
            ("active_connection_id_limit", its.active_connection_id_limit),
            ("initial_max_data", its.initial_max_data),
            ("initial_max_stream_data_bidi_local", bidi_local),
            ("initial_max_stream_data_bidi_remote", bidi_remote),
            (
                "initial_max_stream_data_uni",
                its.initial_max_stream_data_uni,
            ),
            ("initial_max_streams_bidi", its.initial_max_streams_bidi),
            ("initial_max_streams_uni", its.initial_max_streams_uni),
            ("max_datagram_frame_size", its.max_datagram_frame_size),
        ];
        for (name, number) in numbers {
            map.serialize_entry(name, &number)?;
        }
        let spans = [
            ("weir_max_ack_delay_us", its.fine_max_ack_delay),
            ("weir_min_ack_delay_us", its.min_ack_delay),
        ];
        for (name, span) in spans {
            if let Some(span) = span {
                map.serialize_entry(name, &(span.as_nanos() / 1000))?;
            }
        }
        if let Some(burst) = its.receive_burst {
            map.serialize_entry("weir_receive_burst", &burst)?;
        }
        map.end()
    }
}

/// `mtu_updated`.
#[derive(Serialize)]
pub(crate) struct MtuUpdated {
    pub(crate) old: usize,
    pub(crate) new: usize,
    pub(crate) done: bool,
}

/// `tuple_assigned`; without endpoints, the path is gone.
#[derive(Serialize)]
pub(crate) struct TupleAssigned<'a> {
    tuple_id: DisplayText<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple_remote: Option<End<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple_local: Option<End<'a>>,
}

impl TupleAssigned<'_> {
    pub(crate) fn new(path: &PathAddresses) -> Self {
        Self {
            tuple_id: tuple_id(path),
            tuple_remote: Some(End::new(path.remote)),
            tuple_local: path.local.map(End::new),
        }
    }

    pub(crate) fn gone(path: &PathAddresses) -> Self {
        Self {
            tuple_id: tuple_id(path),
            tuple_remote: None,
            tuple_local: None,
        }
    }
}

fn tuple_id(path: &PathAddresses) -> DisplayText<String> {
    let number = tuple(path.path).map(|text| text.0.to_string());
    DisplayText(number.unwrap_or_default())
}

/// `migration_state_updated`.
#[derive(Serialize)]
pub(crate) struct MigrationState<'a> {
    new: &'static str,
    tuple_id: DisplayText<String>,
    tuple_remote: End<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple_local: Option<End<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weir_cause: Option<&'static str>,
}

impl MigrationState<'_> {
    /// Creates the migration event of a path event; `None` where it has none.
    pub(crate) fn new(event: PathEvent, path: &PathAddresses) -> Option<Self> {
        let (new, weir_cause) = match event {
            PathEvent::Validated { .. } => ("probing_successful", None),
            PathEvent::Failed { .. } => ("probing_abandoned", None),
            PathEvent::Moved { cause, .. } => ("migration_started", Some(cause.name())),
            PathEvent::Closed { .. } => return None,
        };
        Some(Self {
            new,
            tuple_id: tuple_id(path),
            tuple_remote: End::new(path.remote),
            tuple_local: path.local.map(End::new),
            weir_cause,
        })
    }
}

/// `weir:migration_decided`: the cause and each metric by its name.
pub(crate) struct MigrationDecided<'a>(pub(crate) &'a Decision);

impl Serialize for MigrationDecided<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let decision = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("from", &decision.from.as_u32())?;
        map.serialize_entry("to", &decision.to.as_u32())?;
        map.serialize_entry("cause", decision.cause.name())?;
        map.serialize_entry("description", &DisplayText(decision))?;
        let mut result = Ok(());
        decision.figures(|name, value| {
            if result.is_ok() {
                result = map.serialize_entry(name, &value);
            }
        });
        result?;
        map.end()
    }
}

/// `connection_closed`.
#[derive(Serialize)]
pub(crate) struct ConnectionClosed {
    #[serde(skip_serializing_if = "Option::is_none")]
    initiator: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<u64>,
    reason: String,
    trigger: &'static str,
}

impl ConnectionClosed {
    pub(crate) fn new(error: &ConnectionError) -> Self {
        let mut closed = Self {
            initiator: Some("local"),
            connection_error: None,
            application_error: None,
            error_code: None,
            reason: error.to_string(),
            trigger: "error",
        };
        match error {
            ConnectionError::Transport(error) => {
                closed.connection_error = Some(transport_error(error.code));
                closed.error_code = Some(error.code.as_u64());
            }
            ConnectionError::PeerTransport { code, .. } => {
                closed.initiator = Some("remote");
                closed.connection_error = Some(transport_error(*code));
                closed.error_code = Some(code.as_u64());
            }
            ConnectionError::PeerApplication { code, .. } => {
                closed.initiator = Some("remote");
                closed.application_error = Some("unknown");
                closed.error_code = Some(*code);
                closed.trigger = "application";
            }
            ConnectionError::Local => closed.trigger = "application",
            ConnectionError::HandshakeTimeout(_)
            | ConnectionError::PeerSilent { .. }
            | ConnectionError::PeerUnreachable { .. } => closed.trigger = "aborted",
            ConnectionError::IdleTimeout(_) => closed.trigger = "idle_timeout",
            ConnectionError::NoCommonVersion { .. } => closed.trigger = "version_mismatch",
            ConnectionError::Refused { .. } => {
                closed.initiator = Some("remote");
                closed.connection_error = Some(transport_error(Code::CONNECTION_REFUSED));
                closed.error_code = Some(Code::CONNECTION_REFUSED.as_u64());
            }
            ConnectionError::KnownPeerRefused { .. } => {
                closed.initiator = Some("remote");
            }
            ConnectionError::StatelessReset => {
                closed.initiator = Some("remote");
                closed.trigger = "stateless_reset";
            }
        }
        closed
    }
}

/// Returns the draft's name of a transport error code.
pub(crate) fn transport_error(code: Code) -> String {
    match code.tls_alert() {
        Some(alert) => format!("crypto_error_0x1{alert:02x}"),
        None if code.as_u64() <= Code::NO_VIABLE_PATH.as_u64() => {
            code.to_string().to_ascii_lowercase()
        }
        None => "unknown".to_owned(),
    }
}

/// Returns `local` or `remote`.
pub(crate) fn initiator(by: Side, ours: Side) -> &'static str {
    if by == ours { "local" } else { "remote" }
}
