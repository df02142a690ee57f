//! DATAGRAM frames (RFC 9221): messages that are congestion-controlled and acknowledged, but
//! neither ordered nor retransmitted.
//!
//! Both queues are bounded and drop the oldest message for a new one. If not all messages arrive in
//! time, the newest are worth most, and neither the sending application nor the peer has to wait.
//! Dropped messages are counted.

use std::collections::VecDeque;

use bytes::Bytes;
use weir_units::ByteSize;

use super::{Connection, Event};
use crate::config::DatagramConfig;
use crate::frame::write;
use crate::{Code, Level, TransportError};

/// The overhead counted per message, which bounds empty ones too.
const OVERHEAD: usize = 64;
/// The short header without the connection ID: a first byte and a packet number of any length.
const SHORT_HEADER: usize = 1 + 4;

/// Why a datagram cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendDatagramError {
    /// Datagrams are switched off here: see [`TransportConfig::datagrams`].
    ///
    /// [`TransportConfig::datagrams`]: crate::TransportConfig::datagrams
    #[error("datagrams are switched off: set `datagrams` in the transport configuration")]
    Disabled,
    /// The peer takes no datagrams.
    #[error("the peer takes no datagrams")]
    UnsupportedByPeer,
    /// It is larger than a packet can carry or the peer accepts.
    #[error("a datagram of {size} bytes is too large: {max} bytes fit now")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The current [`Connection::max_datagram_size`], in bytes.
        max: usize,
    },
    /// The handshake has not reached the point where the peer's limit is known.
    #[error("the handshake is not complete")]
    NotConnected,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

/// Counters of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
    /// Dropped before sending: replaced by newer ones, or too large after the packet size shrank.
    pub dropped_before_sending: u64,
    /// Received, but replaced by newer ones before they were read.
    pub dropped_before_reading: u64,
}

/// The queues of both directions.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    config: Option<DatagramConfig>,
    outgoing: Queue,
    incoming: Queue,
    pub(super) stats: DatagramStats,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Bytes>,
    /// The bytes of all messages.
    bytes: usize,
}

impl Queue {
    /// Adds a message and drops old ones until at most `limit` bytes remain, or only the new one.
    /// Returns how many were dropped.
    fn push(&mut self, message: Bytes, limit: ByteSize) -> u64 {
        self.bytes += message.len();
        self.messages.push_back(message);
        let mut forgotten = 0;
        while self.messages.len() > 1 && self.kept() > limit.bytes() {
            self.pop();
            forgotten += 1;
        }
        forgotten
    }

    fn kept(&self) -> u64 {
        (self.bytes + self.messages.len() * OVERHEAD) as u64
    }

    fn pop(&mut self) -> Option<Bytes> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }
}

impl Datagrams {
    pub(super) fn new(config: Option<DatagramConfig>) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Returns the bytes waiting to be sent.
    pub(super) fn pending_bytes(&self) -> u64 {
        self.outgoing.bytes as u64
    }

    /// Whether any message is waiting to be sent.
    pub(super) fn wants_to_send(&self) -> bool {
        !self.outgoing.messages.is_empty()
    }

    fn send(&mut self, config: &DatagramConfig, message: Bytes) {
        self.stats.dropped_before_sending += self.outgoing.push(message, config.send_buffer);
    }

    /// Writes the messages that fit a packet up to `limit`; `max` is the largest message that fits
    /// a whole packet.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, limit: usize, max: usize) {
        while let Some(message) = self.outgoing.messages.front() {
            let length = message.len();
            if length > max {
                self.stats.dropped_before_sending += 1;
            } else if out.len() + write::datagram_header_size(length) + length <= limit {
                write::datagram(out, message);
                self.stats.sent += 1;
            } else {
                break;
            }
            self.outgoing.pop();
        }
    }

    /// Queues a received DATAGRAM frame. Returns whether the queue was empty.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if our transport parameter does not allow it (RFC 9221, section 3).
    pub(super) fn on_received(&mut self, data: &[u8]) -> Result<bool, TransportError> {
        let violation = |reason| Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason));
        let Some(config) = &self.config else {
            return violation("DATAGRAM where none is taken");
        };
        // Its length may have been omitted: the type and the data are the minimum.
        if data.len() as u64 + 1 > config.max_frame_size.bytes() {
            return violation("DATAGRAM larger than max_datagram_frame_size");
        }
        let is_first = self.incoming.messages.is_empty();
        let message = Bytes::copy_from_slice(data);
        self.stats.received += 1;
        self.stats.dropped_before_reading += self.incoming.push(message, config.receive_buffer);
        Ok(is_first)
    }
}

