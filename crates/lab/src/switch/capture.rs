//! Copies of the packets that pass measured ports, for whoever writes them down.
//!
//! The switch's thread copies what is wanted of each packet and hands copies on in batches; it never
//! waits for who takes them. What would be more than [`WAITING`] batches is counted instead.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use weir_enforce::offload::CutFrame;
use weir_enforce::segment::Segment;
use weir_results::capture::CapturedFrame;
use weir_units::{ByteSize, Duration, Time};

/// A batch is handed on when it has so many bytes, or its first packet is so old.
const BATCH: usize = 256 << 10;
const OLDEST: Duration = Duration::from_millis(50);
/// How many batches may wait to be taken: 64 MB.
const WAITING: usize = 256;

/// The switch's end.
#[derive(Debug)]
pub struct CaptureSender {
    /// How much of each frame is kept.
    snap: usize,
    batch: CaptureBatch,
    out: SyncSender<CaptureBatch>,
    /// Packets that nobody got.
    lost: u64,
}

/// The other end.
#[derive(Debug)]
pub struct CaptureReceiver(Receiver<CaptureBatch>);

/// Copies of frames, in the order in which they passed.
#[derive(Debug, Default)]
pub struct CaptureBatch {
    bytes: Vec<u8>,
    copies: Vec<CapturedCopy>,
}

#[derive(Debug)]
struct CapturedCopy {
    time: Time,
    /// The position of its port among the measured ones.
    port: usize,
    /// Where it ends in the batch's bytes.
    end: usize,
    /// The whole frame's length.
    length: u32,
}

/// Both ends. Of each frame the first `snap` bytes are kept.
pub fn copies(snap: ByteSize) -> (CaptureSender, CaptureReceiver) {
    let (out, taken) = sync_channel(WAITING);
    let copier = CaptureSender {
        snap: snap.as_usize(),
        batch: CaptureBatch::default(),
        out,
        lost: 0,
    };
    (copier, CaptureReceiver(taken))
}

impl CaptureSender {
    /// A packet has passed the measured port at this position: it is copied as a network card would have
    /// put it on the wire.
    pub(super) fn copy(&mut self, time: Time, port: usize, packet: &Segment) {
        let frame = packet.on_wire();
        self.batch.add(time, port, self.snap, &frame);
        if self.batch.bytes.len() >= BATCH {
            self.hand_on();
        }
    }

    /// Hands on what has waited for long by `now`.
    pub(super) fn hand_on_old(&mut self, now: Time) {
        let first = self.batch.copies.first();
        if first.is_some_and(|first| now.since(first.time) >= OLDEST) {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let count = batch.copies.len() as u64;
        if self.out.try_send(batch).is_err() {
            self.lost += count;
        }
    }

    /// Hands on the rest; tells how many packets nobody got.
    pub(super) fn finish(mut self) -> u64 {
        self.hand_on();
        self.lost
    }
}

impl CaptureReceiver {
    /// What has been copied since this was last asked.
    pub fn take(&self) -> impl Iterator<Item = CaptureBatch> {
        self.0.try_iter()
    }
}

impl CaptureBatch {
    fn add(&mut self, time: Time, port: usize, snap: usize, frame: &CutFrame<'_>) {
        let (headers, payload) = (frame.ethernet(), frame.payload());
        let kept = headers.len().min(snap);
        self.bytes.extend_from_slice(&headers[..kept]);
        let kept = payload.len().min(snap - kept);
        self.bytes.extend_from_slice(&payload[..kept]);
        self.copies.push(CapturedCopy {
            time,
            port,
            end: self.bytes.len(),
            // IP packets are shorter than 2^32 bytes.
            length: (headers.len() + payload.len()) as u32,
        });
    }

    /// The frames, each with the position of its port among the measured ones.
    pub fn frames(&self) -> impl Iterator<Item = (usize, CapturedFrame<'_>)> {
        let begins = std::iter::once(0).chain(self.copies.iter().map(|copy| copy.end));
        self.copies.iter().zip(begins).map(|(copy, begin)| {
            let frame = CapturedFrame {
                time: copy.time,
                bytes: self.bytes.get(begin..copy.end).unwrap_or_default(),
                length: copy.length,
            };
            (copy.port, frame)
        })
    }
}
