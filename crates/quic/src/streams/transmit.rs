//! Writes frames into packets, and handles their ACK or loss.

use super::receive::ReceiveHalf;
use super::send::{SendHalf, Sendable};
use super::stream::Stream;
use super::{StreamEvent, Streams};
use crate::frame::{ResetStream, write};
use crate::recovery::{SentFrame, SentFrames};
use crate::{Direction, StreamId};

/// The largest control frame written here: a RESET_STREAM of four varints.
const CONTROL_SIZE: usize = 1 + 3 * 8;
/// The smallest STREAM frame: a type and an ID.
const MIN_FRAME: usize = 2;
/// Data is not cut into smaller parts to fill a packet.
const MIN_PART: u64 = 32;
const DIRECTIONS: [Direction; 2] = [Direction::Bidirectional, Direction::Unidirectional];

impl Streams {
    /// Whether there is any frame to send within the limits. Constant time.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.wants_control()
            || !self.scheduler.retransmissions.is_empty()
            || (!self.scheduler.fresh.is_empty() && self.credit.available() > 0)
    }

    /// Returns the bytes of stream data that could be sent now, lost and new.
    pub(crate) fn pending_bytes(&self) -> u64 {
        let fresh = self.scheduler.fresh_bytes.min(self.credit.available());
        self.scheduler.lost_bytes + fresh
    }

    /// Whether there is data to send and the peer's flow control blocks all of it.
    #[cfg(test)]
    pub(crate) fn send_limited(&self) -> bool {
        self.scheduler.unsent_bytes > 0 && self.pending_bytes() == 0
    }

    /// Appends frames to a packet up to `limit`: control frames, then lost data, then new data, by
    /// priority. Frames whose fate matters are recorded in `sent`. A STREAM frame that fills the
    /// packet has no length, so no frame may follow it.
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>, limit: usize, sent: &mut SentFrames) {
        if self.wants_control() {
            self.fill_connection_control(out, limit, sent);
            self.fill_stream_control(out, limit, sent);
        }
        self.fill_repairs(out, limit, sent);
        self.fill_fresh(out, limit, sent);
    }

    /// Handles the ACK of a packet with this frame.
    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream {
                id,
                offset,
                length,
                fin,
            } => self.on_data_acked(
                id,
                Sendable {
                    offset,
                    length: u64::from(length),
                    fin,
                },
            ),
            SentFrame::ResetStream { id } => {
                if let Some(send) = self.send_half(id) {
                    send.on_reset_acked();
                    self.settle(id);
                }
            }
            _ => {}
        }
    }

    /// Handles the loss of a packet with this frame.
    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream {
                id,
                offset,
                length,
                fin,
            } => {
                if let Some(send) = self.send_half(id) {
                    send.on_lost(Sendable {
                        offset,
                        length: u64::from(length),
                        fin,
                    });
                    self.settle(id);
                }
            }
            SentFrame::ResetStream { id } => {
                if let Some(send) = self.send_half(id) {
                    send.set_reset_due(true);
                    self.settle(id);
                }
            }
            SentFrame::StopSending { id } => self.with_receive(id, |half| half.set_stop_due(true)),
            SentFrame::MaxStreamData { id } => self.with_receive(id, |half| half.repeat_limit()),
            SentFrame::MaxData => self.window.repeat(),
            SentFrame::MaxStreams { direction } => self.map.numbers.repeat(direction),
            _ => {}
        }
    }

    fn send_half(&mut self, id: StreamId) -> Option<&mut SendHalf> {
        self.map.streams.get_mut(id)?.send.as_mut()
    }

    fn with_receive(&mut self, id: StreamId, act: impl FnOnce(&mut ReceiveHalf)) {
        if let Some(receive) = self
            .map
            .streams
            .get_mut(id)
            .and_then(|stream| stream.receive.as_mut())
        {
            act(receive);
            self.settle(id);
        }
    }

    fn on_data_acked(&mut self, id: StreamId, data: Sendable) {
        let Some(stream) = self.map.streams.get_mut(id) else {
            return;
        };
        let Some(send) = &mut stream.send else {
            return;
        };
        // In the common case an ACK does not change the demand.
        let affects_demand = data.fin || send.lost() > 0;
        send.on_acked(data, &mut self.pool);
        if let Some(event) = send.writable_event(id, self.config.send_buffer) {
            self.events.push(event);
        }
        let delivered = send.is_delivered();
        if affects_demand {
            self.scheduler.update(id, stream);
        }
        if delivered {
            self.events.push(StreamEvent::Finished(id));
            self.settle(id);
        }
    }

    #[inline]
    fn wants_control(&self) -> bool {
        !self.scheduler.control.is_empty()
            || self.window.update_due()
            || self.data_blocked_due()
            || self.map.numbers.has_due()
    }

    fn data_blocked_due(&self) -> bool {
        self.scheduler.fresh_bytes > 0 && self.credit.report_due()
    }

    fn fill_connection_control(&mut self, out: &mut Vec<u8>, limit: usize, sent: &mut SentFrames) {
        if self.window.update_due() && has_room(out, limit) {
            write::max_data(out, self.window.advertise());
            sent.push(SentFrame::MaxData);
        }
        if self.data_blocked_due() && has_room(out, limit) {
            write::data_blocked(out, self.credit.report());
        }
        for direction in DIRECTIONS {
            let numbers = &mut self.map.numbers;
            if numbers.update_due(direction) && has_room(out, limit) {
                write::max_streams(out, direction, numbers.advertise(direction));
                sent.push(SentFrame::MaxStreams { direction });
            }
            if numbers.report_due(direction) && has_room(out, limit) {
                write::streams_blocked(out, direction, numbers.report(direction));
            }
        }
    }

    fn fill_stream_control(&mut self, out: &mut Vec<u8>, limit: usize, sent: &mut SentFrames) {
        while let Some(&id) = self.scheduler.control.front() {
            let Some(stream) = self.map.streams.get_mut(id) else {
                debug_assert!(false, "{id} is queued and closed");
                self.scheduler.control.pop_front();
                continue;
            };
            let complete = put_control(id, stream, out, limit, sent);
            self.scheduler.update(id, stream);
            if !complete {
                return;
            }
        }
    }

    fn fill_repairs(&mut self, out: &mut Vec<u8>, limit: usize, sent: &mut SentFrames) {
        while out.len() + MIN_FRAME <= limit
            && let Some(id) = self.scheduler.retransmissions.front()
        {
            let Some(stream) = self.map.streams.get_mut(id) else {
                return;
            };
            let Some(send) = &mut stream.send else {
                return;
            };
            let Some(length) = send
                .retransmission()
                .and_then(|data| put_stream(id, send, data, out, limit, sent))
            else {
                return;
            };
            self.scheduler.update(id, stream);
            if stream.scheduled.retransmission {
                self.scheduler.retransmissions.advance_turn(length);
            }
        }
    }

    fn fill_fresh(&mut self, out: &mut Vec<u8>, limit: usize, sent: &mut SentFrames) {
        while out.len() + MIN_FRAME <= limit
            && let Some(id) = self.scheduler.fresh.front()
        {
            let Some(stream) = self.map.streams.get_mut(id) else {
                return;
            };
            let Some(send) = &mut stream.send else {
                return;
            };
            let Some(length) = send
                .fresh(self.credit.available())
                .and_then(|data| put_stream(id, send, data, out, limit, sent))
            else {
                return;
            };
            self.credit.spend(length);
            if self.scheduler.sent_part(stream, length) {
                self.scheduler.fresh.advance_turn(length);
            } else {
                self.scheduler.update(id, stream);
            }
        }
    }
}

