//! Pools of reusable frame buffers.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_units::Duration;

use super::ReceivedFrame;
use crate::offload::SuperFrame;

/// A frame up to this length (MTU 9000 with headers) is copied to a buffer of this size, so that small
/// frames that wait for long do not each occupy a buffer of the largest size.
const SMALL: usize = 9216;
/// The number of buffers in use that are skipped before a new one is allocated.
const ATTEMPTS: usize = 4;

/// Two pools of frame buffers. Each user of a frame holds an `Arc` of it. The pool holds another one, and
/// reuses the buffer when its own is the last.
#[derive(Debug)]
pub struct FramePools {
    /// The buffer for the next frame.
    reading: SuperFrame,
    small: VecDeque<Arc<ReceivedFrame>>,
    large: VecDeque<Arc<ReceivedFrame>>,
    /// The number of frames kept.
    kept: u64,
}

impl Default for FramePools {
    fn default() -> Self {
        Self::new()
    }
}

impl FramePools {
    /// Creates a pool with no buffer but the one to read into.
    pub fn new() -> Self {
        Self {
            reading: SuperFrame::with_capacity(SuperFrame::LARGEST),
            small: VecDeque::new(),
            large: VecDeque::new(),
            kept: 0,
        }
    }

    /// Returns the frame to read into; its previous contents may be lost.
    pub fn reading(&mut self) -> &mut SuperFrame {
        &mut self.reading
    }

    /// Keeps the frame just read, as long as the result is held.
    pub fn keep(&mut self, unread: Duration) -> Arc<ReceivedFrame> {
        let number = self.kept;
        self.kept += 1;
        if self.reading.bytes().len() <= SMALL {
            let reading = &self.reading;
            take(&mut self.small, SMALL, |slot| {
                (slot.unread, slot.number) = (unread, number);
                slot.frame.copy_from(reading);
            })
        } else {
            let reading = &mut self.reading;
            take(&mut self.large, SuperFrame::LARGEST, |slot| {
                (slot.unread, slot.number) = (unread, number);
                std::mem::swap(&mut slot.frame, reading);
            })
        }
    }
}

/// Returns an unused buffer filled by `fill`. Frames leave approximately in the order of their arrival,
/// so the buffer that is unused longest is in front.
fn take(
    pool: &mut VecDeque<Arc<ReceivedFrame>>,
    capacity: usize,
    fill: impl FnOnce(&mut ReceivedFrame),
) -> Arc<ReceivedFrame> {
    for _ in 0..ATTEMPTS.min(pool.len()) {
        let Some(mut info) = pool.pop_front() else {
            break;
        };
        if let Some(unused) = Arc::get_mut(&mut info) {
            fill(unused);
            pool.push_back(Arc::clone(&info));
            return info;
        }
        pool.push_back(info);
    }
    let mut new = ReceivedFrame {
        frame: SuperFrame::with_capacity(capacity),
        unread: Duration::ZERO,
        number: 0,
    };
    fill(&mut new);
    let new = Arc::new(new);
    pool.push_back(Arc::clone(&new));
    new
}

#[cfg(test)]
mod tests {
    use crate::offload::VnetHeader;

    use super::*;

    /// Reads an IPv4 packet of this length.
    fn read(pool: &mut FramePools, length: usize) -> Arc<ReceivedFrame> {
        let frame = pool.reading();
        let all = VnetHeader::LENGTH + 14 + length;
        let buffer = frame.buffer_mut();
        buffer[..all].fill(0);
        buffer[22..24].copy_from_slice(&[8, 0]);
        let [high, low] = (length as u16).to_be_bytes();
        buffer[24..28].copy_from_slice(&[0x45, 0, high, low]);
        frame.parse(all).unwrap();
        pool.keep(Duration::ZERO)
    }

    #[test]
    fn unreferenced_buffers_are_reused() {
        let mut pool = FramePools::new();
        for length in [100, 20_000] {
            let first = read(&mut pool, length);
            let second = read(&mut pool, length);
            assert_eq!(first.frame.segment_length(0).bytes(), length as u64);
            assert!(!Arc::ptr_eq(&first, &second));
            drop(first);
            let third = read(&mut pool, length);
            let fourth = read(&mut pool, length);
            assert_eq!(third.frame.segment_length(0).bytes(), length as u64);
            drop((second, third, fourth));
        }
        assert_eq!((pool.small.len(), pool.large.len()), (3, 3));
        for _ in 0..100 {
            read(&mut pool, 100);
            read(&mut pool, 60_000);
        }
        assert_eq!((pool.small.len(), pool.large.len()), (3, 3));
    }
}
