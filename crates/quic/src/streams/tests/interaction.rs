//! Random interaction of two applications over a bad channel: data always arrives once and in
//! order, and no application waits forever.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Open(usize, Direction),
    Write(usize, usize, usize),
    WriteBytes(usize, usize, usize),
    Finish(usize, usize),
    Reset(usize, usize),
    Stop(usize, usize),
    Priority(usize, usize, i32),
    Read(usize, usize, usize),
    Send(usize, usize),
    Fate(usize, usize, Fate),
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    ArrivesTwice,
    /// It arrives, but is declared lost.
    ArrivesUnnoticed,
    Lost,
}

fn op() -> impl Strategy<Value = Op> {
    let side = || 0..2usize;
    let pick = || 0..64usize;
    let direction = prop_oneof![Just(Bidirectional), Just(Unidirectional)];
    let fate = prop_oneof![
        4 => Just(Fate::Arrives),
        1 => Just(Fate::ArrivesTwice),
        1 => Just(Fate::ArrivesUnnoticed),
        2 => Just(Fate::Lost),
    ];
    prop_oneof![
        2 => (side(), direction).prop_map(|(side, direction)| Op::Open(side, direction)),
        6 => (side(), pick(), 0..6000usize).prop_map(|(side, id, n)| Op::Write(side, id, n)),
        3 => (side(), pick(), 0..6000usize).prop_map(|(side, id, n)| Op::WriteBytes(side, id, n)),
        2 => (side(), pick()).prop_map(|(side, id)| Op::Finish(side, id)),
        1 => (side(), pick()).prop_map(|(side, id)| Op::Reset(side, id)),
        1 => (side(), pick()).prop_map(|(side, id)| Op::Stop(side, id)),
        1 => (side(), pick(), -3..3i32).prop_map(|(side, id, p)| Op::Priority(side, id, p)),
        6 => (side(), pick(), 1..5000usize).prop_map(|(side, id, n)| Op::Read(side, id, n)),
        12 => (side(), 100..1500usize).prop_map(|(side, limit)| Op::Send(side, limit)),
        12 => (side(), pick(), fate).prop_map(|(side, at, fate)| Op::Fate(side, at, fate)),
    ]
}

/// An application's knowledge of its streams.
#[derive(Default)]
struct App {
    /// Streams that it opened or accepted.
    streams: Vec<StreamId>,
    /// Bytes written, until the stream was stopped or reset.
    written: BTreeMap<StreamId, u64>,
    finished: BTreeSet<StreamId>,
    /// Bytes read, until the end or an error.
    read: BTreeMap<StreamId, u64>,
    read_to_end: BTreeMap<StreamId, u64>,
    gave_up: BTreeSet<StreamId>,
    waits_to_read: BTreeSet<StreamId>,
    waits_to_write: BTreeSet<StreamId>,
}

struct World {
    pair: Pair,
    apps: [App; 2],
    channels: [Vec<Packet>; 2],
}

impl World {
    fn new() -> Self {
        Self {
            pair: Pair::new(StreamsConfig {
                max_data: 20_000,
                stream_window: 8_000,
                send_buffer: 10_000,
                ..CONFIG
            }),
            apps: Default::default(),
            channels: Default::default(),
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Open(side, direction) => {
                if let Some(id) = self.pair.sides[side].open(direction) {
                    self.apps[side].streams.push(id);
                }
            }
            Op::Write(side, pick, length) => self.with(side, pick, |world, id| {
                world.write(side, id, length, false);
            }),
            Op::WriteBytes(side, pick, length) => self.with(side, pick, |world, id| {
                world.write(side, id, length, true);
            }),
            Op::Finish(side, pick) => self.with(side, pick, |world, id| {
                if world.pair.sides[side].finish(id).is_ok() {
                    world.apps[side].finished.insert(id);
                }
            }),
            Op::Reset(side, pick) => self.with(side, pick, |world, id| {
                if world.pair.sides[side].reset(id, 1).is_ok() {
                    world.apps[side].waits_to_write.remove(&id);
                    world.apps[0].gave_up.insert(id);
                    world.apps[1].gave_up.insert(id);
                }
            }),
            Op::Stop(side, pick) => self.with(side, pick, |world, id| {
                if world.pair.sides[side].stop_sending(id, 2).is_ok() {
                    world.apps[side].waits_to_read.remove(&id);
                    world.apps[0].gave_up.insert(id);
                    world.apps[1].gave_up.insert(id);
                }
            }),
            Op::Priority(side, pick, priority) => self.with(side, pick, |world, id| {
                world.pair.sides[side].set_priority(id, priority);
            }),
            Op::Read(side, pick, max) => self.with(side, pick, |world, id| {
                world.read(side, id, max);
            }),
            Op::Send(side, limit) => {
                let streams = &self.pair.sides[side];
                // A packet of 100 bytes has room for any frame, but not for all frames.
                if streams.wants_to_send() {
                    self.channels[side].extend(self.pair.send(side, limit));
                }
            }
            Op::Fate(side, pick, fate) => {
                if !self.channels[side].is_empty() {
                    let index = pick % self.channels[side].len();
                    let packet = self.channels[side].remove(index);
                    self.fate(side, packet, fate);
                }
            }
        }
        self.check();
    }

