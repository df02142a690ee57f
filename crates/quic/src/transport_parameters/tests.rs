//! Round trips of parameters, and parameters that must be refused.

use std::net::{SocketAddrV4, SocketAddrV6};

use proptest::prelude::*;
use weir_units::Duration;

use super::*;
use crate::codec::{VARINT_MAX, put_varint};
use crate::{Code, Side};

const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, id);
    put_varint(&mut out, value.len() as u64);
    out.extend_from_slice(value);
    out
}

fn number(id: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, value);
    parameter(id, &out)
}

fn assert_refused(sender: Side, bytes: &[u8]) {
    let error = TransportParameters::decode(sender, bytes).unwrap_err();
    assert_eq!(error.code, Code::TRANSPORT_PARAMETER_ERROR, "{bytes:?}");
}

fn assert_accepted(sender: Side, bytes: &[u8]) {
    TransportParameters::decode(sender, bytes).unwrap();
}

#[test]
fn absent_parameters_have_the_defaults_of_rfc_9000_section_18_2() {
    for side in SIDES {
        let absent = TransportParameters::decode(side, &[]).unwrap();
        assert_eq!(absent, TransportParameters::default());
        assert_eq!(absent.max_udp_payload_size, 65_527);
        assert_eq!(absent.ack_delay_exponent, 3);
        assert_eq!(absent.max_ack_delay, Duration::from_millis(25));
        assert_eq!(absent.active_connection_id_limit, 2);
        let mut out = Vec::new();
        absent.encode(side, &mut out, None);
        assert!(out.is_empty());
    }
}

#[test]
fn value_ranges_follow_the_rfc() {
    for (id, least) in [
        (id::MAX_UDP_PAYLOAD_SIZE, 1200),
        (id::ACTIVE_CONNECTION_ID_LIMIT, 2),
    ] {
        assert_accepted(Side::Client, &number(id, least));
        assert_refused(Side::Client, &number(id, least - 1));
    }
    for (id, most) in [
        (id::ACK_DELAY_EXPONENT, 20),
        (id::MAX_ACK_DELAY, (1 << 14) - 1),
        (id::INITIAL_MAX_STREAMS_BIDI, 1 << 60),
        (id::INITIAL_MAX_STREAMS_UNI, 1 << 60),
        (id::FINE_MAX_ACK_DELAY, 16_383_000),
    ] {
        assert_accepted(Side::Client, &number(id, most));
        assert_refused(Side::Client, &number(id, most + 1));
    }
}

#[test]
fn parameters_of_invalid_length_are_rejected() {
    for numeric in [
        id::MAX_IDLE_TIMEOUT,
        id::MAX_UDP_PAYLOAD_SIZE,
        id::INITIAL_MAX_DATA,
        id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
        id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
        id::INITIAL_MAX_STREAM_DATA_UNI,
        id::INITIAL_MAX_STREAMS_BIDI,
        id::INITIAL_MAX_STREAMS_UNI,
        id::ACK_DELAY_EXPONENT,
        id::MAX_ACK_DELAY,
        id::ACTIVE_CONNECTION_ID_LIMIT,
        id::MAX_DATAGRAM_FRAME_SIZE,
        id::MIN_ACK_DELAY,
        id::FINE_MAX_ACK_DELAY,
    ] {
        assert_refused(Side::Server, &parameter(numeric, &[]));
        assert_refused(Side::Server, &parameter(numeric, &[0x40]));
        assert_refused(Side::Server, &parameter(numeric, &[2, 0]));
    }
    for connection_id in [
        id::ORIGINAL_DESTINATION_CONNECTION_ID,
        id::INITIAL_SOURCE_CONNECTION_ID,
        id::RETRY_SOURCE_CONNECTION_ID,
    ] {
        assert_accepted(Side::Server, &parameter(connection_id, &[]));
        assert_accepted(Side::Server, &parameter(connection_id, &[1; 20]));
        assert_refused(Side::Server, &parameter(connection_id, &[1; 21]));
    }
    assert_refused(
        Side::Server,
        &parameter(id::STATELESS_RESET_TOKEN, &[1; 15]),
    );
    assert_refused(
        Side::Server,
        &parameter(id::STATELESS_RESET_TOKEN, &[1; 17]),
    );
    assert_refused(Side::Server, &parameter(id::DISABLE_ACTIVE_MIGRATION, &[0]));
    assert_refused(Side::Server, &parameter(id::GREASE_QUIC_BIT, &[0]));
    assert_refused(Side::Server, &[id::MAX_IDLE_TIMEOUT as u8, 5, 0]);
    assert_refused(Side::Server, &[id::MAX_IDLE_TIMEOUT as u8]);
}

