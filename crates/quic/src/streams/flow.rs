//! Flow control (RFC 9000, section 4), the same for a stream and for the connection.

use crate::codec::VARINT_MAX;

/// How much the peer lets this side send.
#[derive(Clone, Debug, Default)]
pub(super) struct SendCredit {
    limit: u64,
    /// How many bytes were sent, each counted once.
    pub(super) used: u64,
    reported: Option<u64>,
}

impl SendCredit {
    /// Credit up to `limit`, none of it used.
    pub(super) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            reported: None,
        }
    }

    /// How many more bytes may be sent.
    pub(super) const fn available(&self) -> u64 {
        self.limit - self.used
    }

    /// Counts bytes that were sent for the first time.
    pub(super) fn spend(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available());
        self.used = (self.used + bytes).min(self.limit);
    }

    /// The peer's limit. It never falls: one that is lower was overtaken on its way (section 4.1).
    pub(super) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Whether the peer should hear that more would be sent but for its limit: once per limit.
    pub(super) fn report_due(&self) -> bool {
        self.used == self.limit && self.reported != Some(self.limit)
    }

    /// The limit to be reported; it counts as reported from now on.
    pub(super) fn report(&mut self) -> u64 {
        self.reported = Some(self.limit);
        self.limit
    }
}

/// How much this side lets the peer send.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    window: u64,
    advertised: u64,
    /// The highest offset received, or the sum of all streams' highest offsets.
    pub(super) received: u64,
    consumed: u64,
    repeat: bool,
}

impl ReceiveWindow {
    /// A window of that many bytes, which the peer knows of by a transport parameter.
    pub(super) fn new(window: u64) -> Self {
        let window = window.min(VARINT_MAX);
        Self {
            window,
            advertised: window,
            received: 0,
            consumed: 0,
            repeat: false,
        }
    }

    /// How many bytes were received and not consumed.
    pub(super) const fn unconsumed(&self) -> u64 {
        self.received - self.consumed
    }

    /// How many more bytes the peer may send.
    pub(super) const fn available(&self) -> u64 {
        self.advertised - self.received
    }

    /// Counts bytes that were received for the first time. They are within the limit.
    pub(super) fn receive(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available());
        self.received += bytes;
    }

    /// Counts bytes that were read or dropped: as many more may come.
    pub(super) fn consume(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.unconsumed());
        self.consumed += bytes;
    }

    /// Whether the peer should be told a new limit: half of the window has been consumed, or the
    /// last limit was lost.
    pub(super) fn update_due(&self) -> bool {
        self.repeat || self.next_limit() - self.advertised >= (self.window / 2).max(1)
    }

    /// The new limit to be told; it holds from now on.
    pub(super) fn advertise(&mut self) -> u64 {
        self.repeat = false;
        self.advertised = self.next_limit();
        self.advertised
    }

    /// The packet with the last limit was lost.
    pub(super) fn repeat(&mut self) {
        self.repeat = true;
    }

    fn next_limit(&self) -> u64 {
        (self.consumed + self.window).min(VARINT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_peer_never_fall_and_are_reported_once() {
        let mut credit = SendCredit::new(10);
        assert!(!credit.report_due());
        credit.spend(10);
        assert!(credit.report_due());
        assert_eq!(credit.report(), 10);
        assert!(!credit.report_due());
        credit.raise(5);
        assert_eq!(credit.available(), 0);
        credit.raise(12);
        credit.spend(2);
        assert!(credit.report_due());
    }

    #[test]
    fn a_window_moves_when_half_of_it_was_consumed() {
        let mut window = ReceiveWindow::new(100);
        window.receive(100);
        window.consume(49);
        assert!(!window.update_due());
        window.consume(1);
        assert!(window.update_due());
        assert_eq!(window.advertise(), 150);
        assert!(!window.update_due());
        assert_eq!(window.available(), 50);
        window.repeat();
        assert!(window.update_due());
        assert_eq!(window.advertise(), 150);
    }

    #[test]
    fn windows_end_where_varints_do() {
        let mut window = ReceiveWindow::new(u64::MAX);
        window.receive(1000);
        window.consume(1000);
        assert!(!window.update_due());
        assert_eq!(window.advertise(), VARINT_MAX);
        assert!(!ReceiveWindow::new(0).update_due());
    }
}
