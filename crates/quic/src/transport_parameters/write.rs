//! Encoding transport parameters.

use weir_units::Duration;

use super::{PreferredAddress, TransportParameters, VersionInformation, id};
use crate::Side;
use crate::codec::{VARINT_MAX, put_varint, varint_size};
use crate::known_peers::CredentialId;

impl TransportParameters {
    /// Appends the parameters of `side`: a client omits those that only servers may send, and
    /// default values are omitted.
    ///
    /// `grease` is a random number for a reserved parameter, which the peer must ignore (RFC 9000,
    /// section 18.1), so that peers do not rely on knowing all of them.
    pub fn encode(&self, side: Side, out: &mut Vec<u8>, grease: Option<u64>) {
        if !side.is_client() {
            self.encode_server_only(out);
        }
        self.encode_limits(out);
        self.encode_acknowledgment(out);
        if !self.max_idle_timeout.is_zero() {
            let millis = rounded_up(self.max_idle_timeout, Duration::from_millis(1));
            put_number(out, id::MAX_IDLE_TIMEOUT, millis);
        }
        if self.disable_active_migration {
            put_bytes(out, id::DISABLE_ACTIVE_MIGRATION, &[]);
        }
        if self.grease_quic_bit {
            put_bytes(out, id::GREASE_QUIC_BIT, &[]);
        }
        if self.go_away {
            put_bytes(out, id::GO_AWAY, &[]);
        }
        if let Some(burst) = self.receive_burst {
            put_number(out, id::RECEIVE_BURST, burst);
        }
        if self.known_peers {
            put_bytes(out, id::KNOWN_PEERS, &[]);
        }
        if let Some((credential, key_id)) = &self.abandoned_key {
            let mut value = [0; CredentialId::LENGTH + 8];
            value[..CredentialId::LENGTH].copy_from_slice(credential.as_bytes());
            value[CredentialId::LENGTH..].copy_from_slice(&key_id.to_be_bytes());
            put_bytes(out, id::ABANDONED_KEY, &value);
        }
        if let Some(source) = &self.initial_source_connection_id {
            put_bytes(out, id::INITIAL_SOURCE_CONNECTION_ID, source.as_bytes());
        }
        if let Some(versions) = &self.version_information {
            put_versions(out, versions);
        }
        if let Some(random) = grease {
            put_reserved(out, random);
        }
    }

    fn encode_server_only(&self, out: &mut Vec<u8>) {
        if let Some(original) = &self.original_destination_connection_id {
            let bytes = original.as_bytes();
            put_bytes(out, id::ORIGINAL_DESTINATION_CONNECTION_ID, bytes);
        }
        if let Some(retry) = &self.retry_source_connection_id {
            put_bytes(out, id::RETRY_SOURCE_CONNECTION_ID, retry.as_bytes());
        }
        if let Some(token) = &self.stateless_reset_token {
            put_bytes(out, id::STATELESS_RESET_TOKEN, token);
        }
        if let Some(address) = &self.preferred_address {
            put_preferred_address(out, address);
        }
        if let Some((result, age)) = self.abandoned_answer {
            let age = age.as_micros().min(VARINT_MAX);
            put_varint(out, id::ABANDONED_ANSWER);
            put_varint(out, 1 + varint_size(age) as u64);
            out.push(result.as_u8());
            put_varint(out, age);
        }
    }