    fn with(&mut self, side: usize, pick: usize, act: impl FnOnce(&mut Self, StreamId)) {
        let streams = &self.apps[side].streams;
        if !streams.is_empty() {
            let id = streams[pick % streams.len()];
            act(self, id);
        }
    }

    fn write(&mut self, side: usize, id: StreamId, length: usize, whole: bool) -> bool {
        let app = &mut self.apps[side];
        if app.waits_to_write.contains(&id) {
            return false;
        }
        let written = app.written.entry(id).or_default();
        let data = pattern_bytes(id, *written, length);
        let result = if whole {
            self.pair.sides[side].write_bytes(id, &mut Bytes::from(data))
        } else {
            self.pair.sides[side].write(id, &data)
        };
        match result {
            Ok(length) => *written += length as u64,
            Err(WriteError::Blocked) => {
                app.waits_to_write.insert(id);
            }
            Err(WriteError::Stopped(code)) => assert_eq!(code, 2),
            Err(WriteError::Closed) => {}
            Err(error @ (WriteError::EarlyDataRejected | WriteError::Refused)) => panic!("{error}"),
        }
        result.is_ok_and(|length| length > 0)
    }

    fn read(&mut self, side: usize, id: StreamId, max: usize) -> bool {
        let app = &mut self.apps[side];
        if app.waits_to_read.contains(&id) {
            return false;
        }
        let offset = app.read.entry(id).or_default();
        let result = if max.is_multiple_of(2) {
            self.pair.sides[side].read(id, max)
        } else {
            let mut out = vec![0; max];
            self.pair.sides[side].read_into(id, &mut out).map(|length| {
                length.map(|length| {
                    out.truncate(length);
                    Bytes::from(out)
                })
            })
        };
        match result {
            Ok(Some(bytes)) => {
                assert!(!bytes.is_empty() && bytes.len() <= max);
                assert_eq!(bytes, pattern_bytes(id, *offset, bytes.len()));
                *offset += bytes.len() as u64;
                return true;
            }
            Ok(None) => {
                app.read_to_end.insert(id, *offset);
                assert!(
                    self.apps[1 - side].finished.contains(&id),
                    "{id} was cut short"
                );
            }
            Err(ReadError::Blocked) => {
                app.waits_to_read.insert(id);
            }
            Err(ReadError::Reset(_)) => assert!(app.gave_up.contains(&id)),
            Err(ReadError::Closed) => {}
            Err(error @ (ReadError::EarlyDataRejected | ReadError::Refused)) => panic!("{error}"),
        }
        false
    }

    fn fate(&mut self, from: usize, packet: Packet, fate: Fate) {
        let times = match fate {
            Fate::Lost => 0,
            Fate::Arrives | Fate::ArrivesUnnoticed => 1,
            Fate::ArrivesTwice => 2,
        };
        for _ in 0..times {
            let received = self.pair.deliver(from, &packet);
            assert_eq!(
                received,
                Ok(Received::Buffered),
                "the peer keeps to the rules"
            );
        }
        match fate {
            Fate::Arrives | Fate::ArrivesTwice => self.pair.ack(from, &packet),
            Fate::ArrivesUnnoticed | Fate::Lost => self.pair.lose(from, &packet),
        }
    }

    fn take_events(&mut self) {
        for side in 0..2 {
            for event in self.pair.events(side) {
                let app = &mut self.apps[side];
                match event {
                    StreamEvent::Opened(direction) => {
                        let streams = &mut self.pair.sides[side];
                        app.streams
                            .extend(std::iter::from_fn(|| streams.accept(direction)));
                    }
                    StreamEvent::Readable(id) => assert!(app.waits_to_read.remove(&id)),
                    StreamEvent::Writable(id) => assert!(app.waits_to_write.remove(&id)),
                    StreamEvent::Finished(id) => assert!(app.finished.contains(&id)),
                    StreamEvent::Stopped { id, code } => {
                        assert_eq!(code, 2);
                        app.waits_to_write.remove(&id);
                    }
                    StreamEvent::Available(_) => {}
                }
            }
        }
    }

