//! What the application does with streams.

use bytes::Bytes;

use super::chunk::ChunkPool;
use super::flow::ReceiveWindow;
use super::receive::ReceiveHalf;
use super::send::SendHalf;
use super::{ReadError, Streams, WriteError};
use crate::codec::VARINT_MAX;
use crate::{Direction, StreamId};

impl Streams {
    /// Opens a stream; `None` where the peer's limit does not allow one, until
    /// `StreamEvent::Available`.
    pub(crate) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let id = self.map.numbers.open(direction)?;
        self.map.begin(id, true);
        Some(id)
    }

    /// The next stream that the peer opened; `None` where there is none, until
    /// `StreamEvent::Opened`.
    pub(crate) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let id = self.map.numbers.accept(direction)?;
        // It is not there yet where only a stream with a higher number was heard of.
        self.map.begin(id, false);
        Some(id)
    }

    /// Copies as much of `data` into the stream's send buffer as fits; returns how much.
    ///
    /// # Errors
    /// [`WriteError`]; `Blocked` where nothing fits.
    pub(crate) fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let capacity = self.config.send_buffer;
        self.sending(id, |send, pool| send.write(data, capacity, pool))
    }

    /// Takes as much of `data` off its front as fits into the stream's send buffer, without a copy
    /// unless it is short; returns how much.
    ///
    /// # Errors
    /// [`WriteError`]; `Blocked` where nothing fits.
    pub(crate) fn write_bytes(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, WriteError> {
        let capacity = self.config.send_buffer;
        self.sending(id, |send, pool| send.write_bytes(data, capacity, pool))
    }

    /// How many bytes were written to the stream since it last had none that waited or were not
    /// acknowledged; zero once it has none.
    pub(crate) fn task_size(&mut self, id: StreamId) -> u64 {
        let stream = self.map.known(id);
        let send = stream.and_then(|stream| stream.send.as_ref());
        send.map_or(0, SendHalf::task_size)
    }

    /// How much of the stream was acknowledged without a gap; `None` where its sending half is closed.
    pub(crate) fn acknowledged(&mut self, id: StreamId) -> Option<u64> {
        let stream = self.map.known(id)?;
        Some(stream.send.as_ref()?.acknowledged())
    }

    /// Ends the stream behind what was written. `StreamEvent::Finished` tells when the peer has
    /// it all.
    ///
    /// # Errors
    /// [`WriteError`], never `Blocked`.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.sending(id, |send, _| send.finish())
    }

    /// Gives the stream up: what is not acknowledged is dropped and the peer told `code`, which
    /// must be a varint.
    ///
    /// # Errors
    /// [`WriteError`], never `Blocked`.
    pub(crate) fn reset(&mut self, id: StreamId, code: u64) -> Result<(), WriteError> {
        self.sending(id, |send, pool| send.reset(code.min(VARINT_MAX), pool))
    }

    /// Asks the peer to send no more on the stream, for the reason `code`, which must be a varint.
    /// What has arrived and was not read is dropped.
    ///
    /// # Errors
    /// [`ReadError::Closed`] and [`ReadError::EarlyDataRejected`].
    pub(crate) fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        let code = code.min(VARINT_MAX);
        self.receiving(id, |receive, window, pool| receive.stop(code, window, pool))
    }

    /// Streams of higher priority send first; it is zero at first. A stream that is closed is left
    /// as it is.
    pub(crate) fn set_priority(&mut self, id: StreamId, priority: i32) {
        if let Some(stream) = self.map.known(id) {
            self.scheduler.set_priority(id, stream, priority);
        }
    }

    /// The next data of the stream, at most `max` bytes, without a copy; `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`]; `Blocked` where none have arrived.
    pub(crate) fn read(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        self.receiving(id, |receive, window, pool| receive.read(max, window, pool))
    }

    /// Copies the next data of the stream to `out`; returns how many bytes, `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`]; `Blocked` where none have arrived.
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
        let Some(stream) = self.map.known(id) else {
            return Err(if self.map.numbers.is_rejected(id) {
                ReadError::EarlyDataRejected
            } else {
                ReadError::Closed
            });
        };
        let receive = stream.receive.as_mut().ok_or(ReadError::Closed)?;
        let result = act(receive, &mut self.window, &mut self.pool);
        let closed = stream.drop_done(&mut self.pool);
        self.scheduler.update(id, stream);
        if closed {
            self.map.remove(id);
        }
        result
    }
}
