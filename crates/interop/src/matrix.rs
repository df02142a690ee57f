//! The interoperability matrix: which cases pass with which stack.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Case, Direction, Peer, Unsupported};

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All checks passed.
    Passed,
    /// A check failed, for this reason.
    Failed(String),
    /// One side does not support the case.
    Unsupported(Unsupported),
}

impl Outcome {
    /// Runs a case, unless one side does not support it.
    pub fn of(case: Case, peer: Peer, direction: Direction) -> Self {
        if let Some(reason) = case.unsupported(peer, direction) {
            return Self::Unsupported(reason);
        }
        match crate::run(case, peer, direction) {
            Ok(()) => Self::Passed,
            Err(failure) => Self::Failed(failure.to_string()),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed(_) => "**failed**",
            Self::Unsupported(Unsupported::ByPeer(_)) => "not by them",
            Self::Unsupported(Unsupported::ByUs(_)) => "not by us",
        }
    }
}

/// One case with one stack in one direction.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The case.
    pub case: Case,
    /// The other stack.
    pub peer: Peer,
    /// Which side is ours.
    pub direction: Direction,
    /// The outcome.
    pub outcome: Outcome,
}

/// The workspace's lock file, which holds the versions of the stacks.
const LOCK: &str = include_str!("../../../Cargo.lock");

const HEAD: &str = "\
# Interoperability

`make interop` writes this file: every case with every stack, in both directions, over real UDP
sockets on loopback. `cargo test -p weir-interop` runs the same, one test per entry. The cases are
those of the [QUIC interop runner](https://interop.seemann.io) by their names, and five of our own
(`many-streams`, `packets-9kb`, `packets-65kb`, `datagram`, `known-peers`). A forwarder between the two
sides loses, delays, changes and marks datagrams and gives clients other addresses, and its records
show what really went over the wire: that a Retry packet was sent, how much a server sent before it
knew its client. With `WEIR_INTEROP_TRACE=1` a test prints those records.

\"Client\" is our client with their server, \"server\" our server with their client. \"Not by them\" and
\"not by us\" are explained below.

";

const TAIL: &str = "\
## Wireshark

`cargo test -p weir-interop --test wireshark` writes a conversation with each stack in both directions
(Retry, streams, a key update, migration, datagrams, 0-RTT) as pcapng with a TLS key log. `tshark`
decrypts every packet and finds nothing malformed and no error.

## Notes

- **versionnegotiation, quinn's client:** quinn reads the Version Negotiation packet, reports
  `VersionMismatch` and leaves it to its application to begin again.
- **keyupdate:** quinn's side begins it as a client; quiche and s2n-quic have no call for that and
  follow our update.
- **rebind-port and rebind-addr, quiche's server:** the address changes after a silence of 200 ms
  instead of in the middle of the transfer. With much in flight in both directions a quiche server
  often sends nothing but probes afterwards, to quiche's own client too.
- **known-peers:** quiche and s2n-quic read packets of unknown versions by version 1's layout before they
  answer them, and s2n-quic answers no packet without the fixed bit, and none with a token that it has not
  made. So a First packet has the layout of an Initial packet, has the fixed bit, and is followed by a
  handshake without a token.
- **retry, quiche's client:** after the Retry packet it sends another ClientHello than before, which
  RFC 9000, section 17.2.5.3, forbids and no server notices. Wireshark does: its conversation with our
  server is captured without Retry.
";

/// Returns the text of `docs/interop.md`.
pub fn document(entries: &[Entry]) -> String {
    let mut text = HEAD.to_owned();
    table(&mut text, entries);
    reasons(&mut text, entries);
    failures(&mut text, entries);
    text.push_str("## What the cases are\n\n| case | what is done, and must hold |\n|---|---|\n");
    for case in Case::ALL {
        line(&mut text, format_args!("| {case} | {} |", case.about()));
    }
    text.push('\n');
    text.push_str(TAIL);
    text
}

fn table(text: &mut String, entries: &[Entry]) {
    text.push_str("| case |");
    for peer in Peer::ALL {
        let version = version(peer.name()).unwrap_or("?");
        let name = format!("{peer} {version}");
        for side in ["client", "server"] {
            // Writing to a string never fails.
            let _ = write!(text, " {name}: {side} |");
        }
    }
    text.push_str("\n|---|---|---|---|---|---|---|\n");
    for case in Case::ALL {
        let _ = write!(text, "| {case} |");
        for peer in Peer::ALL {
            for direction in Direction::ALL {
                let of = |entry: &&Entry| {
                    (entry.case, entry.peer, entry.direction) == (case, peer, direction)
                };
                let word = entries
                    .iter()
                    .find(of)
                    .map_or("–", |entry| entry.outcome.word());
                let _ = write!(text, " {word} |");
            }
        }
        text.push('\n');
    }
    text.push('\n');
}

fn reasons(text: &mut String, entries: &[Entry]) {
    text.push_str("## Not supported\n\n| case | by | why |\n|---|---|---|\n");
    let mut seen = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let Outcome::Unsupported(reason) = &entry.outcome else {
            continue;
        };
        let (by, why) = match reason {
            Unsupported::ByPeer(why) => (entry.peer.name(), why),
            Unsupported::ByUs(why) => ("us", why),
        };
        seen.entry((entry.case.name(), by, why)).or_insert(index);
    }
    let mut rows: Vec<_> = seen.into_iter().collect();
    rows.sort_by_key(|(_, index)| *index);
    for ((case, by, why), _) in rows {
        line(text, format_args!("| {case} | {by} | {why} |"));
    }
    text.push('\n');
}

fn failures(text: &mut String, entries: &[Entry]) {
    let failed = entries.iter().filter_map(|entry| match &entry.outcome {
        Outcome::Failed(reason) => Some((entry, reason)),
        _ => None,
    });
    let mut failed = failed.peekable();
    if failed.peek().is_none() {
        return;
    }
    text.push_str("## Failed\n\n");
    for (entry, reason) in failed {
        let Entry {
            case,
            peer,
            direction,
            ..
        } = entry;
        line(
            text,
            format_args!("- {case}, {peer}, {direction}: {reason}"),
        );
    }
    text.push('\n');
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = writeln!(text, "{arguments}");
}

/// Returns a package's version from the lock file.
fn version(package: &str) -> Option<&'static str> {
    let mut lines = LOCK.lines();
    let name = format!("name = \"{package}\"");
    lines.find(|line| *line == name)?;
    let version = lines.next()?.strip_prefix("version = \"")?;
    version.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_versions_reasons_and_failures() {
        let entry = |case, outcome| Entry {
            case,
            peer: Peer::Quiche,
            direction: Direction::OurClient,
            outcome,
        };
        let text = document(&[
            entry(Case::Handshake, Outcome::Passed),
            entry(Case::Transfer, Outcome::Failed("it broke".to_owned())),
            entry(Case::V2, Outcome::Unsupported(Unsupported::ByPeer("no"))),
        ]);
        for expected in [
            "| handshake | – | – | ok | – | – | – |",
            "| transfer | – | – | **failed** |",
            "- transfer, quiche, our-client: it broke",
            "| v2 | quiche | no |",
            "quiche 0.",
            "quinn 0.",
            "s2n-quic 1.",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }
}