#[test]
fn a_preferred_address_requires_a_valid_connection_id() {
    let mut value = [1; 41 + 8];
    value[24] = 8;
    assert_accepted(Side::Server, &parameter(id::PREFERRED_ADDRESS, &value));
    value[24] = 7;
    assert_refused(Side::Server, &parameter(id::PREFERRED_ADDRESS, &value));
    value[24] = 9;
    assert_refused(Side::Server, &parameter(id::PREFERRED_ADDRESS, &value));
    let mut without = [1; 41];
    without[24] = 0;
    assert_refused(Side::Server, &parameter(id::PREFERRED_ADDRESS, &without));
    let mut long = [1; 41 + 21];
    long[24] = 21;
    assert_refused(Side::Server, &parameter(id::PREFERRED_ADDRESS, &long));
}

#[test]
fn server_only_parameters_from_a_client_are_rejected() {
    let mut address = [1; 42];
    address[24] = 1;
    for bytes in [
        parameter(id::ORIGINAL_DESTINATION_CONNECTION_ID, &[1; 8]),
        parameter(id::STATELESS_RESET_TOKEN, &[1; 16]),
        parameter(id::PREFERRED_ADDRESS, &address),
        parameter(id::RETRY_SOURCE_CONNECTION_ID, &[1; 8]),
    ] {
        assert_accepted(Side::Server, &bytes);
        assert_refused(Side::Client, &bytes);
    }
}

#[test]
fn duplicate_parameters_are_rejected() {
    for once in [
        number(id::INITIAL_MAX_DATA, 7),
        number(id::MAX_DATAGRAM_FRAME_SIZE, 7),
        number(id::FINE_MAX_ACK_DELAY, 7),
        number(id::MIN_ACK_DELAY, 7),
        parameter(id::GREASE_QUIC_BIT, &[]),
        parameter(id::DISABLE_ACTIVE_MIGRATION, &[]),
    ] {
        assert_accepted(Side::Client, &once);
        assert_refused(Side::Client, &[once.clone(), once].concat());
    }
}

#[test]
fn min_ack_delay_must_not_exceed_max_ack_delay() {
    assert_accepted(Side::Client, &number(id::MIN_ACK_DELAY, 25_000));
    assert_refused(Side::Client, &number(id::MIN_ACK_DELAY, 25_001));
    let greater = number(id::MAX_ACK_DELAY, 30);
    let least = number(id::MIN_ACK_DELAY, 30_000);
    // In any order.
    assert_accepted(Side::Client, &[&greater[..], &least].concat());
    assert_accepted(Side::Client, &[&least[..], &greater].concat());
}

#[test]
fn durations_are_rounded_up_on_the_wire() {
    let ours = TransportParameters {
        max_idle_timeout: Duration::from_micros(1),
        max_ack_delay: Duration::from_micros(1_001),
        fine_max_ack_delay: Some(Duration::from_nanos(50_001)),
        ..TransportParameters::default()
    };
    let mut out = Vec::new();
    ours.encode(Side::Client, &mut out, None);
    let theirs = TransportParameters::decode(Side::Client, &out).unwrap();
    assert_eq!(theirs.max_idle_timeout, Duration::from_millis(1));
    assert_eq!(theirs.max_ack_delay, Duration::from_millis(2));
    assert_eq!(theirs.ack_delay_bound(), Duration::from_micros(51));
    assert_eq!(
        TransportParameters::default().ack_delay_bound(),
        Duration::from_millis(25)
    );
}

#[test]
fn the_private_parameter_id_is_not_a_reserved_one() {
    assert_ne!(id::FINE_MAX_ACK_DELAY % 31, 27);
}

fn varint() -> impl Strategy<Value = u64> {
    (0..=VARINT_MAX, 0..62_u32).prop_map(|(value, shift)| value >> shift)
}

fn connection_id(least: usize) -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), least..=ConnectionId::MAX_LENGTH)
        .prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

fn preferred_address() -> impl Strategy<Value = PreferredAddress> {
    let ipv4 = prop::option::of((any::<[u8; 4]>(), 1..=u16::MAX));
    let ipv6 = prop::option::of((any::<[u8; 16]>(), 1..=u16::MAX));
    (ipv4, ipv6, connection_id(1), any::<[u8; 16]>()).prop_map(
        |(ipv4, ipv6, connection_id, reset_token)| PreferredAddress {
            ipv4: ipv4.map(|(ip, port)| SocketAddrV4::new(ip.into(), port)),
            ipv6: ipv6.map(|(ip, port)| SocketAddrV6::new(ip.into(), port, 0, 0)),
            connection_id,
            reset_token,
        },
    )
}

