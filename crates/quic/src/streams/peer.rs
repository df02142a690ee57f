//! Handles the peer's stream frames.
//!
//! Frames for closed streams are late and change nothing (RFC 9000, section 3.1 to 3.3).

use super::receive::ReceiveHalf;
use super::{Received, StreamEvent, Streams};
use crate::frame::{ResetStream, Stream};
use crate::{Direction, StreamId, TransportError};

impl Streams {
    /// Handles STREAM (RFC 9000, section 19.8).
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR`, `STREAM_LIMIT_ERROR`, `FLOW_CONTROL_ERROR`, `FINAL_SIZE_ERROR`.
    pub(crate) fn on_stream(&mut self, frame: &Stream<'_>) -> Result<Received, TransportError> {
        let id = frame.id;
        let Some(stream) = self.map.receiving(id, &mut self.events)? else {
            return Ok(Received::Buffered);
        };
        let Some(receive) = &mut stream.receive else {
            return Ok(Received::Buffered);
        };
        let received = receive.on_stream(frame, &mut self.window, &mut self.pool)?;
        if receive.wakes_reader() {
            self.events.push(StreamEvent::Readable(id));
        }
        // Without the end, only reads by the application change the data to send.
        if frame.fin && received == Received::Buffered || self.map.numbers.refuses(id) {
            self.settle(id);
        }
        Ok(received)
    }

    /// Whether all data of a stream has arrived, including its end; `true` for a closed stream.
    pub(crate) fn has_everything(&mut self, id: StreamId) -> bool {
        let receive = self
            .map
            .streams
            .get_mut(id)
            .and_then(|stream| stream.receive.as_ref());
        receive.is_none_or(ReceiveHalf::has_everything)
    }

    /// Handles RESET_STREAM (RFC 9000, section 19.4).
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR`, `STREAM_LIMIT_ERROR`, `FLOW_CONTROL_ERROR`, `FINAL_SIZE_ERROR`.
    pub(crate) fn on_reset_stream(&mut self, frame: &ResetStream) -> Result<(), TransportError> {
        let id = frame.id;
        let stream = self.map.receiving(id, &mut self.events)?;
        if let Some(receive) = stream.and_then(|stream| stream.receive.as_mut()) {
            receive.on_reset(frame, &mut self.window, &mut self.pool)?;
            if receive.wakes_reader() {
                self.events.push(StreamEvent::Readable(id));
            }
            self.settle(id);
        }
        Ok(())
    }

    /// Handles STOP_SENDING (RFC 9000, section 19.5).
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR`, `STREAM_LIMIT_ERROR`.
    pub(crate) fn on_stop_sending(
        &mut self,
        id: StreamId,
        code: u64,
    ) -> Result<(), TransportError> {
        let stream = self.map.sending(id, &mut self.events)?;
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            if send.stop(code, &mut self.pool) {
                self.events.push(StreamEvent::Stopped { id, code });
            }
            self.settle(id);
        }
        Ok(())
    }

    /// Handles MAX_DATA (RFC 9000, section 19.9).
    pub(crate) fn on_max_data(&mut self, limit: u64) {
        self.credit.raise(limit);
    }

    /// Handles MAX_STREAM_DATA (RFC 9000, section 19.10).
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR`, `STREAM_LIMIT_ERROR`.
    pub(crate) fn on_max_stream_data(
        &mut self,
        id: StreamId,
        limit: u64,
    ) -> Result<(), TransportError> {
        let stream = self.map.sending(id, &mut self.events)?;
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            send.credit.raise(limit);
            self.settle(id);
        }
        Ok(())
    }

    /// Handles MAX_STREAMS (RFC 9000, section 19.11).
    pub(crate) fn on_max_streams(&mut self, direction: Direction, limit: u64) {
        if self.map.numbers.raise(direction, limit) {
            self.events.push(StreamEvent::Available(direction));
        }
    }

    /// Handles STREAM_DATA_BLOCKED (RFC 9000, section 19.13). Limits follow the application's
    /// reads, so the stream is only checked, or opened.
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR`, `STREAM_LIMIT_ERROR`.
    pub(crate) fn on_stream_data_blocked(&mut self, id: StreamId) -> Result<(), TransportError> {
        self.map.receiving(id, &mut self.events)?;
        self.settle(id);
        Ok(())
    }

    /// Call it after a frame that may change a stream's data to send or end one of its halves.
    pub(super) fn settle(&mut self, id: StreamId) {
        let Some(stream) = self.map.streams.get_mut(id) else {
            return;
        };
        let closed = stream.drop_done(&mut self.pool);
        self.scheduler.update(id, stream);
        if closed {
            self.map.remove(id);
        }
    }
}
