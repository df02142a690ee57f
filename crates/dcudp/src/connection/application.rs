//! The application's reads and writes.

use bytes::Bytes;
use weir_congestion::AlgorithmSpec;

use super::Connection;
use super::close::LifeCycle;
use crate::config::DataKind;
use crate::error::{ConnectionError, ReadError, WriteError};

impl Connection {
    /// Takes over the parameters of the rate control that
    /// [change](weir_congestion::Controller::set_parameters) while it runs.
    pub fn set_congestion_parameters(&mut self, spec: &AlgorithmSpec) {
        self.sender.set_congestion_parameters(spec);
    }

    /// Copies as much of `data` into the send buffer as fits, and returns that length. Possible
    /// before the handshake is complete.
    ///
    /// # Errors
    /// [`WriteError`] if nothing was copied.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.check_write(DataKind::Stream)?;
        let taken = self.sender.buffer.write(data);
        if taken == 0 && !data.is_empty() {
            self.write_blocked = true;
            return Err(WriteError::Blocked);
        }
        Ok(taken)
    }

    /// As [`Self::write`], without copying: removes what fits from the front of `data`, and sends it from
    /// where it is. Less than a packet is copied.
    ///
    /// # Errors
    /// [`WriteError`] if nothing was taken.
    pub fn write_bytes(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        self.check_write(DataKind::Stream)?;
        let is_empty = data.is_empty();
        let taken = self.sender.buffer.write_bytes(data);
        if taken == 0 && !is_empty {
            self.write_blocked = true;
            return Err(WriteError::Blocked);
        }
        Ok(taken)
    }

    /// Copies a whole message into the send buffer. An unordered message is delivered as soon as it
    /// has arrived, independent of earlier ones.
    ///
    /// # Errors
    /// [`WriteError`] if the message was not copied.
    pub fn write_message(&mut self, message: &[u8], in_order: bool) -> Result<(), WriteError> {
        self.check_write(DataKind::Messages)?;
        let limit = self.message_limit();
        if message.len() > limit {
            return Err(WriteError::TooLarge { limit });
        }
        if !self.sender.buffer.write_message(message, in_order) {
            self.write_blocked = true;
            return Err(WriteError::Blocked);
        }
        Ok(())
    }

    /// Returns the largest message size: the size of the peer's buffer. It is unknown before the
    /// handshake is complete; until then the limit is one packet's payload.
    pub fn message_limit(&self) -> usize {
        let packets = self.peer_window.max(1) as usize;
        let overhead = self.channel.overhead();
        let payload = self.packet_size.as_usize().saturating_sub(overhead);
        payload.saturating_mul(packets)
    }

    fn check_write(&self, kind: DataKind) -> Result<(), WriteError> {
        if self.config.data != kind {
            return Err(WriteError::WrongKind);
        }
        if !matches!(self.state, LifeCycle::Open) {
            return Err(WriteError::Closed(self.counters.error));
        }
        if self.sender.buffer.finish_wanted {
            return Err(WriteError::Ended);
        }
        Ok(())
    }

    /// Copies received data to `target` and returns the length. It is zero only for an empty
    /// target.
    ///
    /// # Errors
    /// [`ReadError`] if there was nothing to copy.
    pub fn read(&mut self, target: &mut [u8]) -> Result<usize, ReadError> {
        self.check_read(DataKind::Stream)?;
        let length = self.receiver.buffer.read(target);
        self.receiver.on_read();
        if length == 0 && !target.is_empty() {
            return Err(self.nothing_to_read());
        }
        Ok(length)
    }

    /// Fills `chunks` from the front with the next parts of the stream, of `most` bytes together, as they
    /// were received: nothing is copied. Returns the number of parts; it is zero only if `chunks` or `most`
    /// is.
    ///
    /// # Errors
    /// [`ReadError`] if there was none.
    pub fn read_chunks(&mut self, chunks: &mut [Bytes], most: usize) -> Result<usize, ReadError> {
        self.check_read(DataKind::Stream)?;
        let (mut count, mut left) = (0, most);
        for target in &mut *chunks {
            let Some(chunk) = self.receiver.buffer.read_chunk(left) else {
                break;
            };
            left -= chunk.len();
            *target = chunk;
            count += 1;
        }
        self.receiver.on_read();
        if count == 0 && !chunks.is_empty() && most > 0 {
            return Err(self.nothing_to_read());
        }
        Ok(count)
    }

    /// Appends the next message to `target`, and returns its length.
    ///
    /// # Errors
    /// [`ReadError`] if there was none.
    pub fn read_message(&mut self, target: &mut Vec<u8>) -> Result<usize, ReadError> {
        self.check_read(DataKind::Messages)?;
        let before = target.len();
        let found = self.receiver.buffer.read_message(target);
        self.receiver.on_read();
        match found {
            Ok(true) => Ok(target.len() - before),
            Ok(false) => Err(self.nothing_to_read()),
            Err(violation) => {
                self.broken = Some(violation);
                Err(ReadError::Closed(violation.into()))
            }
        }
    }

    fn check_read(&self, kind: DataKind) -> Result<(), ReadError> {
        if self.config.data == kind {
            Ok(())
        } else {
            Err(ReadError::WrongKind)
        }
    }

    fn nothing_to_read(&mut self) -> ReadError {
        if self.receiver.buffer.is_drained() {
            return ReadError::Ended;
        }
        match (&self.state, self.counters.error) {
            (LifeCycle::Open, _) => {
                self.read_blocked = true;
                ReadError::Blocked
            }
            (_, Some(error)) => ReadError::Closed(error),
            // Closed in order by this end before the peer's data had ended.
            (_, None) => ReadError::Closed(ConnectionError::Aborted),
        }
    }
}