fn has_room(out: &[u8], limit: usize) -> bool {
    limit.saturating_sub(out.len()) >= CONTROL_SIZE
}

/// Writes the stream's pending control frames; `false` if not all of them fit.
fn put_control(
    id: StreamId,
    stream: &mut Stream,
    out: &mut Vec<u8>,
    limit: usize,
    sent: &mut SentFrames,
) -> bool {
    if let Some(send) = &mut stream.send {
        if let Some((code, final_size)) = send.reset_due() {
            if !has_room(out, limit) {
                return false;
            }
            let frame = ResetStream {
                id,
                code,
                final_size,
            };
            write::reset_stream(out, &frame);
            sent.push(SentFrame::ResetStream { id });
            send.set_reset_due(false);
        }
        if send.report_due() {
            if !has_room(out, limit) {
                return false;
            }
            write::stream_data_blocked(out, id, send.credit.report());
        }
    }
    if let Some(receive) = &mut stream.receive {
        if let Some(code) = receive.stop_due() {
            if !has_room(out, limit) {
                return false;
            }
            write::stop_sending(out, id, code);
            sent.push(SentFrame::StopSending { id });
            receive.set_stop_due(false);
        }
        if receive.update_due() {
            if !has_room(out, limit) {
                return false;
            }
            write::max_stream_data(out, id, receive.window.advertise());
            sent.push(SentFrame::MaxStreamData { id });
        }
    }
    true
}

/// Writes as much of `data` in a STREAM frame as fits; returns how many bytes, or `None` if a frame
/// is not worthwhile.
fn put_stream(
    id: StreamId,
    send: &mut SendHalf,
    data: Sendable,
    out: &mut Vec<u8>,
    limit: usize,
    sent: &mut SentFrames,
) -> Option<u64> {
    let room = limit.checked_sub(out.len())?;
    let all_room = room.checked_sub(write::stream_header_size(id, data.offset, None))? as u64;
    let (length, explicit) = if data.length >= all_room {
        (all_room, false)
    } else {
        // The frame does not reach the end of the packet, so it needs a length.
        let header = write::stream_header_size(id, data.offset, Some(data.length as usize));
        (data.length.min(room.checked_sub(header)? as u64), true)
    };
    if length < data.length.min(MIN_PART) {
        return None;
    }
    let part = data.first(length);
    let explicit = explicit.then_some(length as usize);
    write::stream_header(out, id, part.offset, explicit, part.fin);
    send.send(part, out);
    sent.push(SentFrame::Stream {
        id,
        offset: part.offset,
        length: length as u32,
        fin: part.fin,
    });
    Some(length)
}
