//! The list of cases: those of the QUIC interop runner (<https://interop.seemann.io>), under the same
//! names, and five of our own.

use std::fmt;

use crate::Direction;
use crate::stack::Peer;

/// A case; [`Case::about`] describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// `handshake`
    Handshake,
    /// `transfer`
    Transfer,
    /// `longrtt`
    LongRtt,
    /// `chacha20`
    ChaCha20,
    /// `multiplexing`
    Multiplexing,
    /// `retry`
    Retry,
    /// `resumption`
    Resumption,
    /// `zerortt`
    ZeroRtt,
    /// `http3`
    Http3,
    /// `blackhole`
    Blackhole,
    /// `keyupdate`
    KeyUpdate,
    /// `ecn`
    Ecn,
    /// `amplificationlimit`
    AmplificationLimit,
    /// `handshakeloss`
    HandshakeLoss,
    /// `transferloss`
    TransferLoss,
    /// `handshakecorruption`
    HandshakeCorruption,
    /// `transfercorruption`
    TransferCorruption,
    /// `ipv6`
    Ipv6,
    /// `v2`
    V2,
    /// `rebind-port`
    RebindPort,
    /// `rebind-addr`
    RebindAddress,
    /// `connectionmigration`
    ConnectionMigration,
    /// `multiconnect`
    MultiConnect,
    /// `versionnegotiation`
    VersionNegotiation,
    /// `many-streams`
    ManyStreams,
    /// `packets-9kb`
    Packets9Kb,
    /// `packets-65kb`
    Packets65Kb,
    /// `datagram`
    Datagram,
    /// `known-peers`
    KnownPeers,
}

impl Case {
    /// All cases, in the order of the matrix.
    pub const ALL: [Self; 29] = [
        Self::Handshake,
        Self::Transfer,
        Self::LongRtt,
        Self::ChaCha20,
        Self::Multiplexing,
        Self::Retry,
        Self::Resumption,
        Self::ZeroRtt,
        Self::Http3,
        Self::Blackhole,
        Self::KeyUpdate,
        Self::Ecn,
        Self::AmplificationLimit,
        Self::HandshakeLoss,
        Self::TransferLoss,
        Self::HandshakeCorruption,
        Self::TransferCorruption,
        Self::Ipv6,
        Self::V2,
        Self::RebindPort,
        Self::RebindAddress,
        Self::ConnectionMigration,
        Self::MultiConnect,
        Self::VersionNegotiation,
        Self::ManyStreams,
        Self::Packets9Kb,
        Self::Packets65Kb,
        Self::Datagram,
        Self::KnownPeers,
    ];

