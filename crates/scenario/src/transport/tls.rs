//! TLS over TCP: its options, and the table `[groups.NAME.tls]`.

use serde::{Deserialize, Serialize};
use weir_scenario_derive::Keys;
use weir_units::ByteSize;

use crate::schema::Accepts;

/// Options of TLS 1.3 over a group's TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Keys)]
#[keys(
    title = "[groups.NAME.tls]",
    doc = "How TLS 1.3 is set up over the group's TCP connections, with a certificate for P-256 and \
           AES-128-GCM. The handshake takes one round trip after TCP's. Simulated, its flights and \
           the records' headers and tags are bytes over TCP; what TLS costs in CPU time is not \
           simulated."
)]
pub struct TlsOptions {
    /// The maximum application data in one record; each record adds 22 bytes.
    #[key(
        accepts = Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_kib(16)),
        default = "16KiB"
    )]
    pub record: ByteSize,
    /// Whether connections after the first one between two hosts resume its session, without a
    /// certificate; no data is sent before the handshake is complete (no 0-RTT).
    #[key(default = false)]
    pub resume: bool,
}
