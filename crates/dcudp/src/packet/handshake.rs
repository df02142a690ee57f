//! What is said before there is a connection.

use weir_units::{ByteSize, Duration};

use super::{DecodeError, SocketId, take, take_sequence, take_u16, take_u32, take_u64};
use crate::SequenceNumber;

/// Why a server takes no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It has as many as it may have.
    Busy,
    /// It does not speak this version.
    Version,
    /// It wants the other one of streams and messages.
    Mode,
    /// One end has a pre-shared key and the other one has none.
    Authentication,
}

/// What a handshake packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeKind {
    /// 1: a client wants a connection. Its cookie is zero in its first packet, and then the server's.
    Request,
    /// 2: a server's cookie, for the client to show that it is where it says.
    Challenge,
    /// 3: there is a connection.
    Response,
    /// 1000 and above: there will be none.
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

/// The information of a handshake packet: 52 bytes, and a tag of 16 where it is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The version of DCUDP.
    pub version: u32,
    /// What for.
    pub kind: HandshakeKind,
    /// Whether data are messages; otherwise they are a stream.
    pub messages: bool,
    /// The first data packet's number.
    pub initial_sequence: SequenceNumber,
    /// The largest UDP payload that this end wants to send and receive.
    pub packet_size: ByteSize,
    /// How many data packets this end has room for.
    pub window: u32,
    /// The round-trip time that a client has measured by the challenge, in whole nanoseconds; zero where it
    /// has not, and in what a server says. Data may follow its request at once, and then nothing that the
    /// server could measure has crossed an empty queue.
    pub rtt: Duration,
    /// Whom this end's packets are to be sent to.
    pub socket: SocketId,
    /// What the server knows the client's address by.
    pub cookie: u64,
    /// Chosen anew for each connection; keys depend on it. Answers to a request repeat the client's
    /// until there is a connection.
    pub random: [u8; 16],
    /// Present where the packet is authenticated by a pre-shared key.
    pub tag: Option<[u8; 16]>,
}

const MESSAGES: u16 = 1;
const AUTHENTICATED: u16 = 2;

impl Handshake {
    /// The version that this engine speaks.
    pub const VERSION: u32 = 1;
    /// Its length in bytes, without a tag.
    pub const LENGTH: usize = 52;

    pub(super) fn decode(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let version = take_u32(rest)?;
        let kind = HandshakeKind::from_code(take_u16(rest)?)?;
        let flags = take_u16(rest)?;
        if flags & !(MESSAGES | AUTHENTICATED) != 0 {
            return Err(DecodeError::Reserved);
        }
        Ok(Self {
            version,
            kind,
            messages: flags & MESSAGES != 0,
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
        let packet_size = u32::try_from(self.packet_size.bytes()).unwrap_or(u32::MAX);
        let rtt = u32::try_from(self.rtt.as_nanos()).unwrap_or(u32::MAX);
        buffer.extend_from_slice(&self.version.to_be_bytes());
        buffer.extend_from_slice(&self.kind.code().to_be_bytes());
        buffer.extend_from_slice(&(messages | authenticated).to_be_bytes());
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