impl Connection {
    /// Queues a datagram. It is sent once, before stream data, when congestion control allows it.
    /// If the send buffer is full, the oldest datagrams in it are dropped.
    ///
    /// # Errors
    /// [`SendDatagramError`]; then nothing is queued.
    pub fn send_datagram(&mut self, data: Bytes) -> Result<(), SendDatagramError> {
        let config = self.config.datagrams.ok_or(SendDatagramError::Disabled)?;
        if self.is_closed() {
            return Err(SendDatagramError::Closed);
        }
        if !self.peer_known {
            return Err(SendDatagramError::NotConnected);
        }
        let max = self
            .max_datagram_size()
            .ok_or(SendDatagramError::UnsupportedByPeer)?;
        if data.len() > max {
            let size = data.len();
            return Err(SendDatagramError::TooLarge { size, max });
        }
        self.datagrams.send(&config, data);
        Ok(())
    }

    /// Returns the next received datagram, in order of arrival.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.incoming.pop()
    }

    /// Returns the largest datagram size now. `None` if the peer accepts none, if its limit is not
    /// known yet, or if datagrams are switched off. The value changes with the path's packet size.
    pub fn max_datagram_size(&self) -> Option<usize> {
        if self.config.datagrams.is_none() || !self.peer_known {
            return None;
        }
        let (_, key) = self.keys.local(Level::OneRtt, self.side)?;
        let header = SHORT_HEADER + self.remote_ids.current().len();
        let room = self.path().mtu.saturating_sub(header + key.tag_length());
        let peer = usize::try_from(self.peer.max_datagram_frame_size).unwrap_or(usize::MAX);
        largest_within(room.min(peer))
    }

    /// Writes the datagrams that fit the current packet.
    pub(super) fn fill_datagrams(&mut self, out: &mut Vec<u8>, limit: usize) {
        let max = self.max_datagram_size().unwrap_or(0);
        self.datagrams.fill(out, limit, max);
    }

    /// Handles a DATAGRAM frame.
    pub(super) fn on_datagram(&mut self, data: &[u8]) -> Result<(), TransportError> {
        if self.datagrams.on_received(data)? {
            self.events.push_back(Event::DatagramsReadable);
        }
        Ok(())
    }
}

