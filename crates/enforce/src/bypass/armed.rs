//! The programs at both interfaces, and the words that they share with this process.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::{MapCore as _, Object, ObjectBuilder};
use weir_units::{Duration, Time};

use super::counts::BypassCounts;
use super::fast_path::{FastPath, forget_silent};
use super::leftover::{Leftover, word_of};
use super::pulse::{BEATS, INTERVAL, Pause, Pulse, monotonic};
use super::{Arming, BypassError, CABLE, PROGRAM, WORDS, Word, is_active, promiscuous};
use crate::bpf::loader::{check_capabilities, collect_log, refused};
use crate::bpf::mapped_words::MappedWords;
use crate::bpf::{BpfError, tcx};
use crate::namespace::NetworkNamespace;
use crate::port::PacketSocket;

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bypass.o"));

/// The filter of the packet sockets.
pub(super) const FILTER: &str = "weir_filter";

/// The capabilities for loading the programs, and for finding those of a process that has died. The second
/// includes CAP_BPF and CAP_PERFMON.
pub(super) const CAPABILITIES: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_SYS_ADMIN", 21)];

/// A bypass that is armed. Dropping it removes the programs, unless this thread panics.
#[derive(Debug)]
pub(crate) struct Bypass {
    cable: MappedWords,
    pulse: Pulse,
    ends: [u32; 2],
    /// The ends with the program.
    attached: Vec<u32>,
    program: OwnedFd,
    namespace: NetworkNamespace,
    pub(super) object: Object,
}

impl Bypass {
    /// Attaches the programs to the sockets' interfaces, in the place of those of a process that has died.
    /// If these forward, they do so until this process has beaten often enough, which this waits for. Until
    /// then nothing gets into the sockets' queues.
    ///
    /// The [fast path](Self::open_fast_path) has room for `fast_connections`.
    pub(crate) fn arm(
        sockets: [&PacketSocket; 2],
        fast_connections: u32,
    ) -> Result<(Self, Arming), BypassError> {
        check_capabilities(&CAPABILITIES)?;
        let ends = sockets.map(PacketSocket::interface);
        let [one, other] = ends.map(Leftover::find);
        let leftovers = [one?, other?];
        let mut bypass = Self::load(ends, fast_connections)?;
        let arming = bypass.prepare(&leftovers);
        bypass.take_sockets(sockets, arming)?;
        for (side, leftover) in leftovers.iter().enumerate() {
            bypass.attach(side, leftover.as_ref())?;
        }
        if arming == Arming::TookOver {
            for _ in 0..BEATS {
                std::thread::sleep(INTERVAL.into());
                bypass.beat(monotonic());
            }
        }
        bypass.beat(monotonic());
        Ok((bypass, arming))
    }

    pub(super) fn load(ends: [u32; 2], fast_connections: u32) -> Result<Self, BypassError> {
        collect_log();
        let mut open = ObjectBuilder::default()
            .open_memory(PROGRAMS)
            .map_err(refused)?;
        let forwarded = open.maps_mut().find(|map| map.name() == "forwarded");
        if let Some(mut forwarded) = forwarded {
            let entries = fast_connections.max(1);
            forwarded.set_max_entries(entries).map_err(refused)?;
        }
        let object = open.load().map_err(refused)?;
        let map = object.maps().find(|map| map.name() == CABLE);
        let map = map.ok_or(BpfError::Object { missing: CABLE })?;
        let cable = MappedWords::map(map.as_fd(), WORDS);
        let namespace = NetworkNamespace::of_this_thread();
        Ok(Self {
            cable: cable.map_err(BypassError::of("mapping a BPF map"))?,
            pulse: Pulse::new(monotonic()),
            ends,
            attached: Vec::new(),
            program: program(&object, PROGRAM)?,
            namespace: namespace.map_err(BypassError::of("opening /proc/thread-self/ns/net"))?,
            object,
        })
    }

    /// Fills the words in before the programs run.
    pub(super) fn prepare(&mut self, leftovers: &[Option<Leftover>; 2]) -> Arming {
        self.set(Word::Ends, word_of(self.ends));
        let now = monotonic().since(Time::ZERO).as_nanos();
        let joins_these = |leftover: &&Leftover| {
            let [one, other] = leftover.ends();
            [one, other] == self.ends || [other, one] == self.ends
        };
        let leftovers = leftovers.iter().flatten().filter(joins_these);
        let leftovers: Vec<_> = leftovers.collect();
        let [before, _] = leftovers.as_slice() else {
            self.set(Word::BeatAt, now);
            return Arming::Fresh;
        };
        for word in [Word::Times, Word::Since, Word::Frames] {
            self.set(word, before.word(word));
        }
        if !is_active(|word| before.word(word)) {
            // No frame has come since the process died.
            self.word(Word::Times).fetch_add(1, Ordering::Relaxed);
            self.set(Word::Since, now);
        }
        self.set(Word::IsBypassed, 1);
        self.set(Word::ResumesAt, BEATS);
        Arming::TookOver
    }

