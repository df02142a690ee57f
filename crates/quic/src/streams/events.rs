//! Stream events for the application.

use crate::inline_queue::InlineQueue;
use crate::{Direction, StreamId};

/// An event of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened streams of this kind: accept until there is none left.
    Opened(Direction),
    /// A blocked read can continue: there is data, the end, or a reset.
    Readable(StreamId),
    /// A blocked write can continue.
    Writable(StreamId),
    /// The peer has acknowledged all data and the end of the stream.
    Finished(StreamId),
    /// The peer stopped the stream, which was reset with its code.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: u64,
    },
    /// A stream of this kind can be opened again after the peer's limit was reached.
    Available(Direction),
}

/// Events waiting for the application.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: InlineQueue<StreamEvent>,
    /// The directions with an [`StreamEvent::Opened`] in the queue.
    opened: [bool; 2],
}

impl Events {
    pub(super) fn push(&mut self, event: StreamEvent) {
        self.queue.push_back(event);
    }

    /// Adds the event of a stream that the peer opened; one event covers all streams until it is
    /// taken.
    pub(super) fn push_opened(&mut self, direction: Direction) {
        if !std::mem::replace(&mut self.opened[direction as usize], true) {
            self.queue.push_back(StreamEvent::Opened(direction));
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<StreamEvent> {
        let event = self.queue.pop_front()?;
        if let StreamEvent::Opened(direction) = event {
            self.opened[direction as usize] = false;
        }
        Some(event)
    }

    /// Drops the events of streams that no longer exist.
    pub(super) fn retain_general(&mut self) {
        self.queue
            .retain(|event| matches!(event, StreamEvent::Opened(_) | StreamEvent::Available(_)));
    }
}
