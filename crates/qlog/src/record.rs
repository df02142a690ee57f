//! A file's header and the envelope of each event (draft-ietf-quic-qlog-main-schema).

use std::time::{Duration as StdDuration, SystemTime};

use serde::Serialize;
use weir_quic::PathId;
use weir_quic::observe::Subject;
use weir_units::Duration;

use crate::hex::DisplayText;

/// The schema of the events in the namespace `quic`.
pub const QUIC_EVENTS: &str = "urn:ietf:params:qlog:events:quic-14";
/// The schema of the events in the namespace `weir`.
pub const WEIR_EVENTS: &str = "urn:weir:qlog:events:weir-1";

/// The first record of a file.
#[derive(Serialize)]
pub(crate) struct Header {
    file_schema: &'static str,
    serialization_format: &'static str,
    title: String,
    trace: Trace,
}

#[derive(Serialize)]
struct Trace {
    common_fields: CommonFields,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 2],
}

#[derive(Serialize)]
struct CommonFields {
    group_id: String,
    time_format: &'static str,
    reference_time: ReferenceTime,
}

#[derive(Serialize)]
struct ReferenceTime {
    clock_type: &'static str,
    epoch: &'static str,
    wall_clock_time: String,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    r#type: &'static str,
}

impl Header {
    /// Creates the header of a connection that began at this wall-clock time, since 1970.
    pub(crate) fn new(subject: &Subject, began: Duration) -> Self {
        let began = SystemTime::UNIX_EPOCH.checked_add(StdDuration::from(began));
        let began = began.unwrap_or(SystemTime::UNIX_EPOCH);
        Self {
            file_schema: "urn:ietf:params:qlog:file:sequential",
            serialization_format: "application/qlog+json-seq",
            title: format!("DCQUIC connection with {}", subject.remote),
            trace: Trace {
                common_fields: CommonFields {
                    group_id: subject.original_destination.to_string(),
                    time_format: "relative_to_epoch",
                    reference_time: ReferenceTime {
                        clock_type: "monotonic",
                        epoch: "unknown",
                        wall_clock_time: humantime::format_rfc3339_nanos(began).to_string(),
                    },
                },
                vantage_point: VantagePoint {
                    name: "weir",
                    r#type: crate::side(subject.side),
                },
                event_schemas: [QUIC_EVENTS, WEIR_EVENTS],
            },
        }
    }
}

/// An event record.
#[derive(Serialize)]
pub(crate) struct Record<Data> {
    /// Milliseconds since the connection began.
    pub(crate) time: f64,
    pub(crate) name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tuple: Option<DisplayText<u32>>,
    pub(crate) data: Data,
}

/// Returns the draft's name of a path: the handshake's path has the empty one, which is left out.
pub(crate) fn tuple(path: PathId) -> Option<DisplayText<u32>> {
    (path != PathId::FIRST).then(|| DisplayText(path.as_u32()))
}

/// Converts a time span to milliseconds, the draft's unit.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}

/// Lengths of a packet or frame.
#[derive(Serialize)]
pub(crate) struct RawInfo {
    pub(crate) length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload_length: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