    fn take_sockets(
        &mut self,
        sockets: [&PacketSocket; 2],
        arming: Arming,
    ) -> Result<(), BypassError> {
        let filter = program(&self.object, FILTER)?;
        for socket in sockets {
            socket
                .set_filter(filter.as_fd())
                .map_err(BypassError::of("attaching a filter to a packet socket"))?;
            if arming == Arming::TookOver {
                // What came before the filter was forwarded by the other process's bypass.
                socket.discard();
            }
        }
        Ok(())
    }

    fn attach(&mut self, side: usize, leftover: Option<&Leftover>) -> Result<(), BypassError> {
        let Some(&end) = self.ends.get(side) else {
            return Ok(());
        };
        let was_set = leftover.is_some_and(Leftover::is_promiscuous);
        let has_set = promiscuous::set(end, true);
        if was_set || has_set.map_err(BypassError::of("setting promiscuous mode"))? {
            self.word(Word::Promiscuous)
                .fetch_or(1 << side, Ordering::Relaxed);
        }
        self.attached.push(end);
        let replaced = leftover.map(|leftover| leftover.program.as_fd());
        match tcx::attach(end, self.program.as_fd(), replaced) {
            Ok(()) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Err(BypassError::NoTcx),
            Err(error) => Err(BypassError::of("attaching a program to an interface")(
                error,
            )),
        }
    }

    /// Returns the time without a beat.
    pub(crate) fn pause(&self, now: Time) -> Pause {
        self.pulse.pause(now)
    }

    /// Returns the time until the next beat is due.
    pub(crate) fn until_next_beat(&self, now: Time) -> Duration {
        self.pulse.until_next(now)
    }

    /// Beats if it is time.
    pub(crate) fn beat(&mut self, now: Time) {
        if self.pulse.take_beat(now) {
            self.word(Word::Beats).fetch_add(1, Ordering::Relaxed);
            let nanos = now.since(Time::ZERO).as_nanos();
            self.word(Word::BeatAt).store(nanos, Ordering::Release);
        }
    }

    /// Returns what the programs have counted.
    pub(crate) fn counts(&self) -> BypassCounts {
        let read = |word| self.word(word).load(Ordering::Relaxed);
        let times = read(Word::Times);
        let since = Time::from_nanos(read(Word::Since));
        let now = monotonic();
        BypassCounts {
            times,
            frames: read(Word::Frames),
            last_ms_ago: (times > 0).then(|| now.since(since.min(now)).as_nanos() / 1_000_000),
            is_active: is_active(read),
        }
    }

    /// Has frames without TCP go straight across from now on, and the connections that are announced.
    pub(crate) fn open_fast_path(&self) -> Result<FastPath, BypassError> {
        let tables = FastPath::of(&self.object)?;
        self.set(Word::HasFastPath, 1);
        Ok(tables)
    }

    /// Forgets connections of the fast path that have been silent for too long.
    pub(crate) fn forget_silent(&mut self) -> Result<(), BypassError> {
        forget_silent(&mut self.object)
    }

    pub(super) fn set(&self, word: Word, value: u64) {
        self.word(word).store(value, Ordering::Relaxed);
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        static NOWHERE: AtomicU64 = AtomicU64::new(0);
        self.cable.words().get(word as usize).unwrap_or(&NOWHERE)
    }
}

/// Returns a descriptor of a loaded program.
fn program(object: &Object, name: &'static str) -> Result<OwnedFd, BypassError> {
    let found = object.progs().find(|program| program.name() == name);
    let found = found.ok_or(BpfError::Object { missing: name })?;
    let copy = found.as_fd().try_clone_to_owned();
    copy.map_err(BypassError::of("duplicating a file descriptor"))
}

impl Drop for Bypass {
    fn drop(&mut self) {
        // After a panic the frames pass without this process, as after a kill.
        if std::thread::panicking() {
            return;
        }
        let set = self.word(Word::Promiscuous).load(Ordering::Relaxed);
        let ends = self.ends.into_iter().enumerate();
        let attached = ends.filter(|(_, end)| self.attached.contains(end));
        let attached: Vec<_> = attached
            .map(|(side, end)| (end, set & 1 << side != 0))
            .collect();
        let program = self.program.as_fd();
        self.namespace.run(|| {
            for (end, is_promiscuous) in attached {
                // An interface that is gone has neither.
                let _ = tcx::detach(end, program);
                if is_promiscuous {
                    let _ = promiscuous::set(end, false);
                }
            }
        });
    }
}
