//! Captures the packets that pass measured ports, for a writer in another thread.
//!
//! The switch's thread copies the first bytes of each packet and sends the copies in batches. It never
//! waits for the receiver: packets beyond [`WAITING`] batches are dropped and counted.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use weir_enforce::offload::CutFrame;
use weir_enforce::segment::Segment;
use weir_results::capture::CapturedFrame;
use weir_units::{ByteSize, Duration, Time};

/// A batch is sent when it has this many bytes, or when its first packet is this old.
const BATCH: usize = 256 << 10;
const OLDEST: Duration = Duration::from_millis(50);
/// The number of batches that can wait for the receiver: 64 MB.
const WAITING: usize = 256;

/// The switch's end.
#[derive(Debug)]
pub struct CaptureSender {
    /// The number of bytes kept of each frame.
    snap: usize,
    batch: CaptureBatch,
    out: SyncSender<CaptureBatch>,
    /// Packets that were not captured.
    lost: u64,
}

/// The receiver's end.
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
    /// The index of its port among the measured ones.
    port: usize,
    /// The offset of its end in the batch's bytes.
    end: usize,
    /// The length of the whole frame.
    length: u32,
}

/// Returns both ends. The first `snap` bytes of each frame are kept.
pub fn capture_channel(snap: ByteSize) -> (CaptureSender, CaptureReceiver) {
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
    /// Copies a packet that has passed the measured port at this index, as a network card would have put
    /// it on the wire.
    pub(super) fn copy(&mut self, time: Time, port: usize, packet: &Segment) {
        let frame = packet.on_wire();
        self.batch.add(time, port, self.snap, &frame);
        if self.batch.bytes.len() >= BATCH {
            self.hand_on();
        }
    }

    /// Sends the batch if its first packet is old by `now`.
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

    /// Sends the rest; returns the number of packets that were not captured.
    pub(super) fn finish(mut self) -> u64 {
        self.hand_on();
        self.lost
    }
}

impl CaptureReceiver {
    /// Takes the batches captured since the last call.
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

    /// Returns the frames, each with the index of its port among the measured ones.
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
