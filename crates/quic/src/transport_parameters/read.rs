//! Decoding transport parameters.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use weir_units::Duration;

use super::{MAX_ACK_DELAY_MILLIS, PreferredAddress, TransportParameters, VersionInformation, id};
use crate::codec::{Reader, Truncated};
use crate::frame::MAX_STREAM_COUNT;
use crate::known_peers::{Abandonment, CredentialId};
use crate::{Code, ConnectionId, Side, TransportError};

/// RFC 9000, section 18.2: the smallest `max_udp_payload_size`.
const MIN_UDP_PAYLOAD_SIZE: u64 = 1200;
/// RFC 9000, section 18.2: the largest `ack_delay_exponent`.
const MAX_ACK_DELAY_EXPONENT: u64 = 20;
/// RFC 9000, section 18.2: the smallest `active_connection_id_limit`.
const MIN_CONNECTION_IDS: u64 = 2;

impl TransportParameters {
    /// Reads the parameters of `sender`. Unknown ones are ignored, as RFC 9000, section 18.1,
    /// requires, and not checked for duplicates.
    ///
    /// The connection checks whether the parameters that the handshake needs are present, and
    /// whether connection IDs are those of the handshake (section 7.3).
    ///
    /// # Errors
    /// TRANSPORT_PARAMETER_ERROR if a parameter is malformed, out of range, duplicated, or not
    /// allowed for the sender.
    pub fn decode(sender: Side, bytes: &[u8]) -> Result<Self, TransportError> {
        Self::read(sender, bytes)
            .map_err(|Invalid(reason)| TransportError::new(Code::TRANSPORT_PARAMETER_ERROR, reason))
    }

    fn read(sender: Side, bytes: &[u8]) -> Result<Self, Invalid> {
        let mut parameters = Self::default();
        let mut seen = Seen::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let id = reader.varint()?;
            let value = reader.length_prefixed()?;
            if sender.is_client() && id::is_server_only(id) {
                return Err(Invalid("server's transport parameter from a client"));
            }
            if !seen.insert(id) {
                return Err(Invalid("transport parameter twice"));
            }
            parameters.set(id, value)?;
        }
        check_versions(sender, &parameters)?;
        if parameters
            .min_ack_delay
            .is_some_and(|least| least > parameters.max_ack_delay)
        {
            return Err(Invalid("min_ack_delay above max_ack_delay"));
        }
        Ok(parameters)
    }

    fn set(&mut self, id: u64, value: &[u8]) -> Result<(), Invalid> {
        match id {
            id::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(connection_id(value)?);
            }
            id::MAX_IDLE_TIMEOUT => self.max_idle_timeout = Duration::from_millis(number(value)?),
            id::STATELESS_RESET_TOKEN => {
                let token = value.try_into();
                self.stateless_reset_token =
                    Some(token.map_err(|_| Invalid("stateless reset token not of 16 bytes"))?);
            }
            id::MAX_UDP_PAYLOAD_SIZE => {
                self.max_udp_payload_size = at_least(MIN_UDP_PAYLOAD_SIZE, value)?;
            }
            id::INITIAL_MAX_DATA => self.initial_max_data = number(value)?,
            id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = number(value)?;
            }
            id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = number(value)?;
            }
            id::INITIAL_MAX_STREAM_DATA_UNI => {
                self.initial_max_stream_data_uni = number(value)?;
            }
            id::INITIAL_MAX_STREAMS_BIDI => {
                self.initial_max_streams_bidi = at_most(MAX_STREAM_COUNT, value)?;
            }
            id::INITIAL_MAX_STREAMS_UNI => {
                self.initial_max_streams_uni = at_most(MAX_STREAM_COUNT, value)?;
            }
            id::ACK_DELAY_EXPONENT => {
                self.ack_delay_exponent = at_most(MAX_ACK_DELAY_EXPONENT, value)? as u8;
            }
            id::MAX_ACK_DELAY => {
                self.max_ack_delay = Duration::from_millis(at_most(MAX_ACK_DELAY_MILLIS, value)?);
            }
            id::DISABLE_ACTIVE_MIGRATION | id::GREASE_QUIC_BIT | id::KNOWN_PEERS | id::GO_AWAY
                if !value.is_empty() =>
            {
                return Err(Invalid("transport parameter with a wrong length"));
            }
            id::DISABLE_ACTIVE_MIGRATION => self.disable_active_migration = true,
            id::GREASE_QUIC_BIT => self.grease_quic_bit = true,
            id::PREFERRED_ADDRESS => self.preferred_address = Some(preferred_address(value)?),
            id::ACTIVE_CONNECTION_ID_LIMIT => {
                self.active_connection_id_limit = at_least(MIN_CONNECTION_IDS, value)?;
            }
            id::INITIAL_SOURCE_CONNECTION_ID => {
                self.initial_source_connection_id = Some(connection_id(value)?);
            }
            id::RETRY_SOURCE_CONNECTION_ID => {
                self.retry_source_connection_id = Some(connection_id(value)?);
            }
            id::VERSION_INFORMATION => self.version_information = Some(versions(value)?),
            id::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_size = number(value)?,
            id::MIN_ACK_DELAY => {
                let micros = at_most(MAX_ACK_DELAY_MILLIS * 1_000, value)?;
                self.min_ack_delay = Some(Duration::from_micros(micros));
            }
            id::FINE_MAX_ACK_DELAY => {
                let micros = at_most(MAX_ACK_DELAY_MILLIS * 1_000, value)?;
                self.fine_max_ack_delay = Some(Duration::from_micros(micros));
            }
            id::KNOWN_PEERS => self.known_peers = true,
            id::GO_AWAY => self.go_away = true,
            id::RECEIVE_BURST => self.receive_burst = Some(number(value)?),
            id::ABANDONED_KEY => self.abandoned_key = Some(abandoned_key(value)?),
            id::ABANDONED_ANSWER => self.abandoned_answer = Some(abandoned_answer(value)?),
            _ => {}
        }
        Ok(())
    }
}

