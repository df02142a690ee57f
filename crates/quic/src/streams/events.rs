//! What the application should know.

use std::collections::VecDeque;

use crate::{Direction, StreamId};

/// Something happened to streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened streams of this kind: accept until there is none left.
    Opened(Direction),
    /// There is something to read, where a read was blocked before: data, the end, or a reset.
    Readable(StreamId),
    /// There is room to write, where a write was blocked before.
    Writable(StreamId),
    /// The peer has acknowledged all data and the end of the stream.
    Finished(StreamId),
    /// The peer wants no more data on the stream, which was reset with its code.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's reason.
        code: u64,
    },
    /// A stream of this kind can be opened, where the peer's limit was met before.
    Available(Direction),
}

/// Events that wait for the application.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<StreamEvent>,
    /// For which directions an [`StreamEvent::Opened`] stands in the queue.
    opened: [bool; 2],
}

impl Events {
    pub(super) fn push(&mut self, event: StreamEvent) {
        self.queue.push_back(event);
    }

    /// The peer opened a stream: one event stands for as many as come until it is taken.
    pub(super) fn push_opened(&mut self, direction: Direction) {
        if !std::mem::replace(&mut self.opened[direction as usize], true) {
            self.queue.push_back(StreamEvent::Opened(direction));
        }
    }

    pub(super) fn pop(&mut self) -> Option<StreamEvent> {
        let event = self.queue.pop_front()?;
        if let StreamEvent::Opened(direction) = event {
            self.opened[direction as usize] = false;
        }
        Some(event)
    }

    /// Drops what is about streams that are gone.
    pub(super) fn retain_general(&mut self) {
        self.queue
            .retain(|event| matches!(event, StreamEvent::Opened(_) | StreamEvent::Available(_)));
    }
}
