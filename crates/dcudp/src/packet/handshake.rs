//! Handshake packets.

use weir_units::{ByteSize, Duration};

use super::{DecodeError, SocketId, take, take_sequence, take_u16, take_u32, take_u64};
use crate::SequenceNumber;

/// The reason why a server refuses a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The server has reached its maximum number of connections.
    Busy,
    /// The server does not support this version.
    Version,
    /// One end uses a stream, the other messages.
    Mode,
    /// Only one end has a pre-shared key.
    Authentication,
}

/// The kind of a handshake packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeKind {
    /// 1: a client requests a connection. The cookie is zero in its first packet, then the
    /// server's.
    Request,
    /// 2: a server's cookie, which lets the client prove its address.
    Challenge,
    /// 3: the server accepts the connection.
    Response,
    /// 1000 and above: the server refuses the connection.
    Refused(Refusal),
}

impl HandshakeKind {
    const fn code(self) -> u16 {
        match self {
            Self::Request => 1,
            Self::Challenge => 2,
            Self::Response => 3,
            Self::Refused(Refusal::Busy) => 1000,
            Self::Refused(Refusal::Version) => 1001,
            Self::Refused(Refusal::Mode) => 1002,
            Self::Refused(Refusal::Authentication) => 1003,
        }
    }

    const fn from_code(code: u16) -> Result<Self, DecodeError> {
        Ok(match code {
            1 => Self::Request,
            2 => Self::Challenge,
            3 => Self::Response,
            1000 => Self::Refused(Refusal::Busy),
            1001 => Self::Refused(Refusal::Version),
            1002 => Self::Refused(Refusal::Mode),
            1003 => Self::Refused(Refusal::Authentication),
            _ => return Err(DecodeError::InvalidField("kind")),
        })
    }
}

/// The contents of a handshake packet: 52 bytes, plus a tag of 16 bytes if authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The version of DCUDP.
    pub version: u32,
    /// The packet's kind.
    pub kind: HandshakeKind,
    /// Whether data consists of messages; otherwise of a stream.
    pub messages: bool,
    /// Whether this end's sender has UDP Mode. Without it, all its data packets belong to Congestion
    /// Mode, and the peer's receiver always sends ACKs.
    pub udp_mode: bool,
    /// The number of the first data packet.
    pub initial_sequence: SequenceNumber,
    /// The largest UDP payload that this end can send and receive.
    pub packet_size: ByteSize,
    /// Room for data packets at this end.
    pub window: u32,
    /// The RTT that a client has measured by the challenge, in whole nanoseconds. It is zero
    /// without a measurement and in a server's packets. Data may follow the request at once, so the
    /// server cannot measure an RTT through empty queues itself.
    pub rtt: Duration,
    /// This end's socket id, the destination of the peer's packets.
    pub socket: SocketId,
    /// The cookie by which the server validates the client's address.
    pub cookie: u64,
    /// A new random value for each connection, used in key derivation. Answers to a request repeat
    /// the client's value until the connection exists.
    pub random: [u8; 16],
    /// The tag of a packet authenticated by a pre-shared key.
    pub tag: Option<[u8; 16]>,
}

const MESSAGES: u16 = 1;
const AUTHENTICATED: u16 = 2;
const NO_UDP_MODE: u16 = 4;

impl Handshake {
    /// The version of this engine.
    pub const VERSION: u32 = 1;
    /// Length in bytes, without a tag.
    pub const LENGTH: usize = 52;

    pub(super) fn decode(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let version = take_u32(rest)?;
        let kind = HandshakeKind::from_code(take_u16(rest)?)?;
        let flags = take_u16(rest)?;
        if flags & !(MESSAGES | AUTHENTICATED | NO_UDP_MODE) != 0 {
            return Err(DecodeError::Reserved);
        }
        Ok(Self {
            version,
            kind,
            messages: flags & MESSAGES != 0,
            udp_mode: flags & NO_UDP_MODE == 0,
            initial_sequence: take_sequence(rest)?,
            packet_size: ByteSize::from_bytes(take_u32(rest)?.into()),
            window: take_u32(rest)?,
            rtt: Duration::from_nanos(take_u32(rest)?.into()),
            socket: SocketId(take_u32(rest)?),
            cookie: take_u64(rest)?,
            random: take(rest)?,
            tag: if flags & AUTHENTICATED != 0 {
                Some(take(rest)?)
            } else {
                None
            },
        })
    }

    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        let messages = if self.messages { MESSAGES } else { 0 };
        let authenticated = if self.tag.is_some() { AUTHENTICATED } else { 0 };
        let no_udp_mode = if self.udp_mode { 0 } else { NO_UDP_MODE };
        let flags = messages | authenticated | no_udp_mode;
        let packet_size = u32::try_from(self.packet_size.bytes()).unwrap_or(u32::MAX);
        let rtt = u32::try_from(self.rtt.as_nanos()).unwrap_or(u32::MAX);
        buffer.extend_from_slice(&self.version.to_be_bytes());
        buffer.extend_from_slice(&self.kind.code().to_be_bytes());
        buffer.extend_from_slice(&flags.to_be_bytes());
        buffer.extend_from_slice(&self.initial_sequence.value().to_be_bytes());
        buffer.extend_from_slice(&packet_size.to_be_bytes());
        buffer.extend_from_slice(&self.window.to_be_bytes());
        buffer.extend_from_slice(&rtt.to_be_bytes());
        buffer.extend_from_slice(&self.socket.0.to_be_bytes());
        buffer.extend_from_slice(&self.cookie.to_be_bytes());
        buffer.extend_from_slice(&self.random);
        if let Some(tag) = self.tag {
            buffer.extend_from_slice(&tag);
        }
    }
}