/// Returns the most data in a DATAGRAM frame of `size` bytes with its length field.
fn largest_within(size: usize) -> Option<usize> {
    let most = size.checked_sub(write::datagram_header_size(0))?;
    (0..=most)
        .rev()
        .find(|length| write::datagram_header_size(*length) + length <= size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::{Frame, Frames};

    fn config(buffer: u64) -> DatagramConfig {
        DatagramConfig {
            max_frame_size: ByteSize::from_bytes(1_000),
            send_buffer: ByteSize::from_bytes(buffer),
            receive_buffer: ByteSize::from_bytes(buffer),
        }
    }

    fn datagrams(buffer: u64) -> (Datagrams, DatagramConfig) {
        let config = config(buffer);
        (Datagrams::new(Some(config)), config)
    }

    #[test]
    fn the_oldest_datagrams_are_dropped_when_full() {
        let (mut datagrams, config) = datagrams(3 * (100 + OVERHEAD as u64));
        for first in 0..5 {
            datagrams.send(&config, Bytes::from(vec![first; 100]));
            assert_eq!(datagrams.on_received(&[first; 100]), Ok(first == 0));
        }
        let left = std::iter::from_fn(|| datagrams.incoming.pop()).map(|message| message[0]);
        assert_eq!(left.collect::<Vec<_>>(), [2, 3, 4]);
        let stats = datagrams.stats;
        assert_eq!((stats.received, stats.dropped_before_reading), (5, 2));
        assert_eq!(stats.dropped_before_sending, 2);
        assert_eq!(datagrams.pending_bytes(), 300);
    }

    #[test]
    fn one_oversized_message_is_kept_and_empty_messages_are_bounded() {
        let (mut datagrams, _) = datagrams(200);
        assert_eq!(datagrams.on_received(&[1; 999]), Ok(true));
        assert_eq!(datagrams.incoming.messages.len(), 1);
        for _ in 0..100 {
            assert_eq!(datagrams.on_received(&[]), Ok(false));
        }
        assert_eq!(datagrams.incoming.messages.len(), 3);
        assert_eq!(datagrams.stats.dropped_before_reading, 98);
    }

    #[test]
    fn an_unsupported_or_oversized_datagram_is_a_protocol_violation() {
        let (mut datagrams, _) = datagrams(10_000);
        assert!(datagrams.on_received(&[0; 999]).is_ok());
        let too_large = datagrams.on_received(&[0; 1_000]).unwrap_err();
        assert_eq!(too_large.code, Code::PROTOCOL_VIOLATION);
        let off = Datagrams::new(None).on_received(&[]).unwrap_err();
        assert_eq!(off.code, Code::PROTOCOL_VIOLATION);
    }

    #[test]
    fn datagrams_too_large_for_a_smaller_packet_size_are_dropped() {
        let (mut datagrams, config) = datagrams(10_000);
        datagrams.send(&config, Bytes::from(vec![1; 900]));
        datagrams.send(&config, Bytes::from(vec![2; 500]));
        let mut out = Vec::new();
        datagrams.fill(&mut out, 400, 600);
        assert!(out.is_empty() && datagrams.wants_to_send());
        datagrams.fill(&mut out, 600, 600);
        assert_eq!(out.len(), 1 + 2 + 500);
        assert_eq!(datagrams.stats.dropped_before_sending, 1);
        assert!(!datagrams.wants_to_send());
    }

    #[test]
    fn the_largest_datagram_that_fits_is_computed() {
        assert_eq!(largest_within(0), None);
        assert_eq!(largest_within(1), None);
        for (size, length) in [(2, 0), (65, 63), (66, 63), (67, 64), (16_386, 16_383)] {
            assert_eq!(largest_within(size), Some(length), "{size}");
        }
    }

    proptest! {
        /// Compares with a list: messages come out in order, without the oldest, and the queued
        /// bytes stay within the limit.
        #[test]
        fn queues_are_bounded_and_keep_their_order(
            sizes in prop::collection::vec(0..300_usize, 1..80),
            limit in 1..3_000_u64,
            packet in 310..1_400_usize,
        ) {
            let (mut datagrams, config) = datagrams(limit);
            for (index, size) in sizes.iter().enumerate() {
                datagrams.send(&config, Bytes::from(vec![index as u8; *size]));
                let queue = &datagrams.outgoing;
                prop_assert!(queue.kept() <= limit || queue.messages.len() == 1);
                prop_assert_eq!(
                    queue.bytes,
                    queue.messages.iter().map(Bytes::len).sum::<usize>()
                );
            }
            let dropped = datagrams.stats.dropped_before_sending as usize;
            let mut expected = (dropped..sizes.len()).map(|index| vec![index as u8; sizes[index]]);
            while datagrams.wants_to_send() {
                let mut out = Vec::new();
                datagrams.fill(&mut out, packet, 300);
                prop_assert!(!out.is_empty() && out.len() <= packet);
                for frame in Frames::new(&out) {
                    let wanted = expected.next();
                    match frame.unwrap() {
                        Frame::Datagram(data) => prop_assert_eq!(Some(data), wanted.as_deref()),
                        other => panic!("{other:?}"),
                    }
                }
            }
            prop_assert_eq!(expected.next(), None);
        }
    }
}
