//! A connection as the application sees it: streams, settings, statistics.

use std::net::SocketAddr;

use bytes::Bytes;
use weir_congestion::{Controller, Deadline};
use weir_units::{ByteSize, Time};

use super::Connection;
use super::stats::{ConnectionStats, PathSnapshot};
use crate::crypto::Identity;
use crate::streams::{ReadError, WriteError};
use crate::{Direction, Side, StreamId};

impl Connection {
    /// Opens a stream; `None` while the peer's limit is reached.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams.open(direction)
    }

    /// The next stream that the peer opened.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams.accept(direction)
    }

    /// Copies data into a stream's send buffer; tells how much fit.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] where nothing fits now.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.table.used = true;
        let written = self.streams.write(id, data);
        self.observe_task(id);
        written
    }

    /// Moves a prefix of `data` into a stream's send buffer without a copy; tells how much fit.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] where nothing fits now.
    pub fn write_bytes(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        self.table.used = true;
        let written = self.streams.write_bytes(id, data);
        self.observe_task(id);
        written
    }

    /// No more data will be written to a stream.
    ///
    /// # Errors
    /// [`WriteError`] where the stream's sending part is over already.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.streams.finish(id)
    }

    /// Abandons a stream's sending part, with the application's code.
    ///
    /// # Errors
    /// [`WriteError`] where the stream's sending part is over already.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), WriteError> {
        self.watch_abandoned(id);
        self.streams.reset(id, code)
    }

    /// Asks the peer to send no more on a stream; what still arrives is discarded.
    ///
    /// # Errors
    /// [`ReadError`] where the stream's receiving part is over already.
    pub fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        self.watch_abandoned(id);
        self.streams.stop_sending(id, code)
    }

    /// Streams of higher priority are sent first; zero is where they begin.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) {
        self.streams.set_priority(id, priority);
    }

    /// Up to `max` bytes that are in order, without a copy; `None` at the stream's end.
    ///
    /// # Errors
    /// [`ReadError::Blocked`] where none are there now.
    pub fn read(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        self.streams.read(id, max)
    }

    /// Copies bytes that are in order into `out`; `None` at the stream's end.
    ///
    /// # Errors
    /// [`ReadError::Blocked`] where none are there now.
    pub fn read_into(&mut self, id: StreamId, out: &mut [u8]) -> Result<Option<usize>, ReadError> {
        self.streams.read_into(id, out)
    }

    /// Whether the peer opened the stream by early data, which an attacker can replay
    /// (RFC 9001, section 9.2).
    pub fn is_early_data(&self, id: StreamId) -> bool {
        id.initiator() != self.side && id.index() < self.early_streams[id.direction() as usize]
    }

    /// Which side this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.path().remote
    }

    /// Our address under the path in use, where it is known.
    pub fn local(&self) -> Option<SocketAddr> {
        self.path().local
    }

    /// Whether the handshake is still going on.
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

    /// Whether any authentic packet has arrived.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.counters.authenticated
    }

    /// What the handshake told of the peer.
    pub fn identity(&self) -> Identity {
        self.session.identity()
    }

    /// Keying material for the application (RFC 8446, section 7.5) into `output`; `false` before the
    /// handshake is complete or where the provider has none.
    pub fn export_keying_material(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.session.export(output, label, context)
    }

    /// Whether a packet from the peer is to be expected soon: something of ours waits for its
    /// acknowledgment.
    pub fn reply_due(&self) -> bool {
        !self.is_closed() && self.path().in_flight > 0
    }

    /// Replaces the congestion controller of the path in use. A path that is moved to begins with
    /// one as configured (RFC 9000, section 9.4).
    pub fn set_controller(&mut self, mut controller: Box<dyn Controller>) {
        let path = self.path_mut();
        controller.on_packet_size(ByteSize::from_bytes(path.mtu as u64));
        path.controller = controller;
    }

    /// Tells the congestion controller what is left of the transfer in progress and until when.
    pub fn set_deadline(&mut self, deadline: Option<Deadline>) {
        self.deadline = deadline;
        self.path_mut().controller.on_deadline(deadline);
    }

    /// Caps what may be on its way, on whatever path, beside the congestion controller's window; `None`
    /// lifts the cap. A cap of zero stops what counts against the window; one below a packet lets single
    /// packets go, paced.
    pub fn set_window_cap(&mut self, now: Time, cap: Option<ByteSize>) {
        self.window_cap = cap;
        for path in &mut self.paths {
            path.set_cap(now, cap);
        }
        // What the pacer said was for another rate.
        self.timers.paced_until = None;
    }

    /// The largest UDP payload that may be sent on the path in use.
    pub fn packet_size(&self) -> ByteSize {
        ByteSize::from_bytes(self.path().mtu as u64)
    }

    /// How much of a stream the peer has acknowledged without a gap; `None` where its sending part is over
    /// and forgotten.
    pub fn acknowledged(&mut self, id: StreamId) -> Option<u64> {
        self.streams.acknowledged(id)
    }

    /// What happened so far.
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