    fn encode_limits(&self, out: &mut Vec<u8>) {
        let absent = Self::default();
        let limits = [
            (
                id::MAX_UDP_PAYLOAD_SIZE,
                self.max_udp_payload_size,
                absent.max_udp_payload_size,
            ),
            (id::INITIAL_MAX_DATA, self.initial_max_data, 0),
            (
                id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
                self.initial_max_stream_data_bidi_local,
                0,
            ),
            (
                id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
                self.initial_max_stream_data_bidi_remote,
                0,
            ),
            (
                id::INITIAL_MAX_STREAM_DATA_UNI,
                self.initial_max_stream_data_uni,
                0,
            ),
            (
                id::INITIAL_MAX_STREAMS_BIDI,
                self.initial_max_streams_bidi,
                0,
            ),
            (id::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni, 0),
            (
                id::ACTIVE_CONNECTION_ID_LIMIT,
                self.active_connection_id_limit,
                absent.active_connection_id_limit,
            ),
            (
                id::MAX_DATAGRAM_FRAME_SIZE,
                self.max_datagram_frame_size,
                absent.max_datagram_frame_size,
            ),
        ];
        for (id, value, absent) in limits {
            if value != absent {
                put_number(out, id, value);
            }
        }
    }

    fn encode_acknowledgment(&self, out: &mut Vec<u8>) {
        let absent = Self::default();
        if self.ack_delay_exponent != absent.ack_delay_exponent {
            let exponent = u64::from(self.ack_delay_exponent);
            put_number(out, id::ACK_DELAY_EXPONENT, exponent);
        }
        if self.max_ack_delay != absent.max_ack_delay {
            let millis = rounded_up(self.max_ack_delay, Duration::from_millis(1));
            put_number(out, id::MAX_ACK_DELAY, millis);
        }
        if let Some(delay) = self.min_ack_delay {
            let micros = rounded_up(delay, Duration::from_micros(1));
            put_number(out, id::MIN_ACK_DELAY, micros);
        }
        if let Some(delay) = self.fine_max_ack_delay {
            let micros = rounded_up(delay, Duration::from_micros(1));
            put_number(out, id::FINE_MAX_ACK_DELAY, micros);
        }
    }
}

/// Returns `span` in units of `unit`, rounded up.
fn rounded_up(span: Duration, unit: Duration) -> u64 {
    span.as_nanos().div_ceil(unit.as_nanos())
}

fn put_number(out: &mut Vec<u8>, id: u64, value: u64) {
    put_varint(out, id);
    put_varint(out, varint_size(value) as u64);
    put_varint(out, value);
}

fn put_bytes(out: &mut Vec<u8>, id: u64, value: &[u8]) {
    put_varint(out, id);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn put_versions(out: &mut Vec<u8>, versions: &VersionInformation) {
    put_varint(out, id::VERSION_INFORMATION);
    put_varint(out, 4 * (1 + versions.available.len() as u64));
    for version in [&versions.chosen].into_iter().chain(&versions.available) {
        out.extend_from_slice(&version.to_be_bytes());
    }
}

/// An absent address is written as zeros.
fn put_preferred_address(out: &mut Vec<u8>, address: &PreferredAddress) {
    let connection_id = address.connection_id.as_bytes();
    put_varint(out, id::PREFERRED_ADDRESS);
    put_varint(out, (4 + 2 + 16 + 2 + 1 + connection_id.len() + 16) as u64);
    let ipv4 = address
        .ipv4
        .map_or(([0; 4], 0), |v4| (v4.ip().octets(), v4.port()));
    let ipv6 = address
        .ipv6
        .map_or(([0; 16], 0), |v6| (v6.ip().octets(), v6.port()));
    out.extend_from_slice(&ipv4.0);
    out.extend_from_slice(&ipv4.1.to_be_bytes());
    out.extend_from_slice(&ipv6.0);
    out.extend_from_slice(&ipv6.1.to_be_bytes());
    out.push(connection_id.len() as u8);
    out.extend_from_slice(connection_id);
    out.extend_from_slice(&address.reset_token);
}

/// Writes a parameter with an ID of the form 31 * N + 27 and up to seven meaningless bytes.
fn put_reserved(out: &mut Vec<u8>, random: u64) {
    let id = random % ((VARINT_MAX - 27) / 31) * 31 + 27;
    let bytes = random.to_be_bytes();
    put_bytes(out, id, &bytes[..(random % 8) as usize]);
}
