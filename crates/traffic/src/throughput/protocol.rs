//! What client and server say to each other on the control connection, and how a data connection
//! introduces itself.
//!
//! Every TCP connection begins with a [`Greeting`]. On the control connection JSON messages
//! follow, each behind its length (see [`control`](super::control)):
//!
//! | client | server |
//! |---|---|
//! | [`FromClient::Begin`] | [`FromServer::Accepted`] or [`FromServer::Refused`] |
//! | opens the data connections | [`FromServer::Ready`] once all have arrived |
//! | [`FromClient::Start`]; the data flow | |
//! | [`FromClient::Finished`] | [`FromServer::Results`] |
//!
//! Either side may end this with its `Failed` message, or by closing the connection.

use serde::{Deserialize, Serialize};
use weir_units::Duration;

use super::error::Error;
use super::parameters::Parameters;
use super::path::PathSummary;
use crate::processor::ProcessorTime;

/// The version of all that is in this module. It changes with every change here.
pub(super) const VERSION: u8 = 2;

/// Which test a data connection belongs to. Unguessable, so that no stranger joins a test.
pub(super) type Token = [u8; 16];

/// How a connection introduces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    /// It is a control connection.
    Control,
    /// It is a data connection of the test with this token.
    Data(Token),
}

impl Greeting {
    /// Bytes of an encoded greeting.
    pub(super) const LENGTH: usize = MAGIC.len() + 2 + size_of::<Token>();

    /// The greeting as it goes over the wire.
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

    /// Whether these bytes are a greeting of any version.
    pub(super) fn is_greeting(bytes: &[u8; Self::LENGTH]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Reads a greeting.
    ///
    /// # Errors
    /// [`Error::Protocol`] for anything else, another version of this protocol included.
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

/// What a client says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromClient {
    /// It asks for a test.
    Begin(Parameters),
    /// The test begins now.
    Start,
    /// The client's part of the test has ended so.
    Finished(Outcome),
    /// The test has failed on the client's side.
    Failed(String),
}

/// What a server says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromServer {
    /// The test may begin; its data connections carry this token.
    Accepted(Token),
    /// The test cannot be made.
    Refused(String),
    /// All data connections have arrived.
    Ready,
    /// The test has ended so on the server's side.
    Results(Outcome),
    /// The test has failed on the server's side.
    Failed(String),
}

impl FromClient {
    /// What kind of message this is, for errors.
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
    /// What kind of message this is, for errors.
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

/// What one side measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Each data connection, in the order in which they were opened.
    pub streams: Vec<StreamOutcome>,
    /// From the beginning of the test to the end of this side's last stream.
    pub elapsed: Duration,
    /// Processor time of this side's process in that time.
    pub processor: ProcessorTime,
    /// The congestion control of this side's connections.
    pub congestion: String,
}

/// What one side measured of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamOutcome {
    /// Bytes sent or received.
    pub bytes: u64,
    /// From the beginning of the test to the end of the stream.
    pub elapsed: Duration,
    /// What a sender knows about the path.
    pub path: Option<PathSummary>,
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
        fn anything_is_taken_or_refused(bytes: [u8; Greeting::LENGTH]) {
            let _ = Greeting::decode(&bytes);
        }
    }

    #[test]
    fn other_versions_and_protocols_are_refused() {
        let mut bytes = Greeting::Control.encode();
        bytes[MAGIC.len()] = VERSION + 1;
        let message = Greeting::decode(&bytes).unwrap_err().to_string();
        assert!(message.contains("version 3 meets version 2"), "{message}");
        let http = *b"GET / HTTP/1.1\r\nHost: exam";
        assert!(Greeting::decode(&http).is_err());
    }
}
