//! What a source tells about a connection.

use weir_policy::Group;
use weir_units::{ByteSize, Duration, Rate};

/// The number of a rule, which an unchanged rule keeps when another policy is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// What a connection has done so far.
///
/// A source, such as the data plane of a host, reports each connection when it ends, and each open one again
/// and again, at least every ten minutes. Counts are totals and not differences: a lost or a repeated record
/// does no harm. They begin where the connection came into its group: where it opened, or where the rule was
/// first applied to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// The rule that matches the connection.
    pub rule: RuleId,
    /// Whether the rule's action applies to it.
    pub group: Group,
    /// A number that no other connection of the rule has, such as the socket's cookie.
    pub connection: u64,
    /// Segments with data that were sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments that were retransmitted.
    pub segments_retransmitted: u64,
    /// The smoothed round-trip time (RFC 6298 section 2); `None` before the first sample.
    pub rtt_smoothed: Option<Duration>,
    /// The minimum of the round-trip times; `None` before the first sample.
    pub rtt_min: Option<Duration>,
    /// The most recent delivery rate (draft-ietf-ccwg-bbr section 4.1); `None` before the first sample.
    pub delivery_rate: Option<Rate>,
    /// The time since the connection was established.
    pub duration: Duration,
    /// Data that has been acknowledged.
    pub delivered: ByteSize,
    /// Whether it has ended.
    pub state: ConnectionState,
}

/// Whether a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Further records will follow.
    Open,
    /// It has closed: this is its last record.
    Completed,
}
