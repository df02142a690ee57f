//! The application's interface to a connection: streams, settings, statistics.

use std::net::SocketAddr;

use bytes::Bytes;
use weir_congestion::{Controller, Deadline};
use weir_units::{ByteSize, Time};

use super::Connection;
use super::stats::{ConnectionStats, PathSnapshot};
use crate::crypto::Identity;
use crate::streams::{ReadError, Skipped, WriteError};
use crate::{Direction, Side, StreamId};

impl Connection {
    /// Opens a stream; `None` if the peer's limit is reached, or it goes away.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let id = self.streams.open(direction)?;
        if id.index() > 0 {
            self.want_spare_ids();
        }
        Some(id)
    }

    /// Returns the next stream that the peer opened.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams.accept(direction)
    }

    /// Returns the number of streams that the peer has opened and [`Connection::accept`] has not
    /// returned yet.
    pub fn acceptable(&self, direction: Direction) -> u64 {
        self.streams.acceptable(direction)
    }

    /// Copies data into a stream's send buffer; returns the number of bytes accepted.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] if nothing fits now.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.table.used = true;
        let written = self.streams.write(id, data);
        self.observe_task(id);
        written
    }

    /// Moves a prefix of `data` into a stream's send buffer without a copy; returns the number of
    /// bytes accepted.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] if nothing fits now.
    pub fn write_bytes(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        self.table.used = true;
        let written = self.streams.write_bytes(id, data);
        self.observe_task(id);
        written
    }

    /// Finishes a stream: no more data will be written.
    ///
    /// # Errors
    /// [`WriteError`] if the stream's sending part has already ended.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        // An empty request is a request too.
        self.table.used = true;
        self.streams.finish(id)
    }

    /// Abandons a stream's sending part, with an application error code.
    ///
    /// # Errors
    /// [`WriteError`] if the stream's sending part has already ended.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), WriteError> {
        self.watch_abandoned(id);
        self.streams.reset(id, code)
    }

    /// Asks the peer to stop sending on a stream; data that still arrives is discarded.
    ///
    /// # Errors
    /// [`ReadError`] if the stream's receiving part has already ended.
    pub fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        self.watch_abandoned(id);
        self.streams.stop_sending(id, code)
    }

    /// Sets a stream's priority. Higher priorities are sent first; the default is zero.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) {
        self.streams.set_priority(id, priority);
    }

    /// Returns up to `max` bytes in order, without a copy; `None` at the stream's end.
    ///
    /// # Errors
    /// [`ReadError::Blocked`] if no data is available now.
    pub fn read(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        self.streams.read(id, max)
    }

    /// Drops all bytes in order that have arrived, for an application that only counts them. It is
    /// told of more by [`StreamEvent::Readable`](crate::StreamEvent::Readable).
    ///
    /// # Errors
    /// [`ReadError`], never [`ReadError::Blocked`].
    pub fn skip(&mut self, id: StreamId) -> Result<Skipped, ReadError> {
        self.streams.skip(id)
    }

    /// Copies bytes in order into `out`; `None` at the stream's end.
    ///
    /// # Errors
    /// [`ReadError::Blocked`] if no data is available now.
    pub fn read_into(&mut self, id: StreamId, out: &mut [u8]) -> Result<Option<usize>, ReadError> {
        self.streams.read_into(id, out)
    }

    /// Whether the peer opened the stream with early data, which an attacker can replay (RFC 9001,
    /// section 9.2).
    pub fn is_early_data(&self, id: StreamId) -> bool {
        id.initiator() != self.side && id.index() < self.early_streams[id.direction() as usize]
    }

    /// Whether anything of a stream of ours was ever sent: the peer can have executed nothing else. `true`
    /// where that is not known any more.
    pub fn has_sent(&mut self, id: StreamId) -> bool {
        self.streams.has_sent(id)
    }

    /// Returns our side.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the peer's address.
    #[inline]
    pub fn remote(&self) -> SocketAddr {
        self.path().remote
    }

    /// Returns our address on the path in use, if known.
    #[inline]
    pub fn local(&self) -> Option<SocketAddr> {
        self.path().local
    }

    /// Whether the handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        !self.is_closed() && !self.handshake.complete
    }

    /// Whether the handshake is complete and the connection open.
    pub fn is_established(&self) -> bool {
        !self.is_closed() && self.handshake.complete
    }

    /// Whether a client can send early data now.
    pub fn has_early_keys(&self) -> bool {
        self.side.is_client() && self.keys.zero_rtt.is_some()
    }

    /// Whether a server accepts the client's early data now.
    pub fn accepts_early_data(&self) -> bool {
        !self.side.is_client() && self.keys.zero_rtt.is_some()
    }

    /// Whether any authentic packet has arrived.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.counters.authenticated
    }

    /// Returns the peer's identity from the handshake.
    pub fn identity(&self) -> Identity {
        self.session.identity()
    }

    /// Exports keying material for the application (RFC 8446, section 7.5) into `output`. Returns
    /// `false` before the handshake is complete or if the provider has none.
    pub fn export_keying_material(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.session.export(output, label, context)
    }

    /// Whether a packet from the peer is expected soon: packets of ours are unacknowledged.
    pub fn reply_due(&self) -> bool {
        !self.is_closed() && self.path().in_flight > 0
    }

    /// Replaces the congestion controller of the path in use. After a move the new path starts with
    /// a controller from the configuration (RFC 9000, section 9.4).
    pub fn set_controller(&mut self, mut controller: Box<dyn Controller>) {
        let path = self.path_mut();
        controller.on_packet_size(ByteSize::from_bytes(path.mtu as u64));
        path.controller = controller;
    }

    /// Lets `change` change the congestion controllers of all paths, for example their
    /// [parameters](Controller::set_parameters).
    pub fn change_controllers(&mut self, mut change: impl FnMut(&mut dyn Controller)) {
        for path in &mut self.paths {
            change(&mut *path.controller);
        }
        // The pacer computed this time for another rate.
        self.timers.paced_until = None;
    }

    /// Passes the rest of the current transfer and its deadline to the congestion controller.
    pub fn set_deadline(&mut self, deadline: Option<Deadline>) {
        self.deadline = deadline;
        self.path_mut().controller.on_deadline(deadline);
    }

    /// Caps the bytes in flight on every path, in addition to the congestion window; `None` removes
    /// the cap. A cap of zero stops packets that count as in flight. A cap below one packet allows
    /// single packets, paced.
    pub fn set_window_cap(&mut self, now: Time, cap: Option<ByteSize>) {
        self.window_cap = cap;
        for path in &mut self.paths {
            path.set_cap(now, cap);
        }
        // The pacer computed this time for another rate.
        self.timers.paced_until = None;
    }

    /// Returns the largest UDP payload on the path in use.
    pub fn packet_size(&self) -> ByteSize {
        ByteSize::from_bytes(self.path().mtu as u64)
    }

    /// Returns how many bytes of a stream the peer has acknowledged without a gap; `None` if its
    /// sending part has ended and been dropped.
    pub fn acknowledged(&mut self, id: StreamId) -> Option<u64> {
        self.streams.acknowledged(id)
    }

    /// Returns statistics of the connection.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            handshake: self.counters.handshake,
            packets_dropped: self.counters.packets_dropped,
            open_streams: self.streams.open_streams(),
            probe_timeouts: self.counters.probe_timeouts,
            key_updates: self.keys.update_count(),
            datagrams: self.datagrams.stats,
            ack_requests: self.counters.ack_requests,
            ack_packets_sent: self.counters.ack_packets_sent,
            totals: self.totals(),
            paths: self.paths.iter().map(PathSnapshot::of).collect(),
        }
    }
}
