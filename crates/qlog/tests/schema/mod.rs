//! The schema of draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events for the
//! events that Weir writes: each mandatory field, each optional field, and the values of
//! enumerations. Weir's own fields begin with `weir_`.

use serde_json::Value;

/// A field: its name, whether it is mandatory, and its kind.
type Field = (&'static str, bool, Kind);

#[derive(Clone, Copy)]
enum Kind {
    /// An unsigned integer.
    Count,
    /// A number that is not negative.
    Number,
    Bool,
    Text,
    Hex,
    /// One of these words.
    Word(&'static [&'static str]),
    /// An object with these fields.
    Object(&'static [Field]),
    Frames,
    Ranges,
    List(&'static Kind),
}

use Kind::{Bool, Count, Frames, Hex, List, Number, Object, Ranges, Text, Word};

const PACKET_TYPES: Kind = Word(&["initial", "handshake", "0RTT", "1RTT"]);
const HEADER: Kind = Object(&[
    ("packet_type", true, PACKET_TYPES),
    ("packet_number", true, Count),
]);
const RAW: Kind = Object(&[("length", false, Count), ("payload_length", false, Count)]);
const END: Kind = Object(&[
    ("ip_v4", false, Text),
    ("port_v4", false, Count),
    ("ip_v6", false, Text),
    ("port_v6", false, Count),
    ("connection_ids", false, List(&Hex)),
]);
const PACKET: &[Field] = &[
    ("header", true, HEADER),
    ("frames", true, Frames),
    ("raw", true, RAW),
    ("is_mtu_probe_packet", false, Bool),
];
const ECN: Kind = Word(&["testing", "unknown", "failed", "capable"]);
const ERROR: Kind = Word(&["unknown"]);
const STREAM_TYPE: Kind = Word(&["bidirectional", "unidirectional"]);

/// The events of the draft that Weir writes.
const EVENTS: &[(&str, &[Field])] = &[
    (
        "quic:connection_started",
        &[("local", true, END), ("remote", true, END)],
    ),
    (
        "quic:connection_closed",
        &[
            ("initiator", false, Word(&["local", "remote"])),
            ("connection_error", false, Text),
            ("application_error", false, ERROR),
            ("error_code", false, Count),
            ("reason", false, Text),
            (
                "trigger",
                false,
                Word(&[
                    "idle_timeout",
                    "application",
                    "error",
                    "version_mismatch",
                    "stateless_reset",
                    "aborted",
                    "unspecified",
                ]),
            ),
        ],
    ),
    (
        "quic:connection_state_updated",
        &[(
            "new",
            true,
            Word(&[
                "attempted",
                "handshake_complete",
                "handshake_confirmed",
                "closing",
                "draining",
                "closed",
            ]),
        )],
    ),
    (
        "quic:tuple_assigned",
        &[
            ("tuple_id", true, Text),
            ("tuple_remote", false, END),
            ("tuple_local", false, END),
        ],
    ),
    (
        "quic:mtu_updated",
        &[
            ("old", false, Count),
            ("new", true, Count),
            ("done", false, Bool),
        ],
    ),
    (
        "quic:parameters_set",
        &[
            ("initiator", false, Word(&["local", "remote"])),
            ("original_destination_connection_id", false, Hex),
            ("initial_source_connection_id", false, Hex),
            ("retry_source_connection_id", false, Hex),
            ("disable_active_migration", false, Bool),
            ("grease_quic_bit", false, Bool),
            ("max_idle_timeout", false, Count),
            ("max_udp_payload_size", false, Count),
            ("ack_delay_exponent", false, Count),
            ("max_ack_delay", false, Count),
            ("active_connection_id_limit", false, Count),
            ("initial_max_data", false, Count),
            ("initial_max_stream_data_bidi_local", false, Count),
            ("initial_max_stream_data_bidi_remote", false, Count),
            ("initial_max_stream_data_uni", false, Count),
            ("initial_max_streams_bidi", false, Count),
            ("initial_max_streams_uni", false, Count),
            ("max_datagram_frame_size", false, Count),
        ],
    ),
    ("quic:packet_sent", PACKET),
    ("quic:packet_received", PACKET),
    (
        "quic:packet_dropped",
        &[
            ("raw", false, RAW),
            ("details", false, Object(&[("reason", true, Text)])),
            (
                "trigger",
                false,
                Word(&[
                    "internal_error",
                    "rejected",
                    "unsupported",
                    "invalid",
                    "duplicate",
                    "connection_unknown",
                    "decryption_failure",
                    "key_unavailable",
                    "general",
                ]),
            ),
        ],
    ),
    (
        "quic:packet_lost",
        &[
            ("header", true, HEADER),
            ("is_mtu_probe_packet", false, Bool),
            (
                "trigger",
                false,
                Word(&["reordering_threshold", "time_threshold", "pto_expired"]),
            ),
        ],
    ),
    (
        "quic:recovery_metrics_updated",
        &[
            ("min_rtt", false, Number),
            ("smoothed_rtt", false, Number),
            ("latest_rtt", false, Number),
            ("rtt_variance", false, Number),
            ("pto_count", false, Count),
            ("congestion_window", false, Count),
            ("bytes_in_flight", false, Count),
            ("ssthresh", false, Count),
            ("pacing_rate", false, Count),
        ],
    ),
    (
        "quic:congestion_state_updated",
        &[("old", false, Text), ("new", true, Text)],
    ),
    (
        "quic:ecn_state_updated",
        &[("old", false, ECN), ("new", true, ECN)],
    ),
    (
        "quic:key_updated",
        &[
            (
                "key_type",
                true,
                Word(&["client_1rtt_secret", "server_1rtt_secret"]),
            ),
            ("key_phase", false, Count),
        ],
    ),
    (
        "quic:migration_state_updated",
        &[
            (
                "new",
                true,
                Word(&[
                    "probing_started",
                    "probing_abandoned",
                    "probing_successful",
                    "migration_started",
                    "migration_abandoned",
                    "migration_complete",
                ]),
            ),
            ("tuple_id", false, Text),
            ("tuple_remote", false, END),
            ("tuple_local", false, END),
        ],
    ),
];

const FRAMES: &[(&str, &[Field])] = &[
    ("padding", &[]),
    ("ping", &[]),
    (
        "ack",
        &[
            ("ack_delay", false, Number),
            ("acked_ranges", true, Ranges),
            ("ect0", false, Count),
            ("ect1", false, Count),
            ("ce", false, Count),
        ],
    ),
    (
        "reset_stream",
        &[
            ("stream_id", true, Count),
            ("error", true, ERROR),
            ("error_code", true, Count),
            ("final_size", true, Count),
        ],
    ),
    (
        "stop_sending",
        &[
            ("stream_id", true, Count),
            ("error", true, ERROR),
            ("error_code", true, Count),
        ],
    ),
    ("crypto", &[("offset", true, Count), ("raw", true, RAW)]),
    (
        "new_token",
        &[(
            "token",
            true,
            Object(&[("type", false, Text), ("raw", false, RAW)]),
        )],
    ),
    (
        "stream",
        &[
            ("stream_id", true, Count),
            ("offset", false, Count),
            ("fin", false, Bool),
            ("raw", false, RAW),
        ],
    ),
    ("max_data", &[("maximum", true, Count)]),
    (
        "max_stream_data",
        &[("stream_id", true, Count), ("maximum", true, Count)],
    ),
    (
        "max_streams",
        &[("stream_type", true, STREAM_TYPE), ("maximum", true, Count)],
    ),
    (
        "new_connection_id",
        &[
            ("sequence_number", true, Count),
            ("retire_prior_to", true, Count),
            ("connection_id_length", false, Count),
            ("connection_id", true, Hex),
        ],
    ),
    ("retire_connection_id", &[("sequence_number", true, Count)]),
    ("path_challenge", &[("data", false, Hex)]),
    ("path_response", &[("data", false, Hex)]),
    (
        "connection_close",
        &[
            ("error_space", false, Word(&["transport", "application"])),
            ("error", false, Text),
            ("error_code", false, Count),
            ("reason", false, Text),
            ("trigger_frame_type", false, Count),
        ],
    ),
    ("handshake_done", &[]),
    ("datagram", &[("raw", false, RAW)]),
    ("unknown", &[("frame_type_bytes", false, Count)]),
];

/// Returns the records of a file, checked: the header and the events.
pub(crate) fn read(file: &[u8]) -> (Value, Vec<Value>) {
    let text = std::str::from_utf8(file).unwrap();
    let records = text.strip_prefix('\u{1e}').expect("a record separator");
    let mut records = records.split('\u{1e}').map(|record| {
        let record = record.strip_suffix('\n').expect("a newline");
        serde_json::from_str::<Value>(record).unwrap()
    });
    let header = records.next().unwrap();
    check_header(&header);
    let mut time = 0.0;
    let events: Vec<_> = records.collect();
    for event in &events {
        let at = event["time"].as_f64().expect("a time");
        assert!(at >= time, "times go backwards: {event}");
        time = at;
        check_event(event);
    }
    (header, events)
}

fn check_header(header: &Value) {
    assert_eq!(
        header["file_schema"],
        "urn:ietf:params:qlog:file:sequential"
    );
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    let trace = &header["trace"];
    let kind = trace["vantage_point"]["type"].as_str();
    assert!(matches!(kind, Some("client" | "server")), "{header}");
    let common = &trace["common_fields"];
    assert_eq!(common["time_format"], "relative_to_epoch");
    let reference = &common["reference_time"];
    // A clock of its own has no known epoch.
    assert_eq!(reference["clock_type"], "monotonic");
    assert_eq!(reference["epoch"], "unknown");
    assert!(
        reference["wall_clock_time"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let schemas = trace["event_schemas"].as_array().unwrap();
    assert!(schemas.contains(&weir_qlog::QUIC_EVENTS.into()));
}

fn check_event(event: &Value) {
    for name in event.as_object().unwrap().keys() {
        assert!(
            ["time", "name", "data", "tuple"].contains(&name.as_str()),
            "{name}"
        );
    }
    let name = event["name"].as_str().unwrap();
    if name.starts_with("weir:") {
        return;
    }
    let fields = EVENTS.iter().find(|(known, _)| *known == name);
    let (_, fields) = fields.unwrap_or_else(|| panic!("no such event: {event}"));
    check_fields(&event["data"], fields, event);
}

fn check_fields(object: &Value, fields: &[Field], event: &Value) {
    let object = object.as_object().unwrap_or_else(|| panic!("{event}"));
    for (name, required, kind) in fields {
        match object.get(*name) {
            Some(value) => assert!(is(value, *kind, event), "{name} in {event}"),
            None => assert!(!required, "no {name} in {event}"),
        }
    }
    for name in object.keys() {
        let known = fields.iter().any(|(known, ..)| known == name);
        let ours = name.starts_with("weir_") || name == "frame_type";
        assert!(known || ours, "{name} in {event}");
    }
}

fn is(value: &Value, kind: Kind, event: &Value) -> bool {
    match kind {
        Count => value.is_u64(),
        Number => value.as_f64().is_some_and(|number| number >= 0.0),
        Bool => value.is_boolean(),
        Text => value.is_string(),
        Hex => value.as_str().is_some_and(|text| {
            text.len() % 2 == 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        }),
        Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Object(fields) => {
            check_fields(value, fields, event);
            true
        }
        Frames => value.as_array().is_some_and(|frames| {
            frames.iter().for_each(|frame| check_frame(frame, event));
            true
        }),
        Ranges => value.as_array().is_some_and(|ranges| {
            let ends = |range: &Value| range.as_array().map_or(0, Vec::len);
            !ranges.is_empty() && ranges.iter().all(|range| matches!(ends(range), 1 | 2))
        }),
        List(kind) => value
            .as_array()
            .is_some_and(|list| list.iter().all(|item| is(item, *kind, event))),
    }
}

fn check_frame(frame: &Value, event: &Value) {
    let name = frame["frame_type"].as_str().unwrap();
    let fields = FRAMES.iter().find(|(known, _)| *known == name);
    let (_, fields) = fields.unwrap_or_else(|| panic!("no such frame: {frame}"));
    check_fields(frame, fields, event);
}
