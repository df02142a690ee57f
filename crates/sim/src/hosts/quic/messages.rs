//! The mapping of an application's messages to a connection's streams.

use std::collections::VecDeque;

use bytes::Bytes;
use weir_quic::{Connection, Direction, Event, StreamEvent, StreamId};
use weir_scenario::Workload;
use weir_units::ByteSize;

/// The content of all messages: no application reads it.
static NOTHING: [u8; 65_536] = [0; 65_536];

/// The mapping of messages to streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamLayout {
    /// All messages of a side on one unidirectional stream.
    OneStream,
    /// Each message on a unidirectional stream of its own.
    Messages,
    /// Each request on a bidirectional stream of its own, which carries the response too.
    Exchanges,
}

/// The messages of one end of a connection.
#[derive(Debug)]
pub(super) struct Messages {
    layout: StreamLayout,
    is_initiator: bool,
    outgoing: VecDeque<PendingMessage>,
    /// Streams with a request that has been read completely.
    unanswered: VecDeque<StreamId>,
    /// Streams of this end that it has ended, and whose data the peer has not acknowledged completely.
    pub(super) unacknowledged: u32,
    /// Bytes delivered to the application, in order within each stream.
    pub(super) delivered: u64,
}

/// A message that has not been written completely.
#[derive(Debug)]
struct PendingMessage {
    stream: Option<StreamId>,
    /// Bytes still to be written.
    left: u64,
    /// Whether the stream ends with it.
    ends: bool,
    /// Whether the stream's buffer was full when it was last written to.
    is_blocked: bool,
}

impl StreamLayout {
    /// Returns the layout for a workload.
    pub(super) fn of(workload: &Workload) -> Self {
        match workload {
            Workload::RequestResponse { .. } | Workload::Epochs { .. } => Self::Exchanges,
            Workload::Incast { .. } => Self::Messages,
            Workload::Bulk
            | Workload::Cbr { .. }
            | Workload::Transfer { .. }
            | Workload::Poisson { .. }
            | Workload::Trace { .. } => Self::OneStream,
        }
    }
}

impl Messages {
    pub(super) fn new(layout: StreamLayout, is_initiator: bool) -> Self {
        Self {
            layout,
            is_initiator,
            outgoing: VecDeque::new(),
            unanswered: VecDeque::new(),
            unacknowledged: 0,
            delivered: 0,
        }
    }

    /// Adds a message to send.
    pub(super) fn send(&mut self, size: ByteSize) {
        let continues = self.layout == StreamLayout::OneStream;
        match self.outgoing.back_mut().filter(|_| continues) {
            Some(last) => last.left = last.left.saturating_add(size.bytes()),
            None => self.outgoing.push_back(PendingMessage {
                stream: None,
                left: size.bytes(),
                ends: !continues,
                is_blocked: false,
            }),
        }
    }

    /// Ends the last stream: the application sends no more.
    pub(super) fn finish(&mut self) {
        if let Some(last) = self.outgoing.back_mut() {
            last.ends = true;
        }
    }

    /// Reads the data that the connection's event announces.
    pub(super) fn on_event(&mut self, connection: &mut Connection, event: &Event) {
        let Event::Stream(event) = event else {
            return;
        };
        match *event {
            StreamEvent::Opened(direction) => {
                while let Some(stream) = connection.accept(direction) {
                    self.read(connection, stream);
                }
            }
            StreamEvent::Readable(stream) => self.read(connection, stream),
            StreamEvent::Writable(stream) => {
                let blocked = self.outgoing.iter_mut();
                blocked
                    .filter(|message| message.stream == Some(stream))
                    .for_each(|message| message.is_blocked = false);
            }
            StreamEvent::Finished(_) => {
                self.unacknowledged = self.unacknowledged.saturating_sub(1);
            }
            StreamEvent::Stopped { .. } | StreamEvent::Available(_) => {}
        }
    }

    fn read(&mut self, connection: &mut Connection, stream: StreamId) {
        // A stream that was reset has nothing more to read.
        let Ok(skipped) = connection.skip(stream) else {
            return;
        };
        self.delivered += skipped.bytes;
        if skipped.has_ended && self.layout == StreamLayout::Exchanges && !self.is_initiator {
            self.unanswered.push_back(stream);
        }
    }

    /// Writes as much as the connection takes.
    pub(super) fn write(&mut self, connection: &mut Connection) {
        let mut slot = 0;
        while let Some(message) = self.outgoing.get(slot) {
            let Some(stream) = message.stream.or_else(|| self.next_stream(connection)) else {
                // Later messages have no streams either.
                return;
            };
            let message = &mut self.outgoing[slot];
            message.stream = Some(stream);
            if message.write(connection, stream) {
                self.unacknowledged += 1;
                self.outgoing.remove(slot);
            } else {
                slot += 1;
            }
        }
    }

    /// Returns a stream for the next message without one.
    fn next_stream(&mut self, connection: &mut Connection) -> Option<StreamId> {
        match (self.layout, self.is_initiator) {
            (StreamLayout::Exchanges, false) => self.unanswered.pop_front(),
            (StreamLayout::Exchanges, true) => {
                let stream = connection.open(Direction::Bidirectional)?;
                // A stream is announced as readable only after it was read from once.
                self.read(connection, stream);
                Some(stream)
            }
            (StreamLayout::OneStream | StreamLayout::Messages, _) => {
                connection.open(Direction::Unidirectional)
            }
        }
    }
}

impl PendingMessage {
    /// Writes as much as fits; returns whether the message is done.
    fn write(&mut self, connection: &mut Connection, stream: StreamId) -> bool {
        while self.left > 0 && !self.is_blocked {
            let length = self.left.min(NOTHING.len() as u64) as usize;
            let mut piece = Bytes::from_static(&NOTHING[..length]);
            match connection.write_bytes(stream, &mut piece) {
                Ok(written) => self.left -= written as u64,
                Err(weir_quic::WriteError::Blocked) => self.is_blocked = true,
                // The connection has ended, and so has the message.
                Err(_) => return true,
            }
        }
        if self.left > 0 || !self.ends {
            return false;
        }
        // This fails only if the connection has ended.
        let _ = connection.finish(stream);
        true
    }
}
