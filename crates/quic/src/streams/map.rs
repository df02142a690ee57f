//! The open streams, by ID.

use super::events::Events;
use super::numbers::{MissingStream, StreamNumbers};
use super::receive::ReceiveHalf;
use super::send::SendHalf;
use super::stream::{SendDemand, Stream};
use super::{PeerLimits, StreamEvent};
use crate::stream_table::{Entry, StreamTable};
use crate::{Code, Direction, StreamId, TransportError};

/// The streams, their number limits, and the initial limits of new ones.
#[derive(Debug)]
pub(super) struct StreamMap {
    /// The streams that are not closed.
    pub(super) streams: StreamTable<Stream>,
    pub(super) numbers: StreamNumbers,
    initial: InitialLimits,
    /// The application error code for refused streams of the peer.
    pub(super) refusal_code: u64,
    /// The open streams that last as long as the connection.
    pub(super) lasting: Vec<StreamId>,
}

/// The initial limits of streams.
#[derive(Debug)]
struct InitialLimits {
    peer: PeerLimits,
    window: u64,
}

impl StreamMap {
    /// Creates an empty map; `window` is the receive window of each stream.
    pub(super) fn new(numbers: StreamNumbers, window: u64) -> Self {
        Self {
            streams: StreamTable::default(),
            numbers,
            initial: InitialLimits {
                peer: PeerLimits::default(),
                window,
            },
            refusal_code: 0,
            lasting: Vec::new(),
        }
    }

    /// Creates a stream if it does not exist: one of ours if `local`.
    pub(super) fn begin(&mut self, id: StreamId, local: bool) {
        let initial = &self.initial;
        self.streams
            .get_or_insert_with(id, || initial.stream(id, local));
    }

    /// Returns the stream if it is not closed and the application opened or accepted it.
    pub(super) fn known(&mut self, id: StreamId) -> Option<&mut Stream> {
        if self.numbers.is_known(id) {
            self.streams.get_mut(id)
        } else {
            None
        }
    }

    /// Returns the stream for a frame of its receiving half; `None` if it is closed. Creates a
    /// stream that the peer opens.
    ///
    /// # Errors
    /// `STREAM_STATE_ERROR` if there is no such half or stream, `STREAM_LIMIT_ERROR` if the peer
    /// may not open it.
    pub(super) fn receiving(
        &mut self,
        id: StreamId,
        events: &mut Events,
    ) -> Result<Option<&mut Stream>, TransportError> {
        if id.direction() == Direction::Unidirectional && self.numbers.is_local(id) {
            return Err(wrong_half(id, "only sends"));
        }
        self.find(id, events)
    }

    /// Returns the stream for a frame of its sending half, in the same way.
    ///
    /// # Errors
    /// As [`Self::receiving`].
    pub(super) fn sending(
        &mut self,
        id: StreamId,
        events: &mut Events,
    ) -> Result<Option<&mut Stream>, TransportError> {
        if id.direction() == Direction::Unidirectional && !self.numbers.is_local(id) {
            return Err(wrong_half(id, "only receives"));
        }
        self.find(id, events)
    }

    fn find(
        &mut self,
        id: StreamId,
        events: &mut Events,
    ) -> Result<Option<&mut Stream>, TransportError> {
        match self.streams.entry(id) {
            Entry::Found(found) => Ok(Some(found)),
            Entry::Missing(place) => {
                match self.numbers.admit(id)? {
                    MissingStream::Closed => return Ok(None),
                    MissingStream::Opened => {}
                    MissingStream::New if !self.numbers.refuses(id) => {
                        events.push_opened(id.direction());
                    }
                    MissingStream::New => {}
                }
                let mut stream = self.initial.stream(id, false);
                if self.numbers.refuses(id) {
                    stream.refuse(self.refusal_code);
                }
                Ok(Some(place.insert(stream)))
            }
        }
    }

    /// Removes a closed stream.
    pub(super) fn remove(&mut self, id: StreamId) {
        if self.streams.remove(id).is_some() {
            self.numbers.close(id);
            self.lasting.retain(|lasting| *lasting != id);
        }
    }

    /// Applies the peer's transport parameters, to open streams too.
    pub(super) fn set_peer_limits(&mut self, limits: &PeerLimits) {
        self.initial.peer = *limits;
        for (id, stream) in self.streams.iter_mut() {
            if let Some(send) = &mut stream.send {
                let local = self.numbers.is_local(id);
                send.credit
                    .raise(self.initial.send_limit(id.direction(), local));
            }
        }
    }

    /// Returns all streams, ordered by ID.
    pub(super) fn ids(&self) -> Vec<StreamId> {
        let mut ids: Vec<_> = self.streams.ids().collect();
        ids.sort_unstable();
        ids
    }

    /// Handles rejected early data: all streams are removed, and numbers restart. Returns events
    /// for waiting applications.
    pub(super) fn reject_early_data(&mut self) -> Vec<StreamEvent> {
        let mut wakes = Vec::new();
        for id in self.ids() {
            let Some(stream) = self.streams.remove(id) else {
                continue;
            };
            if stream.send.is_some_and(|send| send.blocked) {
                wakes.push(StreamEvent::Writable(id));
            }
            if stream.receive.is_some_and(|receive| receive.blocked) {
                wakes.push(StreamEvent::Readable(id));
            }
        }
        self.lasting.clear();
        self.numbers.reject_early_data();
        self.initial.peer = PeerLimits::default();
        wakes
    }
}

impl InitialLimits {
    fn stream(&self, id: StreamId, local: bool) -> Stream {
        let both = id.direction() == Direction::Bidirectional;
        let sends = both || local;
        let receives = both || !local;
        Stream {
            send: sends.then(|| SendHalf::new(self.send_limit(id.direction(), local))),
            receive: receives.then(|| ReceiveHalf::new(self.window)),
            priority: 0,
            scheduled: SendDemand::default(),
        }
    }

    /// The peer's parameters are named from its point of view: our streams are remote to it.
    const fn send_limit(&self, direction: Direction, local: bool) -> u64 {
        match (direction, local) {
            (Direction::Unidirectional, _) => self.peer.stream_data_uni,
            (Direction::Bidirectional, true) => self.peer.stream_data_bidi_remote,
            (Direction::Bidirectional, false) => self.peer.stream_data_bidi_local,
        }
    }
}

fn wrong_half(id: StreamId, why: &str) -> TransportError {
    TransportError::new(Code::STREAM_STATE_ERROR, format!("{id} {why}"))
}
