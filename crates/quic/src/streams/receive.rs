//! The receiving half of a stream (RFC 9000, section 3.2).
//!
//! "Recv" lasts until the final size is known, "Size Known" until everything up to it has arrived,
//! "Data Recvd" until it is read. The half is dropped in "Data Read" and "Reset Read", and, if the
//! application does not want the data, once its final size is known.

use bytes::Bytes;

use super::ReadError;
use super::chunk::ChunkPool;
use super::flow::ReceiveWindow;
use super::receive_buffer::{ReceiveBuffer, Received};
use crate::frame::{ResetStream, Stream};
use crate::{Code, TransportError};

/// The data that an application skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The number of bytes.
    pub bytes: u64,
    /// Whether the stream has ended.
    pub has_ended: bool,
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct ReceiveHalf {
    buffer: ReceiveBuffer,
    /// The flow control window; its received count is the highest offset.
    pub(super) window: ReceiveWindow,
    /// The final size.
    size: Option<u64>,
    state: ReceiveState,
    /// A read by the application found an empty buffer.
    pub(super) blocked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveState {
    /// Data is received and read.
    Open,
    /// The peer has reset the stream; not yet reported to the application.
    Reset(u64),
    /// The application stopped the stream; `due`: STOP_SENDING is to be sent.
    Stopped { code: u64, due: bool },
    /// The end of the stream was reported to the application.
    Read,
}

impl ReceiveHalf {
    /// Creates a half with a receive window of that many bytes.
    pub(super) fn new(window: u64) -> Self {
        Self {
            buffer: ReceiveBuffer::default(),
            window: ReceiveWindow::new(window),
            size: None,
            state: ReceiveState::Open,
            blocked: false,
        }
    }

    /// Handles a STREAM frame. `connection` is the connection's window.
    ///
    /// # Errors
    /// `FLOW_CONTROL_ERROR` and `FINAL_SIZE_ERROR` (sections 4.1 and 4.5).
    pub(super) fn on_stream(
        &mut self,
        frame: &Stream<'_>,
        connection: &mut ReceiveWindow,
        pool: &mut ChunkPool,
    ) -> Result<Received, TransportError> {
        let end = frame
            .offset
            .checked_add(frame.data.len() as u64)
            .ok_or_else(|| flow_control_error("stream"))?;
        self.check_size(end, frame.fin)?;
        let new = self.check_limits(end, connection)?;
        if self.state == ReceiveState::Open {
            let size = if frame.fin { Some(end) } else { self.size };
            let received = self.buffer.insert(frame.offset, frame.data, size, pool);
            if received == Received::Refused {
                return Ok(received);
            }
        }
        self.count_received(new, connection);
        if frame.fin {
            self.size = Some(end);
        }
        Ok(Received::Buffered)
    }

    /// Handles a RESET_STREAM frame.
    ///
    /// # Errors
    /// `FLOW_CONTROL_ERROR` and `FINAL_SIZE_ERROR` (sections 4.1 and 4.5).
    pub(super) fn on_reset(
        &mut self,
        frame: &ResetStream,
        connection: &mut ReceiveWindow,
        pool: &mut ChunkPool,
    ) -> Result<(), TransportError> {
        self.check_size(frame.final_size, true)?;
        let new = self.check_limits(frame.final_size, connection)?;
        // Data that has arrived in full, including its end, is still delivered (section 3.2).
        let complete = self.has_everything();
        self.count_received(new, connection);
        self.size = Some(frame.final_size);
        if self.state == ReceiveState::Open && !complete {
            self.state = ReceiveState::Reset(frame.code);
            self.drop_data(connection, pool);
        }
        Ok(())
    }

    /// Stops the stream: the application wants no more data.
    pub(super) fn stop(
        &mut self,
        code: u64,
        connection: &mut ReceiveWindow,
        pool: &mut ChunkPool,
    ) -> Result<(), ReadError> {
        match self.state {
            ReceiveState::Open | ReceiveState::Reset(_) => {
                // STOP_SENDING is useless once the final size is known (section 3.5).
                let due = self.size.is_none();
                self.state = ReceiveState::Stopped { code, due };
                self.blocked = false;
                self.drop_data(connection, pool);
                Ok(())
            }
            ReceiveState::Stopped { .. } | ReceiveState::Read => Err(ReadError::Closed),
        }
    }

    /// Stops a half on which nothing has arrived.
    pub(super) fn refuse(&mut self, code: u64) {
        self.state = ReceiveState::Stopped { code, due: true };
    }

    /// Reads up to `max` bytes, without a copy; `None` at the end of the stream.
    pub(super) fn read(
        &mut self,
        max: usize,
        connection: &mut ReceiveWindow,
        pool: &mut ChunkPool,
    ) -> Result<Option<Bytes>, ReadError> {
        self.check_open()?;
        let Some(bytes) = self.buffer.read(max, pool) else {
            return self.nothing_to_read().map(|()| None);
        };
        self.window.consume(bytes.len() as u64);
        connection.consume(bytes.len() as u64);
        Ok(Some(bytes))
    }

    /// Drops all data that can be read. More data, and the end, wake the reader.
    pub(super) fn skip(
        &mut self,
        connection: &mut ReceiveWindow,
        pool: &mut ChunkPool,
    ) -> Result<Skipped, ReadError> {
        self.check_open()?;
        let bytes = self.buffer.skip(pool);
        self.window.consume(bytes);
        connection.consume(bytes);
        let has_ended = self.has_everything();
        if has_ended {
            self.state = ReceiveState::Read;
        } else {
            self.blocked = true;
        }
        Ok(Skipped { bytes, has_ended })
    }

    /// Copies up to `out.len()` bytes; `None` at the end of the stream.
    pub(super) fn read_into(
        &mut self,
        out: &mut [u8],
        connection: &mut ReceiveWindow,
        pool: &mut ChunkPool,
    ) -> Result<Option<usize>, ReadError> {
        self.check_open()?;
        if out.is_empty() && self.buffer.readable() > 0 {
            return Ok(Some(0));
        }
        let length = self.buffer.read_into(out, pool);
        if length == 0 {
            return self.nothing_to_read().map(|()| None);
        }
        self.window.consume(length as u64);
        connection.consume(length as u64);
        Ok(Some(length))
    }

    fn check_open(&mut self) -> Result<(), ReadError> {
        match self.state {
            ReceiveState::Open => Ok(()),
            ReceiveState::Reset(code) => {
                self.state = ReceiveState::Read;
                Err(ReadError::Reset(code))
            }
            ReceiveState::Stopped { .. } | ReceiveState::Read => Err(ReadError::Closed),
        }
    }

    /// Returns the result of a read with an empty buffer: the end, or an error.
    fn nothing_to_read(&mut self) -> Result<(), ReadError> {
        if self.has_everything() {
            self.state = ReceiveState::Read;
            return Ok(());
        }
        self.blocked = true;
        Err(ReadError::Blocked)
    }

    /// Whether a waiting application should read again; reported once.
    pub(super) fn wakes_reader(&mut self) -> bool {
        let something = self.buffer.readable() > 0
            || self.has_everything()
            || matches!(self.state, ReceiveState::Reset(_));
        something && std::mem::take(&mut self.blocked)
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        match self.state {
            ReceiveState::Open | ReceiveState::Reset(_) => false,
            ReceiveState::Stopped { .. } => self.size.is_some(),
            ReceiveState::Read => true,
        }
    }

    /// Returns the code of a STOP_SENDING frame to send.
    pub(super) fn stop_due(&self) -> Option<u64> {
        match self.state {
            ReceiveState::Stopped { code, due: true } if self.size.is_none() => Some(code),
            _ => None,
        }
    }

    /// Records that STOP_SENDING was sent (`again` is false) or lost (`again` is true).
    pub(super) fn set_stop_due(&mut self, again: bool) {
        if let ReceiveState::Stopped { due, .. } = &mut self.state {
            *due = again;
        }
    }

    /// Whether to announce a new limit.
    pub(super) fn update_due(&self) -> bool {
        self.size.is_none() && self.state == ReceiveState::Open && self.window.update_due()
    }

    /// Records that the packet with the last limit was lost.
    pub(super) fn repeat_limit(&mut self) {
        self.window.repeat();
    }

    /// Drops the buffer's data, because the stream is abandoned.
    pub(super) fn discard(&mut self, pool: &mut ChunkPool) {
        self.buffer.discard(pool);
    }

    pub(super) fn has_everything(&self) -> bool {
        self.size == Some(self.buffer.ordered)
    }

    /// Checks that the final size never changes and no data exceeds it (section 4.5).
    fn check_size(&self, end: u64, is_final: bool) -> Result<(), TransportError> {
        let reason = match self.size {
            Some(size) if end > size => "data beyond the final size",
            Some(size) if is_final && end != size => "the final size changed",
            None if is_final && end < self.window.received => {
                "the final size is below data received"
            }
            _ => return Ok(()),
        };
        Err(TransportError::new(Code::FINAL_SIZE_ERROR, reason))
    }

    /// Returns how many bytes up to `end` are new, if the stream and connection limits allow them.
    fn check_limits(&self, end: u64, connection: &ReceiveWindow) -> Result<u64, TransportError> {
        let new = end.saturating_sub(self.window.received);
        if new > self.window.available() {
            return Err(flow_control_error("stream"));
        }
        if new > connection.available() {
            return Err(flow_control_error("connection"));
        }
        Ok(new)
    }

    /// Counts new bytes; those that will not be read are credited at once.
    fn count_received(&mut self, new: u64, connection: &mut ReceiveWindow) {
        self.window.receive(new);
        connection.receive(new);
        if self.state != ReceiveState::Open {
            self.window.consume(new);
            connection.consume(new);
        }
    }

    /// Drops received data and credits it to the connection.
    fn drop_data(&mut self, connection: &mut ReceiveWindow, pool: &mut ChunkPool) {
        self.buffer.discard(pool);
        let unread = self.window.unconsumed();
        self.window.consume(unread);
        connection.consume(unread);
    }
}

fn flow_control_error(what: &'static str) -> TransportError {
    TransportError::new(
        Code::FLOW_CONTROL_ERROR,
        format!("data beyond the limit of the {what}"),
    )
}
