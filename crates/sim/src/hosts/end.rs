//! The common interface of all flow ends, for any protocol.

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Time};

use super::datagram_slab::DatagramRoute;
use crate::flows::PathView;
use crate::packet::Address;

/// One end of a flow.
pub(super) trait End {
    /// Returns its counters.
    fn achieved(&self) -> FlowCounters;

    /// Returns the RTT estimates of its path.
    fn path(&self) -> PathView {
        PathView::default()
    }

    /// Returns the congestion window, if the algorithm has one.
    fn window(&self) -> Option<ByteSize> {
        None
    }

    /// Returns the smoothed fraction of CE-marked bytes (DCTCP's α), if the algorithm keeps one.
    fn ce_fraction(&self) -> Option<f64> {
        None
    }

    /// Whether no more data will be delivered to it, as its connection is closed.
    fn is_closed(&self) -> bool {
        true
    }

    /// Whether its connection ended before everything was delivered, or has drained and will not notify
    /// the peer any more.
    fn has_failed(&self) -> bool {
        false
    }
}

/// One end of a connection whose packets are datagrams.
pub(super) trait DatagramEnd: End {
    /// Reads the available data and forwards the connection's events to the endpoint.
    fn take_events(&mut self);

    /// Returns the port by which most of its datagrams leave.
    fn port(&self, address: &Address) -> Option<u32>;

    /// Appends the next datagram to an empty buffer, if there is one to send now.
    fn next_datagram(
        &mut self,
        now: Time,
        address: &Address,
        buffer: &mut Vec<u8>,
    ) -> Option<DatagramRoute>;

    /// Whether there may be another datagram to send now, just after one. `false` is certain.
    fn may_send_more(&self, _now: Time) -> bool {
        true
    }

    /// Returns its next timeout.
    fn timeout(&self) -> Option<Time>;

    /// Returns the bytes delivered to the application.
    fn delivered(&self) -> u64;

    /// Whether the connection has just been closed, or has just drained.
    fn take_closed(&mut self) -> bool;
}

/// The last closing state that the application was notified of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CloseNotice {
    #[default]
    Nothing,
    Closed,
    Drained,
}

impl CloseNotice {
    /// Advances to `state`; returns whether it is new.
    pub(super) fn advance(&mut self, state: Self) -> bool {
        let is_news = state > *self;
        *self = state;
        is_news
    }
}
