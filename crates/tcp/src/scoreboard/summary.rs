//! What one acknowledgment tells.

use weir_units::{Duration, Time};

use super::{LOST, RETRANSMITTED, SentSegment};

/// The new information of an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSummary {
    /// Bytes newly known to have arrived, cumulatively or selectively.
    pub(crate) delivered: u64,
    /// Send time of the newest of these.
    pub(crate) newest_sent: Time,
    /// Send times of the oldest and newest of those sent only once (Karn) that did not wait at the
    /// receiver behind a retransmission.
    pub(crate) once_sent: Option<(Time, Time)>,
    /// Bytes declared lost that arrived without a retransmission.
    pub(crate) spuriously_lost: u64,
    /// Time of the retransmission of the first cumulatively acknowledged segment, if it was
    /// retransmitted.
    pub(crate) first_resent: Option<Time>,
    /// Whether a segment sent once arrived after a later one.
    pub(crate) reordered: bool,
    /// The end of the highest segment that earlier acknowledgments have SACKed. What one acknowledgment
    /// reports together may have arrived in order.
    pub(super) sacked_before: u64,
    /// The minimum RTT before: a shorter sample cannot belong to a retransmission.
    pub(super) shortest_rtt: Duration,
}

impl AckSummary {
    #[inline]
    pub(super) fn add(&mut self, record: &SentSegment) {
        self.delivered += u64::from(record.length);
        self.newest_sent = self.newest_sent.max(record.sent_at);
        if record.has(RETRANSMITTED) {
            return;
        }
        let (oldest, newest) = self.once_sent.unwrap_or((record.sent_at, record.sent_at));
        self.once_sent = Some((oldest.min(record.sent_at), newest.max(record.sent_at)));
        self.reordered |= record.end() < self.sacked_before;
        if record.has(LOST) {
            self.spuriously_lost += u64::from(record.length);
        }
    }
}