    /// Returns the name: the interop runner's name if the runner has this case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Transfer => "transfer",
            Self::LongRtt => "longrtt",
            Self::ChaCha20 => "chacha20",
            Self::Multiplexing => "multiplexing",
            Self::Retry => "retry",
            Self::Resumption => "resumption",
            Self::ZeroRtt => "zerortt",
            Self::Http3 => "http3",
            Self::Blackhole => "blackhole",
            Self::KeyUpdate => "keyupdate",
            Self::Ecn => "ecn",
            Self::AmplificationLimit => "amplificationlimit",
            Self::HandshakeLoss => "handshakeloss",
            Self::TransferLoss => "transferloss",
            Self::HandshakeCorruption => "handshakecorruption",
            Self::TransferCorruption => "transfercorruption",
            Self::Ipv6 => "ipv6",
            Self::V2 => "v2",
            Self::RebindPort => "rebind-port",
            Self::RebindAddress => "rebind-addr",
            Self::ConnectionMigration => "connectionmigration",
            Self::MultiConnect => "multiconnect",
            Self::VersionNegotiation => "versionnegotiation",
            Self::ManyStreams => "many-streams",
            Self::Packets9Kb => "packets-9kb",
            Self::Packets65Kb => "packets-65kb",
            Self::Datagram => "datagram",
            Self::KnownPeers => "known-peers",
        }
    }

    /// Describes the actions and checks of the case.
    pub fn about(self) -> &'static str {
        match self {
            Self::Handshake => "a handshake without Retry, and 1 KB there and back",
            Self::Transfer => "2, 3 and 5 MB there and back at once",
            Self::LongRtt => "a handshake and 1 KB with a round trip of 750 ms",
            Self::ChaCha20 => "1 MB there and back; our side offers no other cipher",
            Self::Multiplexing => "1,000 streams of 32 bytes there and back, all opened at once",
            Self::Retry => "a Retry packet is seen, and the client connects with its token",
            Self::Resumption => "the second connection resumes the first one's session",
            Self::ZeroRtt => "0-RTT packets are seen, their data are taken and answered",
            Self::Http3 => "HTTP/3 requests",
            Self::Blackhole => "nothing arrives for a second in the middle of 3 MB",
            Self::KeyUpdate => {
                "an update of keys, and data in both directions after it; counted once on each side \
                 that counts"
            }
            Self::Ecn => {
                "both sides' packets are ECT to the end of 3 MB there and back, and the CE marks \
                 of one packet in 20 reach their senders"
            }
            Self::AmplificationLimit => {
                "with a certificate of 8 KB the server sends at most three times the client's \
                 first datagram while nothing else arrives, and the handshake ends well"
            }
            Self::HandshakeLoss => {
                "ten connections with 1 KB there and back, 30 % of datagrams lost"
            }
            Self::TransferLoss => "2 MB there and back, 2 % of datagrams lost",
            Self::HandshakeCorruption => {
                "ten connections with 1 KB there and back, 30 % of datagrams changed in a byte"
            }
            Self::TransferCorruption => "2 MB there and back, 2 % of datagrams changed in a byte",
            Self::Ipv6 => "1 MB there and back over IPv6",
            Self::V2 => "a connection in QUIC version 2 (RFC 9369)",
            Self::RebindPort => {
                "the client's port changes in a NAT in the middle of 3 MB; the server follows"
            }
            Self::RebindAddress => {
                "the client's IP address changes in a NAT in the middle of 3 MB; the server follows"
            }
            Self::ConnectionMigration => {
                "the client goes on from another socket, with another connection ID where it is \
                 ours; the server follows"
            }
            Self::MultiConnect => "50 connections at once, 1 KB there and back on each",
            Self::VersionNegotiation => {
                "a Version Negotiation packet is seen, and the client goes on in version 1 or says \
                 that it cannot"
            }
            Self::ManyStreams => "200 streams of 20 KB there and back at once",
            Self::Packets9Kb => "UDP payloads of 8,972 bytes in both directions of 3 MB",
            Self::Packets65Kb => {
                "UDP payloads of more than 60,000 bytes in both directions of 10 MB"
            }
            Self::Datagram => "DATAGRAM frames (RFC 9221) there and back",
            Self::KnownPeers => {
                "our side has [known peers](known-peers.md) on and theirs has none: version 1 from the \
                 first packet on. Their server in the place of one of ours, whose path secret the client \
                 has: the next connection loses one round trip to a Version Negotiation packet, and \
                 later ones begin in version 1. A call whose data were in the first datagram fails with \
                 `Maybe`, once"
            }
        }
    }

    /// Returns the side that does not support the case, and why; `None` if both sides support it.
    pub fn unsupported(self, peer: Peer, direction: Direction) -> Option<Unsupported> {
        use Direction::{OurClient, OurServer};
        use Unsupported::{ByPeer, ByUs};
        let by_peer = |reason| Some(ByPeer(reason));
        match (self, peer, direction) {
            (Self::Http3, ..) => Some(ByUs("DCQUIC carries calls and plain streams")),
            (Self::V2, Peer::Quinn, _) => {
                by_peer("version 1 and its drafts only (`quinn_proto::DEFAULT_SUPPORTED_VERSIONS`)")
            }
            (Self::V2, Peer::Quiche, _) => {
                by_peer("version 1 only (`quiche::version_is_supported`)")
            }
            (Self::V2, Peer::S2n, _) => {
                by_peer("version 1 only (`SUPPORTED_VERSIONS` of `s2n-quic-transport`)")
            }
            (Self::ZeroRtt, Peer::S2n, _) => {
                by_peer("its API has no way to send or take early data")
            }
            (Self::Ecn, Peer::Quiche, _) => {
                by_peer("its ACK frames never have ECN counts, and its API no codepoints")
            }
            (Self::ConnectionMigration, Peer::S2n, OurServer) => {
                by_peer("its client has no way to change its address")
            }
            (Self::VersionNegotiation, Peer::S2n, OurServer) => {
                by_peer("its client begins in version 1 always")
            }
            (Self::Resumption, Peer::S2n, _) => {
                by_peer("its rustls provider neither sends nor reads session tickets")
            }
            (Self::VersionNegotiation, Peer::S2n, OurClient) => by_peer(
                "it reads version 2's first packets by version 1's layout before it looks at the \
                 version, and drops them; we begin in no other version that it has not",
            ),
            (Self::Packets65Kb, Peer::Quiche, _) => {
                by_peer("it sends at most 16,383 bytes (the lengths in its headers have two bytes)")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The side that does not support a case, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unsupported {
    /// The other stack.
    ByPeer(&'static str),
    /// DCQUIC.
    ByUs(&'static str),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPeer(reason) => write!(f, "not supported by them: {reason}"),
            Self::ByUs(reason) => write!(f, "not supported by us: {reason}"),
        }
    }
}
