//! The sending half of a stream (RFC 9000, section 3.1).
//!
//! The remaining work represents the RFC's states: "Ready" and "Send" until [`Fin`] is due, "Data
//! Sent" until it and all data are acknowledged, "Reset Sent" with a [`Reset`]. The half is dropped
//! in "Data Recvd" and "Reset Recvd".

use bytes::Bytes;

use super::chunk::ChunkPool;
use super::flow::SendCredit;
use super::send_buffer::SendBuffer;
use super::{StreamEvent, WriteError};
use crate::StreamId;
use crate::ranges::RangeSet;

/// The sending half of a stream.
#[derive(Debug)]
pub(super) struct SendHalf {
    buffer: SendBuffer,
    /// The flow control credit; its used count is the offset of the next new byte.
    pub(super) credit: SendCredit,
    /// Data sent, lost, and not sent again.
    lost: RangeSet,
    fin: Fin,
    reset: Option<Reset>,
    /// A write by the application found a full buffer.
    pub(super) blocked: bool,
    /// The start offset of the current task: the buffer was last empty there.
    task_start: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The application may write more.
    Open,
    /// To be sent, or sent again.
    Due,
    Sent,
    Acked,
}

/// A reset of the half, by the application or because of STOP_SENDING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reset {
    code: u64,
    by_peer: bool,
    due: bool,
    acked: bool,
}

/// Data that may be sent in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sendable {
    /// The offset of the first byte.
    pub(super) offset: u64,
    /// The number of bytes.
    pub(super) length: u64,
    /// Whether the stream ends with them.
    pub(super) fin: bool,
}

impl Sendable {
    /// Returns its first `length` bytes.
    pub(super) const fn first(self, length: u64) -> Self {
        Self {
            offset: self.offset,
            length,
            fin: self.fin && length == self.length,
        }
    }
}