/// Invalid parameters: a TRANSPORT_PARAMETER_ERROR.
struct Invalid(&'static str);

impl From<Truncated> for Invalid {
    fn from(_: Truncated) -> Self {
        Self("transport parameter truncated")
    }
}

/// The known parameters seen so far: one bit each.
#[derive(Default)]
struct Seen(u64);

impl Seen {
    /// Adds a parameter; `false` if it was present before.
    fn insert(&mut self, id: u64) -> bool {
        const OURS: u64 = 1 << 63;
        const LEAST: u64 = 1 << 62;
        const GREASE: u64 = 1 << 61;
        const KNOWN: u64 = 1 << 60;
        const ABANDONED: u64 = 1 << 59;
        const ANSWER: u64 = 1 << 58;
        const GO_AWAY: u64 = 1 << 57;
        const BURST: u64 = 1 << 56;
        let bit = match id {
            0..=id::MAX_DATAGRAM_FRAME_SIZE => 1 << id,
            id::FINE_MAX_ACK_DELAY => OURS,
            id::MIN_ACK_DELAY => LEAST,
            id::GREASE_QUIC_BIT => GREASE,
            id::KNOWN_PEERS => KNOWN,
            id::ABANDONED_KEY => ABANDONED,
            id::ABANDONED_ANSWER => ANSWER,
            id::GO_AWAY => GO_AWAY,
            id::RECEIVE_BURST => BURST,
            _ => return true,
        };
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new
    }
}

fn number(value: &[u8]) -> Result<u64, Invalid> {
    let mut reader = Reader::new(value);
    let number = reader.varint()?;
    if !reader.is_empty() {
        return Err(Invalid("transport parameter with a wrong length"));
    }
    Ok(number)
}

fn at_least(least: u64, value: &[u8]) -> Result<u64, Invalid> {
    number(value).and_then(|number| {
        if number < least {
            return Err(Invalid("transport parameter below its smallest value"));
        }
        Ok(number)
    })
}

fn at_most(most: u64, value: &[u8]) -> Result<u64, Invalid> {
    number(value).and_then(|number| {
        if number > most {
            return Err(Invalid("transport parameter above its largest value"));
        }
        Ok(number)
    })
}

fn abandoned_key(value: &[u8]) -> Result<(CredentialId, u64), Invalid> {
    let mut reader = Reader::new(value);
    let id = CredentialId::new(reader.array()?);
    let key_id = u64::from_be_bytes(reader.array()?);
    if !reader.is_empty() {
        return Err(Invalid("transport parameter with a wrong length"));
    }
    Ok((id, key_id))
}

fn abandoned_answer(value: &[u8]) -> Result<(Abandonment, Duration), Invalid> {
    let mut reader = Reader::new(value);
    let result = Abandonment::from_wire(reader.u8()?);
    let age = Duration::from_micros(reader.varint()?);
    if !reader.is_empty() {
        return Err(Invalid("transport parameter with a wrong length"));
    }
    let result = result.ok_or(Invalid("an unknown answer about an abandoned key"))?;
    Ok((result, age))
}

fn connection_id(value: &[u8]) -> Result<ConnectionId, Invalid> {
    ConnectionId::new(value).ok_or(Invalid("connection ID of more than 20 bytes"))
}

/// RFC 9368, section 3: versions of four bytes, none of them zero.
fn versions(value: &[u8]) -> Result<VersionInformation, Invalid> {
    let (versions, rest) = value.as_chunks();
    let mut versions = versions.iter().map(|version| u32::from_be_bytes(*version));
    let information = VersionInformation {
        chosen: versions.next().unwrap_or_default(),
        available: versions.collect(),
    };
    if !rest.is_empty() || information.chosen == 0 || information.available.contains(&0) {
        return Err(Invalid("malformed version information"));
    }
    Ok(information)
}

/// RFC 9368, section 3: a client's chosen version is among its available ones.
fn check_versions(sender: Side, parameters: &TransportParameters) -> Result<(), Invalid> {
    match &parameters.version_information {
        Some(versions) if sender.is_client() && !versions.available.contains(&versions.chosen) => {
            Err(Invalid("version information without the chosen version"))
        }
        _ => Ok(()),
    }
}

/// An address of zeros is absent (RFC 9000, section 18.2).
fn preferred_address(value: &[u8]) -> Result<PreferredAddress, Invalid> {
    let mut reader = Reader::new(value);
    let ipv4 = SocketAddrV4::new(Ipv4Addr::from(reader.array::<4>()?), reader.u16()?);
    let ipv6 = SocketAddrV6::new(Ipv6Addr::from(reader.array::<16>()?), reader.u16()?, 0, 0);
    let id_length = usize::from(reader.u8()?);
    let connection_id = connection_id(reader.bytes(id_length)?)?;
    let reset_token = reader.array()?;
    if !reader.is_empty() {
        return Err(Invalid("transport parameter with a wrong length"));
    }
    if connection_id.is_empty() {
        return Err(Invalid("preferred address with an empty connection ID"));
    }
    Ok(PreferredAddress {
        ipv4: Some(ipv4).filter(|v4| !v4.ip().is_unspecified() || v4.port() != 0),
        ipv6: Some(ipv6).filter(|v6| !v6.ip().is_unspecified() || v6.port() != 0),
        connection_id,
        reset_token,
    })
}
