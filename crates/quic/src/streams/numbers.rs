//! Which streams there were, are and may be (RFC 9000, sections 2.1 and 4.6): numbers and limits.
//!
//! Streams of a kind are opened in the order of their numbers, so that a few counters tell the
//! state of any stream that is not in the map: nothing is kept of streams that are closed.

use crate::{Code, Direction, Side, StreamId, TransportError};

/// The largest number of streams of a kind, so that their IDs are varints (section 4.6).
const MAX_STREAMS: u64 = 1 << 60;

/// The counters for all four kinds of streams.
#[derive(Debug)]
pub(super) struct StreamNumbers {
    side: Side,
    local: [Local; 2],
    remote: [Remote; 2],
}

/// Streams that this side opens.
#[derive(Clone, Debug, Default)]
struct Local {
    opened: u64,
    limit: u64,
    reported: Option<u64>,
    /// The application met the limit.
    waiting: bool,
    /// How many streams were opened before early data were rejected.
    rejected: u64,
}

/// Streams that the peer opens.
#[derive(Clone, Debug)]
struct Remote {
    /// How many may be open at once.
    concurrent: u64,
    advertised: u64,
    repeat: bool,
    opened: u64,
    accepted: u64,
    closed: u64,
}

/// What a stream is that is not in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingStream {
    /// It was closed.
    Closed,
    /// The peer has opened it, with an earlier frame for a higher number.
    Opened,
    /// The peer opens it now.
    New,
}

impl StreamNumbers {
    /// Nothing opened; the peer may open as many as stated and this side none yet.
    pub(super) fn new(side: Side, max_bidirectional: u64, max_unidirectional: u64) -> Self {
        let remote = [max_bidirectional, max_unidirectional].map(|concurrent| {
            let concurrent = concurrent.min(MAX_STREAMS);
            Remote {
                concurrent,
                advertised: concurrent,
                repeat: false,
                opened: 0,
                accepted: 0,
                closed: 0,
            }
        });
        Self {
            side,
            local: Default::default(),
            remote,
        }
    }

    /// Whether this side opened the stream, or would.
    pub(super) fn is_local(&self, id: StreamId) -> bool {
        id.initiator() == self.side
    }

    /// The next stream of this side's, unless the peer's limit is reached.
    pub(super) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let local = &mut self.local[direction as usize];
        if local.opened >= local.limit {
            local.waiting = true;
            return None;
        }
        local.opened += 1;
        Some(StreamId::new(self.side, direction, local.opened - 1))
    }

    /// The next stream that the peer opened and the application has not taken.
    pub(super) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let remote = &mut self.remote[direction as usize];
        if remote.accepted == remote.opened {
            return None;
        }
        remote.accepted += 1;
        Some(StreamId::new(
            self.side.other(),
            direction,
            remote.accepted - 1,
        ))
    }

    /// Whether the application knows of the stream: it opened or accepted it.
    pub(super) fn is_known(&self, id: StreamId) -> bool {
        let direction = id.direction() as usize;
        let known = if self.is_local(id) {
            self.local[direction].opened
        } else {
            self.remote[direction].accepted
        };
        id.index() < known
    }

    /// Whether the stream was opened with early data that the server rejected.
    pub(super) fn is_rejected(&self, id: StreamId) -> bool {
        let local = &self.local[id.direction() as usize];
        self.is_local(id) && (local.opened..local.rejected).contains(&id.index())
    }

    /// A frame came for a stream that is not in the map: what is it?
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR` where this side would have to open the stream first,
    /// `STREAM_LIMIT_ERROR` where the peer may not open it.
    pub(super) fn admit(&mut self, id: StreamId) -> Result<MissingStream, TransportError> {
        let direction = id.direction() as usize;
        if self.is_local(id) {
            return if id.index() < self.local[direction].opened {
                Ok(MissingStream::Closed)
            } else {
                Err(TransportError::new(
                    Code::STREAM_STATE_ERROR,
                    format!("{id} was not opened"),
                ))
            };
        }
        let remote = &mut self.remote[direction];
        if id.index() >= remote.advertised {
            return Err(TransportError::new(
                Code::STREAM_LIMIT_ERROR,
                format!("{id} is beyond the limit of {}", remote.advertised),
            ));
        }
        if id.index() < remote.accepted {
            return Ok(MissingStream::Closed);
        }
        if id.index() < remote.opened {
            return Ok(MissingStream::Opened);
        }
        remote.opened = id.index() + 1;
        Ok(MissingStream::New)
    }

    /// A stream is closed on both halves.
    pub(super) fn close(&mut self, id: StreamId) {
        if !self.is_local(id) {
            self.remote[id.direction() as usize].closed += 1;
        }
    }

    /// The peer's limit; `true` where the application waits for it. It never falls.
    pub(super) fn raise(&mut self, direction: Direction, limit: u64) -> bool {
        let local = &mut self.local[direction as usize];
        local.limit = local.limit.max(limit.min(MAX_STREAMS));
        local.waiting && local.opened < local.limit && std::mem::take(&mut local.waiting)
    }

    /// Whether the peer should be told a new limit: a quarter of the streams that it may have has
    /// been closed, or the last limit was lost.
    pub(super) fn update_due(&self, direction: Direction) -> bool {
        let remote = &self.remote[direction as usize];
        remote.repeat || remote.next_limit() - remote.advertised >= (remote.concurrent / 4).max(1)
    }

    /// The new limit to be told; it holds from now on.
    pub(super) fn advertise(&mut self, direction: Direction) -> u64 {
        let remote = &mut self.remote[direction as usize];
        remote.repeat = false;
        remote.advertised = remote.next_limit();
        remote.advertised
    }

    /// The packet with the last limit was lost.
    pub(super) fn repeat(&mut self, direction: Direction) {
        self.remote[direction as usize].repeat = true;
    }

    /// Whether the peer should hear that its limit keeps the application from opening a stream.
    pub(super) fn report_due(&self, direction: Direction) -> bool {
        let local = &self.local[direction as usize];
        local.waiting && local.reported != Some(local.limit)
    }

    /// The limit to be reported; it counts as reported from now on.
    pub(super) fn report(&mut self, direction: Direction) -> u64 {
        let local = &mut self.local[direction as usize];
        local.reported = Some(local.limit);
        local.limit
    }

    /// The server rejected early data: streams are opened anew, and limits are not known yet.
    pub(super) fn reject_early_data(&mut self) {
        for local in &mut self.local {
            *local = Local {
                rejected: local.opened.max(local.rejected),
                waiting: local.waiting,
                ..Local::default()
            };
        }
    }
}

impl Remote {
    fn next_limit(&self) -> u64 {
        (self.closed + self.concurrent).min(MAX_STREAMS)
    }
}