    fn check(&mut self) {
        self.take_events();
        for side in 0..2 {
            let (streams, peer) = (&self.pair.sides[side], &self.pair.sides[1 - side]);
            assert!(streams.window.unconsumed() <= 20_000, "memory is bounded");
            assert!(streams.window.received <= peer.credit.used);
            assert!(!streams.send_limited() || streams.pending_bytes() == 0);
        }
    }

    /// The channel becomes reliable, and the applications read all data.
    fn settle(&mut self) {
        loop {
            let mut progress = false;
            for side in 0..2 {
                while let Some(packet) = self.pair.send(side, 1200) {
                    self.channels[side].push(packet);
                }
                for packet in std::mem::take(&mut self.channels[side]) {
                    self.fate(side, packet, Fate::Arrives);
                    progress = true;
                }
            }
            self.take_events();
            for side in 0..2 {
                for id in self.apps[side].streams.clone() {
                    while self.read(side, id, 3000) {
                        progress = true;
                    }
                }
            }
            if !progress {
                return;
            }
        }
    }

    fn finish_all(&mut self) {
        for side in 0..2 {
            for id in self.apps[side].streams.clone() {
                let app = &mut self.apps[side];
                assert!(!app.waits_to_write.contains(&id), "{id} was never woken");
                if self.pair.sides[side].finish(id).is_ok() {
                    app.finished.insert(id);
                }
            }
        }
    }

    /// Finishes all open streams; every stream that was not abandoned must have arrived in full.
    fn finish_and_check(mut self) {
        self.settle();
        // A server learns of some streams only when the client finishes them.
        for _ in 0..2 {
            self.finish_all();
            self.settle();
        }
        for side in 0..2 {
            let (sender, reader) = (&self.apps[side], &self.apps[1 - side]);
            for id in sender
                .finished
                .iter()
                .filter(|id| !sender.gave_up.contains(id))
            {
                let written = sender.written.get(id).copied().unwrap_or(0);
                assert_eq!(reader.read_to_end.get(id), Some(&written), "{id}");
            }
            let streams = &self.pair.sides[side];
            assert!(streams.is_idle(), "{} streams left", streams.open_streams());
            assert!(!streams.wants_to_send());
            assert_eq!(streams.window.unconsumed(), 0);
            assert_eq!(
                streams.window.received,
                self.pair.sides[1 - side].credit.used
            );
            assert_eq!(streams.scheduler.unsent_bytes, 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn data_are_delivered_once_and_in_order(ops in prop::collection::vec(op(), 0..400)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
        }
        world.finish_and_check();
    }

    /// A peer may send any frames: errors, but no panic, and no more memory than its limits allow.
    #[test]
    fn random_frames_do_no_harm(
        frames in prop::collection::vec(
            (0..40u64, 0..20_000u64, 0..1000usize, any::<bool>(), 0..8u8),
            0..100,
        ),
    ) {
        let mut streams = Streams::new(Side::Server, CONFIG);
        let data = [0; 1000];
        for (id, number, length, fin, kind) in frames {
            let id = StreamId::from_wire(id);
            let ok = match kind {
                0 => streams.on_reset_stream(&frame::ResetStream {
                    id,
                    code: number,
                    final_size: number,
                }),
                1 => streams.on_stop_sending(id, number),
                2 => streams.on_max_stream_data(id, number),
                3 => {
                    streams.on_max_data(number);
                    Ok(())
                }
                4 => {
                    streams.on_max_streams(id.direction(), number);
                    Ok(())
                }
                _ => streams
                    .on_stream(&frame::Stream { id, offset: number, fin, data: &data[..length] })
                    .map(|_| ()),
            };
            // The connection would close at the first error; the state must stay consistent anyway.
            drop(ok);
            if let Some(id) = streams.accept(Bidirectional) {
                let _ = streams.read(id, length);
                let _ = streams.write(id, &data[..length]);
            }
            streams.fill(&mut Vec::new(), 300, &mut SentFrames::new());
            prop_assert!(streams.window.unconsumed() <= CONFIG.max_data);
        }
    }
}
