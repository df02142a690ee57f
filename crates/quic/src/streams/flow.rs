//! Flow control (RFC 9000, section 4), the same for a stream and for the connection.

use crate::codec::VARINT_MAX;

/// The send credit that the peer grants.
#[derive(Clone, Debug, Default)]
pub(super) struct SendCredit {
    limit: u64,
    /// Bytes sent, each counted once.
    pub(super) used: u64,
    reported: Option<u64>,
}

impl SendCredit {
    /// Creates an unused credit up to `limit`.
    pub(super) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            reported: None,
        }
    }

    /// Returns how many more bytes may be sent.
    pub(super) const fn available(&self) -> u64 {
        self.limit - self.used
    }

    /// Counts bytes that were sent for the first time.
    pub(super) fn spend(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available());
        self.used = (self.used + bytes).min(self.limit);
    }

    /// Raises the peer's limit. It never falls: a lower one was reordered (section 4.1).
    pub(super) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Whether to report to the peer that its limit blocks data: once per limit.
    pub(super) fn report_due(&self) -> bool {
        self.used == self.limit && self.reported != Some(self.limit)
    }

    /// Returns the limit to report; it counts as reported from now on.
    pub(super) fn report(&mut self) -> u64 {
        self.reported = Some(self.limit);
        self.limit
    }
}

/// The receive window that this side grants.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    window: u64,
    advertised: u64,
    /// The highest received offset, or the sum of all streams' highest offsets.
    pub(super) received: u64,
    consumed: u64,
    repeat: bool,
}

impl ReceiveWindow {
    /// Creates a window of that many bytes, already announced by a transport parameter.
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

    /// Returns the bytes received and not consumed.
    pub(super) const fn unconsumed(&self) -> u64 {
        self.received - self.consumed
    }

    /// Returns how many more bytes the peer may send.
    pub(super) const fn available(&self) -> u64 {
        self.advertised - self.received
    }

    /// Counts bytes received for the first time. They must be within the limit.
    pub(super) fn receive(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available());
        self.received += bytes;
    }

    /// Counts bytes that were read or dropped; the peer may send as many more.
    pub(super) fn consume(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.unconsumed());
        self.consumed += bytes;
    }

    /// Whether to announce a new limit: half of the window has been consumed, or the last limit was
    /// lost.
    pub(super) fn update_due(&self) -> bool {
        self.repeat || self.next_limit() - self.advertised >= (self.window / 2).max(1)
    }

    /// Returns the new limit to announce; it holds from now on.
    pub(super) fn advertise(&mut self) -> u64 {
        self.repeat = false;
        self.advertised = self.next_limit();
        self.advertised
    }

    /// Records that the packet with the last limit was lost.
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
    fn peer_limits_never_fall_and_blocking_is_reported_once() {
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
    fn windows_are_capped_at_the_varint_maximum() {
        let mut window = ReceiveWindow::new(u64::MAX);
        window.receive(1000);
        window.consume(1000);
        assert!(!window.update_due());
        assert_eq!(window.advertise(), VARINT_MAX);
        assert!(!ReceiveWindow::new(0).update_due());
    }
}
