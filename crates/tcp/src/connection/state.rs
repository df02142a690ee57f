//! The states of a connection.

/// The state of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data can be transferred.
    Established,
    /// Closed by this end; FIN not acknowledged.
    FinWait1,
    /// Closed by this end; FIN acknowledged.
    FinWait2,
    /// Closed by the peer.
    CloseWait,
    /// Closed by both ends at the same time; FIN not acknowledged.
    Closing,
    /// Closed by the peer first; FIN not acknowledged.
    LastAck,
    /// Closed; late segments are still answered.
    TimeWait,
    /// Ended or reset.
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
    /// The peer did not answer for too long.
    TimedOut,
}

impl State {
    /// Returns whether the handshake is complete and the connection has not ended.
    pub fn is_synchronized(self) -> bool {
        !matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed
        )
    }
}
