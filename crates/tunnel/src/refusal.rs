//! Why a connection does not reach its destination, as the peer is told: the error code of the stream
//! that is reset, or the first byte of the answer over TLS.

use serde::Serialize;

/// Why a connection ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The header is not one of this version.
    BadHeader,
    /// The server's policy does not let this client reach the destination.
    Forbidden,
    /// The name of the destination has no address.
    NotFound,
    /// The destination refused the TCP connection.
    ConnectionRefused,
    /// The destination, or its network, cannot be reached.
    Unreachable,
    /// The destination did not answer in time.
    TimedOut,
    /// The server has as many connections as it may.
    TooMany,
    /// What was asked for is switched off at the server.
    NotSupported,
    /// A TCP connection that was open was reset.
    Reset,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::BadHeader,
        Self::Forbidden,
        Self::NotFound,
        Self::ConnectionRefused,
        Self::Unreachable,
        Self::TimedOut,
        Self::TooMany,
        Self::NotSupported,
        Self::Reset,
    ];

    /// Returns its code: 1 to 9.
    pub fn code(self) -> u8 {
        match self {
            Self::BadHeader => 1,
            Self::Forbidden => 2,
            Self::NotFound => 3,
            Self::ConnectionRefused => 4,
            Self::Unreachable => 5,
            Self::TimedOut => 6,
            Self::TooMany => 7,
            Self::NotSupported => 8,
            Self::Reset => 9,
        }
    }

    /// Returns what a code says; an unknown one is a reset.
    pub fn of_code(code: u64) -> Self {
        let known = Self::ALL.into_iter();
        let mut known = known.filter(|refusal| u64::from(refusal.code()) == code);
        known.next().unwrap_or(Self::Reset)
    }

    /// Returns the name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadHeader => "bad_header",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::ConnectionRefused => "connection_refused",
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::TooMany => "too_many",
            Self::NotSupported => "not_supported",
            Self::Reset => "reset",
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::BadHeader => "the other end speaks another version",
            Self::Forbidden => "the server's policy forbids it",
            Self::NotFound => "the destination's name has no address",
            Self::ConnectionRefused => "the destination refused the connection",
            Self::Unreachable => "the destination cannot be reached",
            Self::TimedOut => "the destination did not answer in time",
            Self::TooMany => "the server has as many connections as it may",
            Self::NotSupported => "the server does not carry this protocol",
            Self::Reset => "the connection was reset",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_back_and_unknown_ones_are_resets() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::of_code(refusal.code().into()), refusal);
        }
        for code in [0, 11, u64::MAX] {
            assert_eq!(Refusal::of_code(code), Refusal::Reset);
        }
    }
}
