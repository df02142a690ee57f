//! Streams: their states, send and reassembly buffers, flow control and priorities.
//!
//! [`Streams`] holds all streams of a connection. The application opens, writes and reads. Methods
//! named after the peer's frames handle them, [`Streams::fill`] writes frames into packets, and
//! [`Streams::on_acked`] and [`Streams::on_lost`] handle their ACK or loss.
//!
//! | file | what it holds |
//! |---|---|
//! | `application` | the application's operations |
//! | `peer` | the peer's frames |
//! | `transmit` | writing frames into packets, and their ACK or loss |
//! | `map`, `numbers` | the open streams; stream numbers and their limits |
//! | `stream`, `send`, `receive` | a stream and the state machines of its halves |
//! | `send_buffer`, `receive_buffer`, `chunk` | the data |
//! | `flow` | flow control in both directions |
//! | `go_away` | the streams that are not served any more |
//! | `scheduler` | the order in which streams send |

mod application;
mod chunk;
mod error;
mod events;
mod flow;
mod go_away;
mod map;
mod numbers;
mod peer;
mod receive;
mod receive_buffer;
mod scheduler;
mod send;
mod send_buffer;
mod stream;
#[cfg(test)]
mod tests;
mod transmit;

pub use error::{ReadError, WriteError};
pub use events::StreamEvent;
pub use receive::Skipped;
pub(crate) use receive_buffer::Received;

use chunk::ChunkPool;
use events::Events;
use flow::{ReceiveWindow, SendCredit};
use map::StreamMap;
use numbers::StreamNumbers;
use scheduler::Scheduler;

use crate::{Direction, Side};

/// The limits of this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamsConfig {
    /// The receive window of the connection, in bytes.
    pub(crate) max_data: u64,
    /// The receive window of each stream, in bytes.
    pub(crate) stream_window: u64,
    /// The most bidirectional streams of the peer open at the same time.
    pub(crate) max_bidirectional: u64,
    /// The most unidirectional streams of the peer open at the same time.
    pub(crate) max_unidirectional: u64,
    /// The most bytes of a stream written and not acknowledged before writes block.
    pub(crate) send_buffer: u64,
}

/// The peer's initial limits: its transport parameters (RFC 9000, section 18.2), named from its
/// point of view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerLimits {
    /// `initial_max_data`.
    pub(crate) max_data: u64,
    /// `initial_max_stream_data_bidi_local`: for bidirectional streams that the peer opens.
    pub(crate) stream_data_bidi_local: u64,
    /// `initial_max_stream_data_bidi_remote`: for bidirectional streams that this side opens.
    pub(crate) stream_data_bidi_remote: u64,
    /// `initial_max_stream_data_uni`.
    pub(crate) stream_data_uni: u64,
    /// `initial_max_streams_bidi`.
    pub(crate) max_streams_bidi: u64,
    /// `initial_max_streams_uni`.
    pub(crate) max_streams_uni: u64,
}

/// All streams of a connection.
#[derive(Debug)]
pub(crate) struct Streams {
    config: StreamsConfig,
    map: StreamMap,
    scheduler: Scheduler,
    /// The peer's limit for our data, over all streams.
    credit: SendCredit,
    /// Our limit for the peer's data, over all streams.
    window: ReceiveWindow,
    pool: ChunkPool,
    events: Events,
}

impl Streams {
    /// Creates an empty state; the peer's limits are zero until they are known.
    pub(crate) fn new(side: Side, config: StreamsConfig) -> Self {
        let numbers = StreamNumbers::new(side, config.max_bidirectional, config.max_unidirectional);
        Self {
            config,
            map: StreamMap::new(numbers, config.stream_window),
            scheduler: Scheduler::default(),
            credit: SendCredit::default(),
            window: ReceiveWindow::new(config.max_data),
            pool: ChunkPool::default(),
            events: Events::default(),
        }
    }

    /// Applies the peer's limits, first the remembered ones for early data, then its own. Limits
    /// only rise here; that the peer must not reduce them (RFC 9000, section 7.4.1) is checked
    /// elsewhere.
    pub(crate) fn set_peer_limits(&mut self, limits: &PeerLimits) {
        self.credit.raise(limits.max_data);
        self.map.set_peer_limits(limits);
        for id in self.map.ids() {
            if let Some(stream) = self.map.streams.get_mut(id) {
                self.scheduler.update(id, stream);
            }
        }
        self.on_max_streams(Direction::Bidirectional, limits.max_streams_bidi);
        self.on_max_streams(Direction::Unidirectional, limits.max_streams_uni);
    }

    /// Handles rejected early data (RFC 9001, section 4.6.2): all streams are removed, numbers and
    /// flow control restart, and the peer's limits are unknown again. The IDs used so far return
    /// `EarlyDataRejected` until new streams take them. The caller must drop its records of packets
    /// with early data.
    pub(crate) fn reject_early_data(&mut self) {
        self.events.retain_general();
        for event in self.map.reject_early_data() {
            self.events.push(event);
        }
        self.scheduler = Scheduler::default();
        self.credit = SendCredit::default();
        self.window = ReceiveWindow::new(self.config.max_data);
        self.pool = ChunkPool::default();
    }

    /// Whether there is an event for the application.
    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns the next event for the application.
    pub(crate) fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop()
    }

    /// Returns the number of streams that are not closed.
    pub(crate) fn open_streams(&self) -> usize {
        self.map.streams.len()
    }

    /// Returns the number of streams that are not closed, without those that last as long as the
    /// connection.
    pub(crate) fn passing_streams(&self) -> usize {
        self.map.streams.len() - self.map.lasting.len()
    }

    /// Whether no stream is open.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.open_streams() == 0
    }
}
