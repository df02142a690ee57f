//! The types of control packets.

use super::DecodeError;

/// The types of control packets. Their codes are UDT's; OBS-change has the one that UDT's draft left
/// unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlKind {
    /// 0: sets a connection up.
    Handshake,
    /// 1: tells that somebody is there, and how far the data have come.
    KeepAlive,
    /// 2: in Congestion Mode, once per round trip: how far the data have come, and whether marks came.
    Ack,
    /// 3: which data packets are missing.
    Nak,
    /// 4: the sender has changed its mode.
    ObsChange,
    /// 5: the connection is over.
    Shutdown,
    /// 6: answers an ACK, so that the receiver knows the round-trip time.
    Ack2,
}

impl ControlKind {
    /// Its code on the wire: 15 bits.
    pub const fn code(self) -> u16 {
        match self {
            Self::Handshake => 0,
            Self::KeepAlive => 1,
            Self::Ack => 2,
            Self::Nak => 3,
            Self::ObsChange => 4,
            Self::Shutdown => 5,
            Self::Ack2 => 6,
        }
    }

    /// The type with this code.
    ///
    /// # Errors
    /// [`DecodeError::UnknownType`] where there is none.
    pub const fn from_code(code: u16) -> Result<Self, DecodeError> {
        Ok(match code {
            0 => Self::Handshake,
            1 => Self::KeepAlive,
            2 => Self::Ack,
            3 => Self::Nak,
            4 => Self::ObsChange,
            5 => Self::Shutdown,
            6 => Self::Ack2,
            _ => return Err(DecodeError::UnknownType(code)),
        })
    }
}
