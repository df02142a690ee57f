//! TLS over TCP: its options, and the table `[groups.NAME.tls]`.

use serde::{Deserialize, Serialize};
use weir_units::ByteSize;

use crate::document::{At, Fields, Reported};
use crate::schema::{Accepts, Key, Literal, Section};

/// How TLS 1.3 is set up over a group's TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// The most application data in one record (RFC 8446, section 5.1).
    pub record: ByteSize,
    /// Whether connections after a pair's first one resume its session, without a certificate
    /// (RFC 8446, section 2.2).
    pub resume: bool,
}

pub(crate) static TLS: Section = Section {
    title: "[groups.NAME.tls]",
    doc: "How TLS 1.3 is set up over the group's TCP connections, with a certificate for P-256 and \
          AES-128-GCM. The handshake takes one round trip after TCP's. Simulated, its flights and \
          the records' headers and tags are bytes over TCP; what TLS costs in CPU time is not \
          simulated.",
    keys: &[
        Key::default(
            "record",
            Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_kib(16)),
            Literal::Text("16KiB"),
            "the most application data in one record; each record adds 22 bytes",
        ),
        Key::default(
            "resume",
            Accepts::Boolean,
            Literal::Boolean(false),
            "whether connections after the first one between two hosts resume its session, without \
             a certificate; nothing is sent before the handshake is complete (no 0-RTT)",
        ),
    ],
};

impl TlsOptions {
    /// Reads `[groups.NAME.tls]`.
    pub(super) fn read(at: At<'_>) -> Result<Self, Reported> {
        let fields = Fields::open(at, &TLS)?;
        let (record, resume) = (fields.get("record"), fields.get("resume"));
        Ok(Self {
            record: record?,
            resume: resume?,
        })
    }
}
