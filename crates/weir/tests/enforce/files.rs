//! Files that kernel TCP transfers while a cable changes.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::namespace::Namespace;

const CHUNK: u64 = 16_384;
/// The time that every transfer has for more bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Transfers of one file each, all at the same time.
pub(crate) struct Files {
    transfers: Vec<Transfer>,
    size: u64,
}

struct Transfer {
    progress: Arc<Progress>,
    sender: JoinHandle<()>,
    receiver: JoinHandle<u64>,
}

#[derive(Default)]
struct Progress {
    received: AtomicU64,
    /// The longest time between two reads, in microseconds.
    longest_gap: AtomicU64,
}

/// Returns the byte at `position` of a file.
fn byte(file: u64, position: u64) -> u8 {
    ((position ^ file << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Files {
    /// Begins to send `count` files of a size, each at this many bytes per second, from one namespace to an
    /// address in another.
    pub(crate) fn start(
        [from, to]: [&Namespace; 2],
        address: (Ipv4Addr, u16),
        (count, size, per_second): (u64, u64, u64),
    ) -> Self {
        let listener = to.run(move || TcpListener::bind(address).unwrap());
        let transfers = (0..count).map(|file| {
            let outgoing = from.run(move || TcpStream::connect(address).unwrap());
            let (incoming, _) = listener.accept().unwrap();
            let progress = Arc::<Progress>::default();
            let seen = progress.clone();
            Transfer {
                progress,
                sender: std::thread::spawn(move || send(outgoing, file, size, per_second)),
                receiver: std::thread::spawn(move || receive(incoming, file, &seen)),
            }
        });
        let transfers = transfers.collect();
        Self { transfers, size }
    }

    /// Waits until each file has this many more bytes.
    pub(crate) fn wait_for_more(&self, bytes: u64) {
        let now = |it: &Transfer| it.progress.received.load(Ordering::Relaxed);
        let before: Vec<_> = self.transfers.iter().map(now).collect();
        let deadline = Instant::now() + PATIENCE;
        for (transfer, before) in self.transfers.iter().zip(before) {
            assert!(before + bytes <= self.size, "the files are too small");
            while now(transfer) < before + bytes {
                let is_over = transfer.receiver.is_finished();
                assert!(!is_over && Instant::now() < deadline, "a transfer stands");
                sleep(Duration::from_millis(2));
            }
        }
    }

    /// Returns the longest time without data of any file since the last call.
    pub(crate) fn take_longest_gap(&self) -> Duration {
        let gaps = self.transfers.iter();
        let gaps = gaps.map(|it| it.progress.longest_gap.swap(0, Ordering::Relaxed));
        Duration::from_micros(gaps.max().unwrap_or(0))
    }

    /// Waits until all files are complete.
    ///
    /// # Panics
    /// A connection has failed, or a byte is wrong or missing.
    pub(crate) fn finish(self) {
        for transfer in self.transfers {
            transfer.sender.join().unwrap();
            assert_eq!(transfer.receiver.join().unwrap(), self.size);
        }
    }
}

fn send(mut to: TcpStream, file: u64, size: u64, per_second: u64) {
    let begun = Instant::now();
    let mut position = 0;
    while position < size {
        let due = Duration::from_micros(position * 1_000_000 / per_second);
        sleep(due.saturating_sub(begun.elapsed()));
        let next = (position + CHUNK).min(size);
        let chunk: Vec<u8> = (position..next).map(|at| byte(file, at)).collect();
        to.write_all(&chunk).unwrap();
        position = next;
    }
}

fn receive(mut from: TcpStream, file: u64, progress: &Progress) -> u64 {
    let (mut buffer, mut position) = (vec![0; 65_536], 0);
    let mut last = Instant::now();
    loop {
        let count = from.read(&mut buffer).unwrap();
        if count == 0 {
            return position;
        }
        let gap = last.elapsed().as_micros() as u64;
        progress.longest_gap.fetch_max(gap, Ordering::Relaxed);
        last = Instant::now();
        for received in &buffer[..count] {
            assert_eq!(*received, byte(file, position), "byte {position}");
            position += 1;
        }
        progress.received.store(position, Ordering::Relaxed);
    }
}
