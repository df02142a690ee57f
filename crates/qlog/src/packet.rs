//! Records of packets (draft-ietf-quic-qlog-quic-events, sections "packet_sent" to "packet_lost").

use serde::Serialize;
use weir_quic::observe::{DropReason, LossReason, LostPacket, Packet};
use weir_quic::{Level, Space};
use weir_wire::Ecn;

use crate::frames::FrameList;
use crate::record::{RawInfo, is_false};

/// `packet_sent` and `packet_received`.
#[derive(Serialize)]
pub(crate) struct PacketData<'a> {
    header: PacketHeader,
    raw: RawInfo,
    #[serde(skip_serializing_if = "is_false")]
    is_mtu_probe_packet: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    weir_ecn: Option<&'static str>,
    frames: FrameList<'a>,
}

#[derive(Serialize)]
struct PacketHeader {
    packet_type: &'static str,
    packet_number: u64,
}

impl<'a> PacketData<'a> {
    /// Creates the record; `exponent` is the sender's ACK delay exponent.
    pub(crate) fn new(packet: &Packet<'a>, exponent: u8) -> Self {
        Self {
            header: PacketHeader {
                packet_type: packet_type(packet.level),
                packet_number: packet.number,
            },
            raw: RawInfo {
                length: packet.size as u64,
                payload_length: None,
            },
            is_mtu_probe_packet: packet.is_mtu_probe,
            weir_ecn: match packet.ecn {
                Ecn::NotEct => None,
                Ecn::Ect0 => Some("ECT(0)"),
                Ecn::Ect1 => Some("ECT(1)"),
                Ecn::Ce => Some("CE"),
            },
            frames: FrameList {
                frames: packet.frames.clone(),
                // Other levels are not delayed (RFC 9000, section 13.2.1).
                exponent: match packet.level {
                    Level::OneRtt => exponent,
                    _ => 0,
                },
            },
        }
    }
}

fn packet_type(level: Level) -> &'static str {
    match level {
        Level::Initial => "initial",
        Level::ZeroRtt => "0RTT",
        Level::Handshake => "handshake",
        Level::OneRtt => "1RTT",
    }
}

/// `packet_dropped`.
#[derive(Serialize)]
pub(crate) struct PacketDropped {
    raw: RawInfo,
    trigger: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<DropDetails>,
}

#[derive(Serialize)]
struct DropDetails {
    reason: &'static str,
}

impl PacketDropped {
    pub(crate) fn new(size: usize, reason: DropReason) -> Self {
        let (trigger, reason) = match reason {
            DropReason::Malformed => ("invalid", None),
            DropReason::UnknownConnectionId => ("connection_unknown", None),
            DropReason::KeyUnavailable => ("key_unavailable", None),
            DropReason::DecryptionFailure => ("decryption_failure", None),
            DropReason::Duplicate => ("duplicate", None),
            DropReason::UnexpectedAddress => ("rejected", Some("address")),
            DropReason::NoRoom => ("rejected", Some("no_room")),
            DropReason::TokenTooLong => ("rejected", Some("token_too_long")),
        };
        Self {
            raw: RawInfo {
                length: size as u64,
                payload_length: None,
            },
            trigger,
            details: reason.map(|reason| DropDetails { reason }),
        }
    }
}

/// `packet_lost`.
#[derive(Serialize)]
pub(crate) struct PacketLost {
    header: PacketHeader,
    #[serde(skip_serializing_if = "is_false")]
    is_mtu_probe_packet: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'static str>,
    /// Causes without a name in the draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    weir_cause: Option<&'static str>,
}

impl PacketLost {
    pub(crate) fn new(lost: &LostPacket) -> Self {
        let (trigger, weir_cause) = match lost.cause {
            LossReason::Reordering => (Some("reordering_threshold"), None),
            LossReason::Time => (Some("time_threshold"), None),
            LossReason::TooManyOutstanding => (None, Some("outnumbered")),
            LossReason::TooLarge => (None, Some("too_large")),
            LossReason::PathLeft => (None, Some("path_left")),
        };
        Self {
            header: PacketHeader {
                // The packet type is not kept; the packet number space has to do.
                packet_type: match lost.space {
                    Space::Initial => "initial",
                    Space::Handshake => "handshake",
                    Space::Data => "1RTT",
                },
                packet_number: lost.number,
            },
            is_mtu_probe_packet: lost.is_mtu_probe,
            trigger,
            weir_cause,
        }
    }
}
