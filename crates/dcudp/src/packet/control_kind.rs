//! The types of control packets.

use super::DecodeError;

/// The types of control packets. The codes are UDT's; OBS-change has the code left unused by UDT's
/// draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlKind {
    /// 0: opens a connection.
    Handshake,
    /// 1: keeps the connection alive and reports progress.
    KeepAlive,
    /// 2: acknowledges data and echoes marks, once per round trip in Congestion Mode.
    Ack,
    /// 3: reports missing data packets.
    Nak,
    /// 4: the sender has changed its mode.
    ObsChange,
    /// 5: ends the connection.
    Shutdown,
    /// 6: answers an ACK, so that the receiver can measure the RTT.
    Ack2,
}

impl ControlKind {
    /// Returns the code on the wire: 15 bits.
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

    /// Returns the type with this code.
    ///
    /// # Errors
    /// [`DecodeError::UnknownType`] if there is none.
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
