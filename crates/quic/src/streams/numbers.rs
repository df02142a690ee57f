//! Stream numbers and their limits (RFC 9000, sections 2.1 and 4.6).
//!
//! Streams of a kind are opened in the order of their numbers, so a few counters determine the
//! state of any stream that is not in the map: no state is kept for closed streams.

use crate::{Code, Direction, Side, StreamId, TransportError};

/// The most streams of a kind, so that their IDs are varints (section 4.6).
const MAX_STREAMS: u64 = 1 << 60;

/// The counters for all four kinds of streams.
#[derive(Debug)]
pub(super) struct StreamNumbers {
    side: Side,
    local: [Local; 2],
    remote: [Remote; 2],
    /// Bidirectional streams of the peer from this number on are refused; [`u64::MAX`] for none.
    serves: u64,
    /// Ours that the peer refuses, in the same way.
    peer_serves: u64,
    /// Whether any update or report is due: asked for with every packet.
    has_due: bool,
}

/// Streams that this side opens.
#[derive(Clone, Debug, Default)]
struct Local {
    opened: u64,
    limit: u64,
    reported: Option<u64>,
    /// The application reached the limit.
    waiting: bool,
    /// Streams opened before early data was rejected.
    rejected: u64,
}

/// Streams that the peer opens.
#[derive(Clone, Debug)]
struct Remote {
    /// The most streams open at the same time.
    concurrent: u64,
    advertised: u64,
    repeat: bool,
    opened: u64,
    accepted: u64,
    closed: u64,
}

/// The state of a stream that is not in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingStream {
    /// It was closed.
    Closed,
    /// The peer opened it implicitly, by a frame for a higher number.
    Opened,
    /// The peer opens it now.
    New,
}

