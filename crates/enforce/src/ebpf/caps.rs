//! The memory from which the programs read the limits of windows.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_tcon::Cap;
use weir_units::{Rate, Time};

use crate::bpf::mapped_words::MappedWords;

/// The caps of all slots: `struct cap` of `bpf/tables.h`.
#[derive(Debug)]
pub(super) struct Caps(MappedWords);

/// The words of one cap: the limit, the floor, the expiry; the rates of departures, of the window, and of the
/// socket, in bytes per second or zero; whether the socket is paced, which the kernel writes; padding.
const WORDS: usize = 8;

/// The highest rate that the programs calculate with: 800 Gbps.
const MOST: u64 = 100_000_000_000;

impl Caps {
    pub(super) fn map(map: BorrowedFd<'_>, slots: u32) -> io::Result<Self> {
        MappedWords::map(map, slots as usize * WORDS).map(Self)
    }

    /// Sets a cap that expires at a time of the monotonic clock.
    pub(super) fn set(&self, slot: u32, cap: Cap, until: Time) {
        if let Some(
            [
                allowed,
                floor,
                expires_at,
                rate,
                max_rate,
                socket_rate,
                _,
                _,
            ],
        ) = self.cap(slot)
        {
            rate.store(bytes_per_second(cap.rate), Ordering::Relaxed);
            max_rate.store(bytes_per_second(cap.max_rate), Ordering::Relaxed);
            socket_rate.store(bytes_per_second(cap.socket_rate), Ordering::Relaxed);
            allowed.store(cap.limit.allowed.bytes(), Ordering::Relaxed);
            floor.store(cap.limit.floor.bytes(), Ordering::Relaxed);
            expires_at.store(until.since(Time::ZERO).as_nanos(), Ordering::Release);
        }
    }

    /// Removes the cap.
    pub(super) fn clear(&self, slot: u32) {
        if let Some([_, _, expires_at, ..]) = self.cap(slot) {
            expires_at.store(0, Ordering::Release);
        }
    }

    fn cap(&self, slot: u32) -> Option<&[AtomicU64; WORDS]> {
        let first = slot as usize * WORDS;
        self.0.words().get(first..)?.first_chunk()
    }
}

/// Returns a rate in the programs' unit; zero is none.
fn bytes_per_second(rate: Option<Rate>) -> u64 {
    rate.map_or(0, |rate| (rate.bits_per_second() / 8).clamp(1, MOST))
}