prop_compose! {
    fn server_only()(
        original in prop::option::of(connection_id(0)),
        retry in prop::option::of(connection_id(0)),
        token in prop::option::of(any::<[u8; 16]>()),
        address in prop::option::of(preferred_address()),
        answer in prop::option::of((1..=3_u8, 0..1_u64 << 40)),
    ) -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: original,
            retry_source_connection_id: retry,
            stateless_reset_token: token,
            preferred_address: address,
            abandoned_answer: answer.map(|(result, micros)| {
                (Abandonment::from_wire(result).unwrap(), Duration::from_micros(micros))
            }),
            ..TransportParameters::default()
        }
    }
}

prop_compose! {
    fn parameters(side: Side)(
        server_only in server_only(),
        limits in [varint(), varint(), varint(), varint(), varint()],
        streams in [varint(), varint()],
        size in 1200..=65_527_u64,
        ids in 2..=VARINT_MAX,
        exponent in 0..=20_u8,
        idle_millis in 0..1_u64 << 40,
        ack_millis in 0..1_u64 << 14,
        fine_micros in prop::option::of(0..16_383_000_u64),
        disable: bool,
        grease_quic_bit: bool,
        least_micros in prop::option::of(0..16_383_000_u64),
        source in prop::option::of(connection_id(0)),
        ours in any::<[bool; 2]>(),
        abandoned in prop::option::of((any::<[u8; 16]>(), any::<u64>())),
    ) -> TransportParameters {
        let base = match side {
            Side::Client => TransportParameters::default(),
            Side::Server => server_only,
        };
        TransportParameters {
            max_idle_timeout: Duration::from_millis(idle_millis),
            max_udp_payload_size: size,
            initial_max_data: limits[0],
            initial_max_stream_data_bidi_local: limits[1],
            initial_max_stream_data_bidi_remote: limits[2],
            initial_max_stream_data_uni: limits[3],
            max_datagram_frame_size: limits[4],
            initial_max_streams_bidi: streams[0] >> 2,
            initial_max_streams_uni: streams[1] >> 2,
            ack_delay_exponent: exponent,
            max_ack_delay: Duration::from_millis(ack_millis),
            fine_max_ack_delay: fine_micros.map(Duration::from_micros),
            disable_active_migration: disable,
            grease_quic_bit,
            min_ack_delay: least_micros.map(|micros| Duration::from_micros(micros.min(ack_millis * 1_000))),
            active_connection_id_limit: ids,
            initial_source_connection_id: source,
            known_peers: ours[0],
            go_away: ours[1],
            receive_burst: ours[0].then_some(limits[0]),
            abandoned_key: abandoned.map(|(id, key_id)| (CredentialId::new(id), key_id)),
            ..base
        }
    }
}

fn side_and_parameters() -> impl Strategy<Value = (Side, TransportParameters)> {
    prop_oneof![
        parameters(Side::Client).prop_map(|parameters| (Side::Client, parameters)),
        parameters(Side::Server).prop_map(|parameters| (Side::Server, parameters)),
    ]
}

proptest! {
    #[test]
    fn parameters_round_trip(
        (side, parameters) in side_and_parameters(),
        grease in prop::option::of(any::<u64>()),
    ) {
        let mut out = Vec::new();
        parameters.encode(side, &mut out, grease);
        prop_assert_eq!(TransportParameters::decode(side, &out).unwrap(), parameters);
        for end in 0..out.len() {
            let _ = TransportParameters::decode(side, &out[..end]);
        }
    }

    #[test]
    fn a_client_never_encodes_server_only_parameters(parameters in parameters(Side::Server)) {
        let mut out = Vec::new();
        parameters.encode(Side::Client, &mut out, None);
        let read = TransportParameters::decode(Side::Client, &out).unwrap();
        prop_assert_eq!(read, TransportParameters {
            original_destination_connection_id: None,
            stateless_reset_token: None,
            preferred_address: None,
            retry_source_connection_id: None,
            abandoned_answer: None,
            ..parameters
        });
    }

    #[test]
    fn reserved_parameters_are_ignored(random: u64) {
        let mut out = Vec::new();
        TransportParameters::default().encode(Side::Client, &mut out, Some(random));
        prop_assert!(!out.is_empty());
        let read = TransportParameters::decode(Side::Client, &out).unwrap();
        prop_assert_eq!(read, TransportParameters::default());
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_decoded_parameters_reencode(
        bytes in prop::collection::vec(prop_oneof![0..0x21_u8, any::<u8>()], 0..100),
    ) {
        for side in SIDES {
            if let Ok(parameters) = TransportParameters::decode(side, &bytes) {
                let mut out = Vec::new();
                parameters.encode(side, &mut out, None);
                prop_assert_eq!(TransportParameters::decode(side, &out).unwrap(), parameters);
            }
        }
    }
}
