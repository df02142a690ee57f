//! What the ends of flows have in common, whatever their protocol.

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Time};

use super::datagram_slab::DatagramRoute;
use crate::flows::PathView;
use crate::packet::Address;

/// One end of a flow.
pub(super) trait End {
    /// What it has achieved.
    fn achieved(&self) -> FlowCounters;

    /// What it knows of its path.
    fn path(&self) -> PathView {
        PathView::default()
    }

    /// The congestion window, if the algorithm has one.
    fn window(&self) -> Option<ByteSize> {
        None
    }

    /// Whether nothing will be delivered to it any more, as its connection is closed.
    fn is_closed(&self) -> bool {
        true
    }

    /// Whether its connection ended before everything was delivered, or so long ago that nobody will tell the
    /// peer any more.
    fn has_failed(&self) -> bool {
        false
    }
}

/// One end of a connection whose packets are datagrams.
pub(super) trait DatagramEnd: End {
    /// Reads what there is to be read, and hands on what the endpoint has to know.
    fn take_events(&mut self);

    /// The port by which most of its datagrams leave.
    fn port(&self, address: &Address) -> Option<u32>;

    /// Writes the next datagram to the end of an empty buffer, if there is one to be sent now.
    fn next_datagram(
        &mut self,
        now: Time,
        address: &Address,
        buffer: &mut Vec<u8>,
    ) -> Option<DatagramRoute>;

    /// When something is due next.
    fn timeout(&self) -> Option<Time>;

    /// Bytes delivered to the application.
    fn delivered(&self) -> u64;

    /// Whether the connection has just been closed, or has now forgotten all about it.
    fn take_closed(&mut self) -> bool;
}

/// What the application was told of the end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CloseNotice {
    #[default]
    Nothing,
    Closed,
    Drained,
}

impl CloseNotice {
    /// The connection has come so far; whether that is news.
    pub(super) fn advance(&mut self, state: Self) -> bool {
        let is_news = state > *self;
        *self = state;
        is_news
    }
}
