//! The application's operations on streams.

use bytes::Bytes;

use super::chunk::ChunkPool;
use super::flow::ReceiveWindow;
use super::receive::{ReceiveHalf, Skipped};
use super::send::SendHalf;
use super::{ReadError, Streams, WriteError};
use crate::codec::VARINT_MAX;
use crate::{Direction, StreamId};

impl Streams {
    /// Opens a stream; `None` if the peer's limit does not allow one, until
    /// `StreamEvent::Available`.
    pub(crate) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let id = self.map.numbers.open(direction)?;
        self.map.begin(id, true);
        Some(id)
    }

    /// Returns the next stream that the peer opened; `None` if there is none, until
    /// `StreamEvent::Opened`.
    pub(crate) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let id = self.map.numbers.accept(direction)?;
        // It does not exist yet if only a stream with a higher number has arrived.
        self.map.begin(id, false);
        Some(id)
    }

    /// Returns how many streams the application may accept now.
    pub(crate) fn acceptable(&self, direction: Direction) -> u64 {
        self.map.numbers.acceptable(direction)
    }

    /// Copies as much of `data` into the stream's send buffer as fits; returns how much.
    ///
    /// # Errors
    /// [`WriteError`]; `Blocked` if nothing fits.
    pub(crate) fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let capacity = self.config.send_buffer;
        self.sending(id, |send, pool| send.write(data, capacity, pool))
    }

    /// Moves as much of the front of `data` as fits into the stream's send buffer, without a copy
    /// unless it is short; returns how much.
    ///
    /// # Errors
    /// [`WriteError`]; `Blocked` if nothing fits.
    pub(crate) fn write_bytes(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, WriteError> {
        let capacity = self.config.send_buffer;
        self.sending(id, |send, pool| send.write_bytes(data, capacity, pool))
    }

    /// Whether anything of a stream was ever sent, as far as that is still known.
    pub(crate) fn has_sent(&mut self, id: StreamId) -> bool {
        let stream = self.map.known(id);
        let send = stream.and_then(|stream| stream.send.as_ref());
        send.is_none_or(SendHalf::has_sent)
    }

    /// Returns the bytes written to the stream since its buffer was last empty, i.e. everything was
    /// acknowledged; zero if it is empty now.
    pub(crate) fn task_size(&mut self, id: StreamId) -> u64 {
        let stream = self.map.known(id);
        let send = stream.and_then(|stream| stream.send.as_ref());
        send.map_or(0, SendHalf::task_size)
    }

    /// Returns the bytes acknowledged without a gap; `None` if the stream's sending half is closed.
    pub(crate) fn acknowledged(&mut self, id: StreamId) -> Option<u64> {
        let stream = self.map.known(id)?;
        Some(stream.send.as_ref()?.acknowledged())
    }

    /// Ends the stream after the written data. `StreamEvent::Finished` reports when the peer has
    /// everything.
    ///
    /// # Errors
    /// [`WriteError`], never `Blocked`.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.sending(id, |send, _| send.finish())
    }

    /// Resets the stream: unacknowledged data is dropped and `code`, which must be a varint, is
    /// sent to the peer.
    ///
    /// # Errors
    /// [`WriteError`], never `Blocked`.
    pub(crate) fn reset(&mut self, id: StreamId, code: u64) -> Result<(), WriteError> {
        self.sending(id, |send, pool| send.reset(code.min(VARINT_MAX), pool))
    }

    /// Asks the peer to stop sending on the stream, with `code`, which must be a varint. Data that
    /// has arrived and was not read is dropped.
    ///
    /// # Errors
    /// [`ReadError::Closed`] and [`ReadError::EarlyDataRejected`].
    pub(crate) fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        let code = code.min(VARINT_MAX);
        self.receiving(id, |receive, window, pool| receive.stop(code, window, pool))
    }

    /// Sets the priority; streams of higher priority send first, the default is zero. No effect on
    /// a closed stream.
    pub(crate) fn set_priority(&mut self, id: StreamId, priority: i32) {
        if let Some(stream) = self.map.known(id) {
            self.scheduler.set_priority(id, stream, priority);
        }
    }

    /// Returns the next data of the stream, at most `max` bytes, without a copy; `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`]; `Blocked` if no data has arrived.
    pub(crate) fn read(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        self.receiving(id, |receive, window, pool| receive.read(max, window, pool))
    }

    /// Drops all data of the stream that could be read.
    ///
    /// # Errors
    /// [`ReadError`], never `Blocked`.
    pub(crate) fn skip(&mut self, id: StreamId) -> Result<Skipped, ReadError> {
        self.receiving(id, |receive, window, pool| receive.skip(window, pool))
    }

    /// Copies the next data of the stream to `out`; returns how many bytes, `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`]; `Blocked` if no data has arrived.
    pub(crate) fn read_into(
        &mut self,
        id: StreamId,
        out: &mut [u8],
    ) -> Result<Option<usize>, ReadError> {
        self.receiving(id, |receive, window, pool| {
            receive.read_into(out, window, pool)
        })
    }

    fn sending<T>(
        &mut self,
        id: StreamId,
        act: impl FnOnce(&mut SendHalf, &mut ChunkPool) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        if self.map.numbers.is_refused(id) {
            return Err(WriteError::Refused);
        }
        let Some(stream) = self.map.known(id) else {
            return Err(if self.map.numbers.is_rejected(id) {
                WriteError::EarlyDataRejected
            } else {
                WriteError::Closed
            });
        };
        let send = stream.send.as_mut().ok_or(WriteError::Closed)?;
        let done = act(send, &mut self.pool)?;
        self.scheduler.update(id, stream);
        Ok(done)
    }

    fn receiving<T>(
        &mut self,
        id: StreamId,
        act: impl FnOnce(&mut ReceiveHalf, &mut ReceiveWindow, &mut ChunkPool) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if self.map.numbers.is_refused(id) {
            return Err(ReadError::Refused);
        }
        let Some(stream) = self.map.known(id) else {
            return Err(if self.map.numbers.is_rejected(id) {
                ReadError::EarlyDataRejected
            } else {
                ReadError::Closed
            });
        };
        let receive = stream.receive.as_mut().ok_or(ReadError::Closed)?;
        let result = act(receive, &mut self.window, &mut self.pool);
        if let Err(ReadError::Blocked) = result {
            // Nothing was read: nothing else has changed.
            return result;
        }
        let closed = stream.drop_done(&mut self.pool);
        self.scheduler.update(id, stream);
        if closed {
            self.map.remove(id);
        }
        result
    }
}
