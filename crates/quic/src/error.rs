//! Connection errors: the codes of RFC 9000, section 20.1, and why a connection ended.

use std::borrow::Cow;
use std::fmt;

use weir_units::Duration;

use crate::version::{Versions, format_versions};

/// A transport error code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// The connection closes without an error.
    NO_ERROR = 0x00;
    /// The endpoint cannot continue because of an internal error.
    INTERNAL_ERROR = 0x01;
    /// The server accepts no new connections.
    CONNECTION_REFUSED = 0x02;
    /// More data than flow control allows.
    FLOW_CONTROL_ERROR = 0x03;
    /// More streams than the limit allows.
    STREAM_LIMIT_ERROR = 0x04;
    /// A frame that is not allowed in the stream's state.
    STREAM_STATE_ERROR = 0x05;
    /// Data beyond a stream's final size, or a final size that changed.
    FINAL_SIZE_ERROR = 0x06;
    /// A frame that is malformed.
    FRAME_ENCODING_ERROR = 0x07;
    /// Transport parameters that are malformed, missing or invalid.
    TRANSPORT_PARAMETER_ERROR = 0x08;
    /// More connection IDs than the limit allows.
    CONNECTION_ID_LIMIT_ERROR = 0x09;
    /// Any other violation of the protocol.
    PROTOCOL_VIOLATION = 0x0a;
    /// A token that is not valid.
    INVALID_TOKEN = 0x0b;
    /// The application closed the connection during the handshake.
    APPLICATION_ERROR = 0x0c;
    /// More handshake data than can be buffered.
    CRYPTO_BUFFER_EXCEEDED = 0x0d;
    /// An error in key updates.
    KEY_UPDATE_ERROR = 0x0e;
    /// The keys have protected as many packets as allowed.
    AEAD_LIMIT_REACHED = 0x0f;
    /// No path to the peer is left.
    NO_VIABLE_PATH = 0x10;
    /// The version negotiation was tampered with (RFC 9368).
    VERSION_NEGOTIATION_ERROR = 0x11;
}

impl Code {
    /// Returns the code of a TLS alert (RFC 9001, section 4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 | alert as u64)
    }

    /// Creates a code from its wire value.
    pub const fn from_wire(code: u64) -> Self {
        Self(code)
    }

    /// Returns the wire value.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the TLS alert in this code, if it is one.
    pub const fn tls_alert(self) -> Option<u8> {
        if self.0 >> 8 == 1 {
            Some(self.0 as u8)
        } else {
            None
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.tls_alert()) {
            (Some(name), _) => f.write_str(name),
            (None, Some(alert)) => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            (None, None) => write!(f, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({self})")
    }
}

/// Why a connection must close: a code and a readable reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct TransportError {
    /// The code.
    pub code: Code,
    /// The type of the frame at fault; zero if there is none.
    pub frame_type: u64,
    /// A description of the fault.
    pub reason: Cow<'static, str>,
}

impl TransportError {
    /// Creates an error without a frame at fault.
    #[cold]
    pub fn new(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            frame_type: 0,
            reason: reason.into(),
        }
    }

    /// Returns the same error with the type of the frame at fault.
    #[cold]
    pub fn in_frame(mut self, frame_type: u64) -> Self {
        self.frame_type = frame_type;
        self
    }
}

/// Whether the peer has executed what a failed connection, stream or call carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Executed {
    /// Certainly not: it may be sent again.
    No,
    /// Perhaps: send it again only if it may safely happen twice.
    Maybe,
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "was not executed",
            Self::Maybe => "may have been executed",
        })
    }
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The handshake did not complete in time: no server, or packets do not arrive.
    #[error("no handshake within {0}")]
    HandshakeTimeout(Duration),
    /// The peer was silent for the idle timeout.
    #[error("the peer was silent for {0}")]
    IdleTimeout(Duration),
    /// The server acknowledged nothing any more: it has crashed, or no packet arrives.
    #[error("the peer has not answered {probes} probes: it has crashed, or packets do not arrive")]
    PeerSilent {
        /// The probe timeouts in a row.
        probes: u32,
    },
    /// The peer's host says that nobody listens there (ICMP port unreachable), also to a probe.
    #[error(
        "nobody listens at the peer's address any more; what the connection carried {executed}"
    )]
    PeerUnreachable {
        /// Whether the peer may have executed it.
        executed: Executed,
    },
    /// We closed the connection because of an error of the peer, or an internal one.
    #[error("closed with {0}")]
    Transport(TransportError),
    /// The server did not accept the connection: it shuts down, or has too many.
    #[error("the server refused the connection (CONNECTION_REFUSED){}{reason}", if reason.is_empty() { "" } else { ": " })]
    Refused {
        /// Its reason.
        reason: String,
    },
    /// The peer's transport closed the connection.
    #[error("the peer closed with {code}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    PeerTransport {
        /// Its code.
        code: Code,
        /// Its reason.
        reason: String,
    },
    /// The peer's application closed the connection.
    #[error("the peer's application closed with code {code}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    PeerApplication {
        /// Its code.
        code: u64,
        /// Its reason.
        reason: String,
    },
    /// Our application closed the connection.
    #[error("closed by this application")]
    Local,
    /// The server supports none of our QUIC versions.
    #[error(
        "the server does not speak any version of ours ({}): it offers {}",
        format_versions(&ours.numbers()),
        format_versions(offered)
    )]
    NoCommonVersion {
        /// The versions that we accept.
        ours: Versions,
        /// The versions that the server offers, as in its packet.
        offered: Vec<u32>,
        /// Whether the server may have executed what was sent without a handshake, or as early data.
        executed: Executed,
    },
    /// The server refused a connection without a handshake (`docs/known-peers.md`, section 6), and
    /// it is not known whether it had executed what the connection carried.
    #[error("the server refused the connection without a handshake; what it carried {executed}")]
    KnownPeerRefused {
        /// Whether the server may have executed it.
        executed: Executed,
    },
    /// The peer has lost the connection's state and sent a stateless reset (RFC 9000, 10.3).
    #[error("the peer does not know the connection any more: it was probably restarted")]
    StatelessReset,
}

impl ConnectionError {
    /// Returns whether the peer may have executed what the connection carried.
    pub const fn executed(&self) -> Executed {
        match self {
            Self::KnownPeerRefused { executed }
            | Self::PeerUnreachable { executed }
            | Self::NoCommonVersion { executed, .. } => *executed,
            // No data was sent: there were no keys for it, or nobody to read it.
            Self::Refused { .. } => Executed::No,
            _ => Executed::Maybe,
        }
    }
}
