//! The socket of an endpoint: passes what its connection sends to the host's link, keeps its timer, and
//! notifies the application.

use weir_network::TxPort;
use weir_units::Time;

use super::end::DatagramEnd;
use super::{EndpointEvent, HostContext, TcpEnd};
use crate::flows::FlowId;
use crate::packet::{Address, Network, Packet};

/// The state of an endpoint of any protocol.
#[derive(Debug)]
pub(super) struct Socket {
    /// The earliest of its timers; [`Time::MAX`] if there is none.
    pub(super) armed: Time,
    /// The number of delivered bytes that the application waits for.
    pub(super) awaited: u64,
    /// When it may send one packet, if the host's queue was too long; otherwise zero.
    pub(super) send_slot: Time,
    /// Whether its host has lost the endpoint's address: no packet is sent or received any more.
    pub(super) address_lost: bool,
    pub(super) address: Address,
}

impl Socket {
    /// Sets the timer of a connection after a segment that it has taken in on its fast paths, and returns an event for
    /// the application.
    #[inline(always)]
    pub(super) fn end_attention(
        &mut self,
        end: &TcpEnd,
        now: Time,
        shared: &mut HostContext,
    ) -> Option<(FlowId, EndpointEvent)> {
        let due = end.connection.quick_timeout();
        let due = if self.send_slot > now {
            due.min(self.send_slot)
        } else {
            due
        };
        self.set_timer(due, shared);
        // It is not closed.
        let notice = self.notice(end.connection.received().bytes(), || false);
        Some((self.address.flow, notice?))
    }

    #[inline(never)]
    pub(super) fn attend_tcp(
        &mut self,
        end: &mut TcpEnd,
        now: Time,
        shared: &mut HostContext,
        network: &mut Network,
    ) -> Option<(FlowId, EndpointEvent)> {
        let mut tx_port = network.tx_port(self.address.port)?;
        let is_patient = end.has_small_queues();
        while self.send_slot <= now {
            let has_turn = std::mem::take(&mut self.send_slot) > Time::ZERO;
            if is_patient && !has_turn && !tx_port.has_room(now) {
                self.send_slot = tx_port.reserve_slot();
                break;
            }
            if end.connection.has_sent_all() || !self.send_next(end, now, &mut tx_port) {
                break;
            }
        }
        let mut due = end.connection.timeout().unwrap_or(Time::MAX);
        if self.send_slot > now {
            due = due.min(self.send_slot);
        }
        let notice = self.notice(end.delivered(), || end.take_closed());
        self.set_timer(due, shared);
        Some((self.address.flow, notice?))
    }

    /// Sends the next segment of a connection, if there is one to send now.
    #[inline(always)]
    fn send_next(&self, end: &mut TcpEnd, now: Time, tx_port: &mut TxPort<'_, Packet>) -> bool {
        if end.sends_bursts() || self.address_lost {
            return self.send_next_burst(end, now, tx_port);
        }
        tx_port.send_with(now, |packet| {
            let Some((segment, ecn)) = end.connection.next_segment(now) else {
                return false;
            };
            packet.write_segment(&segment, ecn, &self.address);
            true
        })
    }

    /// Sends the next segment as [`Self::send_next`] does, where it may be a burst. The segments of a host
    /// that has lost the endpoint's address are discarded.
    #[inline(never)]
    fn send_next_burst(
        &self,
        end: &mut TcpEnd,
        now: Time,
        tx_port: &mut TxPort<'_, Packet>,
    ) -> bool {
        let Some((segment, ecn)) = end.connection.next_segment(now) else {
            return false;
        };
        if self.address_lost {
            return true;
        }
        let size = end.segment_size();
        let mut send =
            |segment| tx_port.send(now, Packet::of_segment(&segment, ecn, &self.address));
        // Segmentation takes divisions.
        if segment.payload <= size {
            send(segment);
        } else {
            segment.segments(size).for_each(send);
        }
        true
    }

    pub(super) fn attend_datagrams(
        &mut self,
        end: &mut impl DatagramEnd,
        now: Time,
        shared: &mut HostContext,
        network: &mut Network,
    ) -> Option<(FlowId, EndpointEvent)> {
        end.take_events();
        let mut is_first = true;
        while self.send_slot <= now {
            let has_turn = std::mem::take(&mut self.send_slot) > Time::ZERO;
            // A socket's buffer counts as full while the host's queue is.
            if let Some(mut tx_port) = end
                .port(&self.address)
                .and_then(|port| network.tx_port(port))
                && !has_turn
                && !tx_port.has_room(now)
            {
                self.send_slot = tx_port.reserve_slot();
                break;
            }
            if !std::mem::take(&mut is_first) && !end.may_send_more(now) {
                break;
            }
            let fill = |buffer: &mut Vec<u8>| {
                let departure = end.next_datagram(now, &self.address, buffer);
                // Datagrams of a stranded host are discarded.
                departure.filter(|_| !self.address_lost)
            };
            if !shared.send(now, &self.address, network, fill) {
                break;
            }
        }
        let due = if self.send_slot > now {
            self.send_slot
        } else {
            end.timeout().unwrap_or(Time::MAX)
        };
        let notice = self.notice(end.delivered(), || end.take_closed());
        // A timer of the past would be an event at its time, after others that were later.
        self.set_timer(due.max(now), shared);
        Some((self.address.flow, notice?))
    }

    /// Returns an event for the application, given the number of delivered bytes.
    #[inline]
    fn notice(
        &mut self,
        delivered: u64,
        is_closed: impl FnOnce() -> bool,
    ) -> Option<EndpointEvent> {
        if delivered >= self.awaited {
            self.awaited = u64::MAX;
            return Some(EndpointEvent::Delivered);
        }
        is_closed().then_some(EndpointEvent::Closed)
    }

    /// Sets the timer to `due`, unless it is earlier already.
    #[inline]
    pub(super) fn set_timer(&mut self, due: Time, shared: &mut HostContext) {
        if due < self.armed {
            self.armed = due;
            let Address { host, position, .. } = self.address;
            shared.timers.set(host, position, due);
        }
    }
}