impl StreamNumbers {
    /// Creates the counters; the peer may open the given numbers, and this side none yet.
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
        let mut numbers = Self {
            side,
            local: Default::default(),
            remote,
            serves: u64::MAX,
            peer_serves: u64::MAX,
            has_due: false,
        };
        numbers.note_due();
        numbers
    }

    /// Whether [`Self::update_due`] or [`Self::report_due`] holds for any direction.
    #[inline]
    pub(super) const fn has_due(&self) -> bool {
        self.has_due
    }

    /// Call it after every change of what is due.
    fn note_due(&mut self) {
        let directions = [Direction::Bidirectional, Direction::Unidirectional];
        self.has_due = directions
            .into_iter()
            .any(|direction| self.update_due(direction) || self.report_due(direction));
    }

    /// Whether this side opened the stream, or would open it.
    pub(super) fn is_local(&self, id: StreamId) -> bool {
        id.initiator() == self.side
    }

    /// Opens the next stream of this side, unless the peer's limit is reached or it goes away.
    pub(super) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        if self.peer_serves < u64::MAX {
            return None;
        }
        let local = &mut self.local[direction as usize];
        if local.opened >= local.limit {
            local.waiting = true;
            self.note_due();
            return None;
        }
        local.opened += 1;
        Some(StreamId::new(self.side, direction, local.opened - 1))
    }

    /// Returns the next stream that the peer opened and the application has not accepted.
    pub(super) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let served = self.served(direction);
        let remote = &mut self.remote[direction as usize];
        if remote.accepted >= served {
            return None;
        }
        remote.accepted += 1;
        Some(StreamId::new(
            self.side.other(),
            direction,
            remote.accepted - 1,
        ))
    }

    /// Returns the number of streams that the peer has opened and that are not refused.
    fn served(&self, direction: Direction) -> u64 {
        let opened = self.remote[direction as usize].opened;
        match direction {
            Direction::Bidirectional => opened.min(self.serves),
            Direction::Unidirectional => opened,
        }
    }

    /// Returns how many streams of the peer the application may accept now.
    pub(super) fn acceptable(&self, direction: Direction) -> u64 {
        let accepted = self.remote[direction as usize].accepted;
        self.served(direction).saturating_sub(accepted)
    }

    /// Whether the application has accepted all streams of the peer that are not refused.
    pub(super) fn are_all_accepted(&self) -> bool {
        let directions = [Direction::Bidirectional, Direction::Unidirectional];
        (directions.into_iter()).all(|direction| self.acceptable(direction) == 0)
    }

    /// Refuses bidirectional streams that the peer has not opened yet, or, if `unaccepted`, that the
    /// application has not accepted. Returns the number of those that are served.
    pub(super) fn refuse_new(&mut self, unaccepted: bool) -> u64 {
        let remote = &self.remote[Direction::Bidirectional as usize];
        let served = if unaccepted {
            remote.accepted
        } else {
            remote.opened
        };
        self.serves = self.serves.min(served);
        self.serves
    }

    /// Whether this side refuses a stream of the peer.
    pub(super) fn refuses(&self, id: StreamId) -> bool {
        id.index() >= self.serves
            && id.direction() == Direction::Bidirectional
            && !self.is_local(id)
    }

    /// Records that the peer serves only that many of our bidirectional streams.
    pub(super) fn limit_served(&mut self, streams: u64) {
        self.peer_serves = streams;
    }

    /// Whether the peer refuses a stream of ours.
    pub(super) fn is_refused(&self, id: StreamId) -> bool {
        id.index() >= self.peer_serves
            && id.direction() == Direction::Bidirectional
            && self.is_local(id)
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

    /// Returns the state of a stream that is not in the map, when a frame for it arrives.
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR` if this side would have to open the stream first, `STREAM_LIMIT_ERROR`
    /// if the peer may not open it.
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

    /// Records that both halves of a stream are closed.
    pub(super) fn close(&mut self, id: StreamId) {
        if !self.is_local(id) {
            self.remote[id.direction() as usize].closed += 1;
            self.note_due();
        }
    }

    /// Raises the peer's limit; `true` if the application waits for it. The limit never falls.
    pub(super) fn raise(&mut self, direction: Direction, limit: u64) -> bool {
        let local = &mut self.local[direction as usize];
        local.limit = local.limit.max(limit.min(MAX_STREAMS));
        let is_freed = local.opened < local.limit && std::mem::take(&mut local.waiting);
        self.note_due();
        is_freed
    }

    /// Whether to announce a new limit: a quarter of the allowed streams has been closed, or the
    /// last limit was lost.
    pub(super) fn update_due(&self, direction: Direction) -> bool {
        let remote = &self.remote[direction as usize];
        remote.repeat || remote.next_limit() - remote.advertised >= (remote.concurrent / 4).max(1)
    }

    /// Returns the new limit to announce; it holds from now on.
    pub(super) fn advertise(&mut self, direction: Direction) -> u64 {
        let remote = &mut self.remote[direction as usize];
        remote.repeat = false;
        let limit = remote.next_limit();
        remote.advertised = limit;
        self.note_due();
        limit
    }

    /// Records that the packet with the last limit was lost.
    pub(super) fn repeat(&mut self, direction: Direction) {
        self.remote[direction as usize].repeat = true;
        self.note_due();
    }

    /// Whether to report to the peer that its limit blocks the opening of a stream.
    pub(super) fn report_due(&self, direction: Direction) -> bool {
        let local = &self.local[direction as usize];
        local.waiting && local.reported != Some(local.limit)
    }

    /// Returns the limit to report; it counts as reported from now on.
    pub(super) fn report(&mut self, direction: Direction) -> u64 {
        let local = &mut self.local[direction as usize];
        let limit = local.limit;
        local.reported = Some(limit);
        self.note_due();
        limit
    }

    /// Handles rejected early data: numbers restart, and limits are unknown.
    pub(super) fn reject_early_data(&mut self) {
        for local in &mut self.local {
            *local = Local {
                rejected: local.opened.max(local.rejected),
                waiting: local.waiting,
                ..Local::default()
            };
        }
        self.note_due();
    }
}

impl Remote {
    fn next_limit(&self) -> u64 {
        (self.closed + self.concurrent).min(MAX_STREAMS)
    }
}