impl SendHalf {
    /// Creates a half that may send up to the offset `limit`.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            buffer: SendBuffer::default(),
            credit: SendCredit::new(limit),
            lost: RangeSet::new(),
            fin: Fin::Open,
            reset: None,
            blocked: false,
            task_start: 0,
        }
    }

    /// Copies as much of `data` as fits; `capacity` is the most that the buffer holds.
    pub(super) fn write(
        &mut self,
        data: &[u8],
        capacity: u64,
        pool: &mut ChunkPool,
    ) -> Result<usize, WriteError> {
        let length = self.fitting(data.len(), capacity)?;
        self.buffer.write(&data[..length], pool);
        Ok(length)
    }

    /// Moves as much of `data` as fits.
    pub(super) fn write_bytes(
        &mut self,
        data: &mut Bytes,
        capacity: u64,
        pool: &mut ChunkPool,
    ) -> Result<usize, WriteError> {
        let length = self.fitting(data.len(), capacity)?;
        self.buffer.give(data.split_to(length), pool);
        Ok(length)
    }

    fn fitting(&mut self, length: usize, capacity: u64) -> Result<usize, WriteError> {
        self.check_open()?;
        if self.buffer.is_empty() {
            self.task_start = self.buffer.end;
        }
        let room = capacity.saturating_sub(self.buffer.held());
        if room == 0 && length > 0 {
            self.blocked = true;
            return Err(WriteError::Blocked);
        }
        Ok(length.min(room.try_into().unwrap_or(usize::MAX)))
    }

    fn check_open(&self) -> Result<(), WriteError> {
        match self.reset {
            Some(Reset {
                by_peer: true,
                code,
                ..
            }) => Err(WriteError::Stopped(code)),
            Some(_) => Err(WriteError::Closed),
            None if self.fin == Fin::Open => Ok(()),
            None => Err(WriteError::Closed),
        }
    }

    /// Finishes the half: no more data will be written.
    pub(super) fn finish(&mut self) -> Result<(), WriteError> {
        self.check_open()?;
        self.fin = Fin::Due;
        Ok(())
    }

    /// Resets the half: unacknowledged data is dropped.
    pub(super) fn reset(&mut self, code: u64, pool: &mut ChunkPool) -> Result<(), WriteError> {
        match self.reset {
            Some(_) => self.check_open(),
            None => {
                self.abandon(code, false, pool);
                Ok(())
            }
        }
    }

    /// Resets a half to which nothing was written.
    pub(super) fn refuse(&mut self, code: u64) {
        self.reset = Some(Reset {
            code,
            by_peer: false,
            due: true,
            acked: false,
        });
    }

    /// Handles STOP_SENDING (section 3.5): resets the stream with the peer's code. `true` if it was
    /// not reset already.
    pub(super) fn stop(&mut self, code: u64, pool: &mut ChunkPool) -> bool {
        let first = self.reset.is_none();
        if first {
            self.abandon(code, true, pool);
        }
        first
    }

    fn abandon(&mut self, code: u64, by_peer: bool, pool: &mut ChunkPool) {
        self.buffer.discard(pool);
        self.lost.clear();
        self.blocked = false;
        self.reset = Some(Reset {
            code,
            by_peer,
            due: true,
            acked: false,
        });
    }

    /// Drops the buffer's data, because the stream is abandoned.
    pub(super) fn discard(&mut self, pool: &mut ChunkPool) {
        self.buffer.discard(pool);
    }

    /// Returns the bytes of the current task; zero if all data is acknowledged.
    pub(super) fn task_size(&self) -> u64 {
        if self.buffer.is_empty() {
            0
        } else {
            self.buffer.end - self.task_start
        }
    }

    /// Returns the bytes acknowledged without a gap.
    pub(super) fn acknowledged(&self) -> u64 {
        self.buffer.end - self.buffer.held()
    }

    /// Returns the bytes written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        match self.reset {
            None => self.buffer.end - self.credit.used,
            Some(_) => 0,
        }
    }

    /// Returns the bytes to send again.
    pub(super) fn lost(&self) -> u64 {
        self.lost.covered()
    }

    /// Whether there is data that flow control does not limit: lost data, or the end alone.
    pub(super) fn needs_retransmission(&self) -> bool {
        self.reset.is_none() && (!self.lost.is_empty() || self.fin_alone())
    }

    fn fin_alone(&self) -> bool {
        self.fin == Fin::Due && self.buffer.end == self.credit.used
    }

    /// Whether to report to the peer that its limit for this stream blocks data.
    pub(super) fn report_due(&self) -> bool {
        self.unsent() > 0 && self.credit.report_due()
    }

    /// Returns the data to send again, or the end that is sent alone.
    pub(super) fn retransmission(&self) -> Option<Sendable> {
        if !self.needs_retransmission() {
            return None;
        }
        let end = self.buffer.end;
        let range = self.lost.first().unwrap_or(end..end);
        Some(Sendable {
            offset: range.start,
            length: range.end - range.start,
            fin: self.fin == Fin::Due && range.end == end,
        })
    }

    /// Returns new data that the stream's flow control and `limit`, the connection's, allow.
    pub(super) fn fresh(&self, limit: u64) -> Option<Sendable> {
        let unsent = self.unsent();
        let length = unsent.min(self.credit.available()).min(limit);
        (length > 0).then(|| Sendable {
            offset: self.credit.used,
            length,
            fin: self.fin == Fin::Due && length == unsent,
        })
    }

    /// Whether anything of it was ever sent.
    pub(super) fn has_sent(&self) -> bool {
        self.credit.used > 0 || matches!(self.fin, Fin::Sent | Fin::Acked)
    }

    /// Appends data to `out`, as returned by [`Self::retransmission`] or [`Self::fresh`].
    pub(super) fn send(&mut self, data: Sendable, out: &mut Vec<u8>) {
        self.buffer.copy(data.offset, data.length as usize, out);
        if data.offset < self.credit.used {
            self.lost.remove(data.offset..data.offset + data.length);
        } else {
            self.credit.spend(data.length);
        }
        if data.fin {
            self.fin = Fin::Sent;
        }
    }

    /// Handles the ACK of a frame with this data.
    pub(super) fn on_acked(&mut self, data: Sendable, pool: &mut ChunkPool) {
        let end = data.offset + data.length;
        if self.reset.is_some() || end > self.credit.used {
            return;
        }
        if !self.lost.is_empty() {
            self.lost.remove(data.offset..end);
        }
        self.buffer.acknowledge(data.offset, data.length, pool);
        if data.fin {
            self.fin = Fin::Acked;
        }
    }

    /// Handles the loss of a frame with this data.
    pub(super) fn on_lost(&mut self, data: Sendable) {
        let end = data.offset + data.length;
        if self.reset.is_some() || end > self.credit.used {
            return;
        }
        self.buffer
            .collect_unacked(data.offset..end, &mut self.lost);
        if data.fin && self.fin == Fin::Sent {
            self.fin = Fin::Due;
        }
    }

    /// Returns the reset to send: its code and the final size.
    pub(super) fn reset_due(&self) -> Option<(u64, u64)> {
        self.reset
            .filter(|reset| reset.due)
            .map(|reset| (reset.code, self.credit.used))
    }

    /// Records that the reset was sent (`due` is false) or lost (`due` is true).
    pub(super) fn set_reset_due(&mut self, due: bool) {
        if let Some(reset) = &mut self.reset {
            reset.due = due && !reset.acked;
        }
    }

    /// Handles the ACK of the reset.
    pub(super) fn on_reset_acked(&mut self) {
        if let Some(reset) = &mut self.reset {
            reset.acked = true;
            reset.due = false;
        }
    }

    /// Whether the peer has everything: "Data Recvd".
    pub(super) fn is_delivered(&self) -> bool {
        self.reset.is_none() && self.fin == Fin::Acked && self.buffer.is_empty()
    }

    /// Whether nothing is left to do: "Data Recvd" or "Reset Recvd".
    pub(super) fn is_done(&self) -> bool {
        self.is_delivered() || self.reset.is_some_and(|reset| reset.acked)
    }

    /// Returns the event for an application that waits for room, once an eighth of the buffer is
    /// free, so that it is not woken for every packet.
    pub(super) fn writable_event(&mut self, id: StreamId, capacity: u64) -> Option<StreamEvent> {
        let woken = self.blocked && self.buffer.held() <= capacity - capacity / 8;
        let woken = woken && self.buffer.held() < capacity;
        woken.then(|| {
            self.blocked = false;
            StreamEvent::Writable(id)
        })
    }
}
