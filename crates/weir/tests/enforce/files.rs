//! Files that kernel TCP transfers while a cable changes.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::namespace::Namespace;

const CHUNK: u64 = 16_384;
/// The time that every transfer has for more bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Transfers of one file each, all at the same time. A file ends when the test is over.
pub(crate) struct Files {
    transfers: Vec<Transfer>,
    stop: Arc<AtomicBool>,
}

struct Transfer {
    progress: Arc<Progress>,
    /// The file's size, and what has arrived of it.
    sender: JoinHandle<u64>,
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
    /// Begins to send `count` files, each at this many bytes per second, from one namespace to an address in
    /// another.
    pub(crate) fn start(
        [from, to]: [&Namespace; 2],
        address: (Ipv4Addr, u16),
        (count, per_second): (u64, u64),
    ) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let listener = to.run(move || TcpListener::bind(address).unwrap());
        let transfers = (0..count).map(|file| {
            let outgoing = from.run(move || TcpStream::connect(address).unwrap());
            let (incoming, _) = listener.accept().unwrap();
            let progress = Arc::<Progress>::default();
            let (seen, stopped) = (progress.clone(), stop.clone());
            Transfer {
                progress,
                sender: std::thread::spawn(move || send(outgoing, file, per_second, &stopped)),
                receiver: std::thread::spawn(move || receive(incoming, file, &seen)),
            }
        });
        let transfers = transfers.collect();
        Self { transfers, stop }
    }

    /// Waits until each file has this many more bytes.
    pub(crate) fn wait_for_more(&self, bytes: u64) {
        let now = |it: &Transfer| it.progress.received.load(Ordering::Relaxed);
        let before: Vec<_> = self.transfers.iter().map(now).collect();
        let deadline = Instant::now() + PATIENCE;
        for (transfer, before) in self.transfers.iter().zip(before) {
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

    /// Ends the files, and waits until they are complete.
    ///
    /// # Panics
    /// A connection has failed, or a byte is wrong or missing.
    pub(crate) fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        for transfer in self.transfers {
            let size = transfer.sender.join().unwrap();
            assert_eq!(transfer.receiver.join().unwrap(), size);
        }
    }
}

/// Sends a file until it is to stop; returns its size.
fn send(mut to: TcpStream, file: u64, per_second: u64, stop: &AtomicBool) -> u64 {
    let pause = Duration::from_micros(CHUNK * 1_000_000 / per_second);
    let mut position = 0;
    while !stop.load(Ordering::Relaxed) {
        let chunk: Vec<u8> = (position..position + CHUNK)
            .map(|at| byte(file, at))
            .collect();
        to.write_all(&chunk).unwrap();
        position += CHUNK;
        sleep(pause);
    }
    position
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
