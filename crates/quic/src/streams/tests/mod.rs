//! Two `Streams` and a channel between them that loses, reorders and duplicates.

mod buffers;
mod early_data;
mod interaction;
mod limits;
mod scheduling;
mod speed;
mod states;

use super::*;
use crate::frame::{self, Frame, Frames};
use crate::recovery::SentFrames;
use crate::{StreamId, TransportError};
use Direction::{Bidirectional, Unidirectional};

const CONFIG: StreamsConfig = StreamsConfig {
    max_data: 64 * 1024,
    stream_window: 16 * 1024,
    max_bidirectional: 8,
    max_unidirectional: 4,
    send_buffer: 32 * 1024,
};

/// Returns the limits that a side with `config` announces.
fn limits_of(config: &StreamsConfig) -> PeerLimits {
    PeerLimits {
        max_data: config.max_data,
        stream_data_bidi_local: config.stream_window,
        stream_data_bidi_remote: config.stream_window,
        stream_data_uni: config.stream_window,
        max_streams_bidi: config.max_bidirectional,
        max_streams_uni: config.max_unidirectional,
    }
}

/// A packet in flight.
#[derive(Clone, Debug)]
struct Packet {
    payload: Vec<u8>,
    sent: SentFrames,
}

/// A client (0) and a server (1).
struct Pair {
    sides: [Streams; 2],
}

impl Pair {
    fn new(config: StreamsConfig) -> Self {
        let mut sides = [Side::Client, Side::Server].map(|side| Streams::new(side, config));
        for streams in &mut sides {
            streams.set_peer_limits(&limits_of(&config));
        }
        Self { sides }
    }

    /// Returns a packet from `from` of at most `limit` bytes, if there is anything to send.
    fn send(&mut self, from: usize, limit: usize) -> Option<Packet> {
        let streams = &mut self.sides[from];
        let wants = streams.wants_to_send();
        let mut packet = Packet {
            payload: Vec::new(),
            sent: SentFrames::new(),
        };
        streams.fill(&mut packet.payload, limit, &mut packet.sent);
        assert!(packet.payload.len() <= limit);
        assert_eq!(!packet.payload.is_empty(), wants, "wants_to_send is exact");
        wants.then_some(packet)
    }

    /// Delivers a packet from `from` to the other side.
    fn deliver(&mut self, from: usize, packet: &Packet) -> Result<Received, TransportError> {
        receive(&mut self.sides[1 - from], &packet.payload)
    }

    fn ack(&mut self, from: usize, packet: &Packet) {
        for frame in &packet.sent {
            self.sides[from].on_acked(frame);
        }
    }

    fn lose(&mut self, from: usize, packet: &Packet) {
        for frame in &packet.sent {
            self.sides[from].on_lost(frame);
        }
    }

    /// Exchanges and acknowledges packets until neither side has anything to send.
    fn run(&mut self) {
        while let Some((from, packet)) =
            (0..2).find_map(|from| Some((from, self.send(from, 1200)?)))
        {
            assert_eq!(self.deliver(from, &packet), Ok(Received::Buffered));
            self.ack(from, &packet);
        }
    }

    fn events(&mut self, side: usize) -> Vec<StreamEvent> {
        std::iter::from_fn(|| self.sides[side].poll_event()).collect()
    }
}

/// Passes a packet's frames to `streams`.
fn receive(streams: &mut Streams, payload: &[u8]) -> Result<Received, TransportError> {
    for frame in Frames::new(payload) {
        match frame? {
            Frame::Stream(frame) => {
                if streams.on_stream(&frame)? == Received::Refused {
                    return Ok(Received::Refused);
                }
            }
            Frame::ResetStream(frame) => streams.on_reset_stream(&frame)?,
            Frame::StopSending { id, code } => streams.on_stop_sending(id, code)?,
            Frame::MaxData(limit) => streams.on_max_data(limit),
            Frame::MaxStreamData { id, limit } => streams.on_max_stream_data(id, limit)?,
            Frame::MaxStreams { direction, limit } => streams.on_max_streams(direction, limit),
            Frame::StreamDataBlocked { id, .. } => streams.on_stream_data_blocked(id)?,
            Frame::DataBlocked(_) | Frame::StreamsBlocked { .. } => {}
            other => panic!("{other:?} is no frame of streams"),
        }
    }
    Ok(Received::Buffered)
}

/// Returns the test byte at an offset of a stream.
fn pattern(id: StreamId, offset: u64) -> u8 {
    (offset ^ (offset >> 8) ^ (id.as_u64() * 31)) as u8
}

fn pattern_bytes(id: StreamId, offset: u64, length: usize) -> Vec<u8> {
    (offset..offset + length as u64)
        .map(|at| pattern(id, at))
        .collect()
}

/// Reads all available data.
fn read_all(streams: &mut Streams, id: StreamId) -> (Vec<u8>, Result<(), ReadError>) {
    let mut data = Vec::new();
    loop {
        match streams.read(id, usize::MAX) {
            Ok(Some(bytes)) => data.extend_from_slice(&bytes),
            Ok(None) => return (data, Ok(())),
            Err(error) => return (data, Err(error)),
        }
    }
}
