//! The messages between client and server on the control connection, and the greeting of a data
//! connection.
//!
//! Every TCP connection begins with a [`Greeting`]. On the control connection JSON messages follow,
//! each with a length prefix (see [`control`](super::control)):
//!
//! | client | server |
//! |---|---|
//! | [`FromClient::Begin`] | [`FromServer::Accepted`] or [`FromServer::Refused`] |
//! | opens the data connections | [`FromServer::Ready`] once all have arrived |
//! | [`FromClient::Start`]; the data flow | |
//! | [`FromClient::Finished`] | [`FromServer::Results`] |
//!
//! Either side may end the exchange with its `Failed` message, or by closing the connection.

use serde::{Deserialize, Serialize};
use weir_units::Duration;

use super::error::Error;
use super::parameters::Parameters;
use super::path::PathSummary;
use crate::probe::Reception;
use crate::processor::ProcessorTime;

/// The version of this protocol. It changes with every change of this module.
pub(super) const VERSION: u8 = 3;

/// Identifies the test of a data connection. Unguessable, so that no other client can join a test.
pub(super) type Token = [u8; 16];

/// The first bytes of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    /// A control connection.
    Control,
    /// A data connection of the test with this token.
    Data(Token),
}

impl Greeting {
    /// The size of an encoded greeting in bytes.
    pub(super) const LENGTH: usize = MAGIC.len() + 2 + size_of::<Token>();

    /// Encodes the greeting.
    pub(super) fn encode(self) -> [u8; Self::LENGTH] {
        let (kind, token) = match self {
            Self::Control => (b'C', Token::default()),
            Self::Data(token) => (b'D', token),
        };
        let mut out = [0; Self::LENGTH];
        let (magic, rest) = out.split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        let (head, rest) = rest.split_at_mut(2);
        head.copy_from_slice(&[VERSION, kind]);
        rest.copy_from_slice(&token);
        out
    }

    /// Returns whether these bytes are a greeting of any version.
    pub(super) fn is_greeting(bytes: &[u8; Self::LENGTH]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Decodes a greeting.
    ///
    /// # Errors
    /// [`Error::Protocol`] for anything else, including another version of this protocol.
    pub(super) fn decode(bytes: &[u8; Self::LENGTH]) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Protocol(problem.to_owned());
        let rest = bytes
            .strip_prefix(MAGIC)
            .ok_or_else(|| wrong("the connection does not begin as one of weir perf"))?;
        match rest {
            [VERSION, b'C', ..] => Ok(Self::Control),
            [VERSION, b'D', token @ ..] => Token::try_from(token)
                .map(Self::Data)
                .map_err(|_| wrong("the greeting is cut short")),
            [VERSION, ..] => Err(wrong("the greeting is of no known kind")),
            [version, ..] => Err(Error::Protocol(format!(
                "version {version} meets version {VERSION}"
            ))),
            [] => Err(wrong("the greeting is cut short")),
        }
    }
}

const MAGIC: &[u8; 8] = b"weirperf";

/// A message from the client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromClient {
    /// Requests a test.
    Begin(Parameters),
    /// The test begins now.
    Start,
    /// The client's outcome of the test.
    Finished(Outcome),
    /// The test has failed on the client.
    Failed(String),
}

/// A message from the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromServer {
    /// The test is accepted; its data connections must send this token.
    Accepted(Token),
    /// The test is rejected.
    Refused(String),
    /// All data connections have arrived.
    Ready,
    /// The server's outcome of the test.
    Results(Outcome),
    /// The test has failed on the server.
    Failed(String),
}

impl FromClient {
    /// Returns the kind of this message, for errors.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Begin(_) => "Begin",
            Self::Start => "Start",
            Self::Finished(_) => "Finished",
            Self::Failed(_) => "Failed",
        }
    }
}

impl FromServer {
    /// Returns the kind of this message, for errors.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "Accepted",
            Self::Refused(_) => "Refused",
            Self::Ready => "Ready",
            Self::Results(_) => "Results",
            Self::Failed(_) => "Failed",
        }
    }
}

/// The measurements of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Each data connection, in the order in which they were opened.
    pub streams: Vec<StreamOutcome>,
    /// The time from the start of the test to the end of this side's last stream.
    pub elapsed: Duration,
    /// The processor time of this side's process in that time.
    pub processor: ProcessorTime,
    /// The congestion control of this side's connections.
    pub congestion: String,
}

/// The measurements of one side of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamOutcome {
    /// Bytes sent or received.
    pub bytes: u64,
    /// The time from the start of the test to the end of the stream.
    pub elapsed: Duration,
    /// A sender's measurements of the path.
    pub path: Option<PathSummary>,
    /// The packets that a receiver counted, if its transport reports them.
    pub reception: Option<Reception>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn greetings_round_trip(token: Token) {
            for greeting in [Greeting::Control, Greeting::Data(token)] {
                prop_assert_eq!(Greeting::decode(&greeting.encode()).unwrap(), greeting);
            }
        }

        #[test]
        fn any_greeting_is_read_or_refused(bytes: [u8; Greeting::LENGTH]) {
            let _ = Greeting::decode(&bytes);
        }
    }

    #[test]
    fn other_versions_and_protocols_are_refused() {
        let mut bytes = Greeting::Control.encode();
        bytes[MAGIC.len()] = VERSION + 1;
        let message = Greeting::decode(&bytes).unwrap_err().to_string();
        assert!(message.contains("version 4 meets version 3"), "{message}");
        let http = *b"GET / HTTP/1.1\r\nHost: exam";
        assert!(Greeting::decode(&http).is_err());
    }
}
