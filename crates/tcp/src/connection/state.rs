//! The states of a connection.

/// The state of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN came and was answered.
    SynReceived,
    /// Data flows.
    Established,
    /// Closed on this end; FIN has not been acknowledged.
    FinWait1,
    /// Closed on this end; FIN has been acknowledged.
    FinWait2,
    /// Closed on the peer's end.
    CloseWait,
    /// Closed on both ends at the same time; FIN has not been acknowledged.
    Closing,
    /// Closed on the peer's end first; FIN has not been acknowledged.
    LastAck,
    /// Closed; late segments are still answered.
    TimeWait,
    /// Over, or reset.
    Closed,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Both ends closed it, and all data was delivered.
    Closed,
    /// The peer reset it.
    Reset,
    /// The peer answered the SYN with a reset.
    Refused,
    /// This end aborted it.
    Aborted,
    /// The peer was silent for too long.
    TimedOut,
}

impl State {
    /// Whether the handshake is over and neither a reset nor the end has come.
    pub fn is_synchronized(self) -> bool {
        !matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed
        )
    }
}
