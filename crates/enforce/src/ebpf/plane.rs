//! The programs in the kernel, and the maps that they share with this process.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{
    MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, RingBuffer, RingBufferBuilder,
};
use weir_netlink::Client;
use weir_tcon::{Cap, FreeWindow, ReportSchedule};
use weir_units::{Duration, Time};

use super::Options;
use super::attachment::Attachment;
use super::caps::Caps;
use super::event::Event;
use super::socket_pacing::SocketPacing;
use crate::bpf::BpfError;
use crate::bpf::flow_key::KEY;
use crate::bpf::interface::{Interface, own_netns_cookie};
use crate::bpf::loader::{check_permission, collect_log, refused};
use crate::bpf::mapped_words::MappedWords;
use crate::bypass::Leftover;
use crate::claim::InterfaceClaim;
use crate::operation::{KernelCounts, Totals};

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/enforce.o"));

/// The offset of `active_at` in a value of the map `flows`: see `struct tracked` and `struct flow`.
const ACTIVE_AT: usize = 16 + 10 * 8;

/// The time that a reader waits for the first report.
const PATIENCE: Duration = Duration::from_millis(50);

/// `BPF_RB_NO_WAKEUP` and `BPF_RB_FORCE_WAKEUP` of linux/bpf.h. An event without flags wakes only a reader
/// that has read all before it.
const NO_WAKEUP: u64 = 1;
const FORCE_WAKEUP: u64 = 2;

/// The programs at some interfaces of this thread's network namespace. Dropping this removes them.
#[derive(Debug)]
pub struct DataPlane {
    // The attachments are dropped first, then the resources of the programs.
    attachments: Vec<(Interface, [Attachment; 2])>,
    /// Attached while a policy has highest rates, if the kernel allows it.
    sockets: Option<SocketPacing>,
    has_rates: bool,
    ring: Ring,
    events: Arc<Mutex<Vec<Event>>>,
    caps: Caps,
    settings: MappedWords,
    flows: MapHandle,
    slots: MapHandle,
    counters: MapHandle,
    schedule: ReportSchedule,
    /// Interfaces that hold segments back until their departure time.
    pacing: Vec<u32>,
    netlink: Option<Client>,
    _object: Object,
    _claims: Vec<InterfaceClaim>,
}

struct Ring(RingBuffer<'static>);

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ring")
    }
}

impl DataPlane {
    /// Loads the programs and attaches them to each of the interfaces, in both directions.
    ///
    /// # Errors
    /// See [`BpfError`]: an interface does not exist or carries no Ethernet frames, the process may not
    /// load programs, the kernel does not support them.
    pub fn attach(interfaces: &[String], options: &Options) -> Result<Self, BpfError> {
        let interfaces = interfaces.iter().map(|name| Interface::find(name));
        let interfaces: Vec<_> = interfaces.collect::<Result<_, _>>()?;
        check_permission()?;
        let claims = interfaces.iter().map(claim);
        let claims = claims.collect::<Result<_, _>>()?;
        collect_log();
        let object = load(options)?;
        let caps = Caps::map(map(&object, "caps")?.as_fd(), options.flows).map_err(mapping)?;
        let settings = map(&object, "settings")?;
        let settings = MappedWords::map(settings.as_fd(), 8).map_err(mapping)?;
        let slots = map(&object, "slots")?;
        for slot in 0..options.flows {
            push(&slots, slot).map_err(refused)?;
        }
        let events = Arc::default();
        let ring = listen(&map(&object, "events")?, &events)?;
        let mut plane = Self {
            attachments: Vec::new(),
            sockets: None,
            has_rates: false,
            ring,
            events,
            caps,
            settings,
            flows: map(&object, "flows")?,
            slots,
            counters: map(&object, "counters")?,
            schedule: ReportSchedule::new(0, 0, Duration::ZERO, options.reports_per_second),
            pacing: Vec::new(),
            // Without it no interface counts as pacing, and only windows are used.
            netlink: Client::open().ok(),
            _object: object,
            _claims: claims,
        };
        plane.set_schedule(plane.schedule);
        plane.attachments = (interfaces.into_iter())
            .map(|interface| {
                let places = Attachment::both(&plane._object, &interface, options.hook)?;
                Ok((interface, places))
            })
            .collect::<Result<_, BpfError>>()?;
        plane.look_for_pacing();
        Ok(plane)
    }

    /// Returns the name of an interface with programs.
    pub(super) fn interface(&self, index: u32) -> Option<&str> {
        let mut all = self.attachments.iter();
        let (interface, _) = all.find(|(interface, _)| interface.index == index)?;
        Some(&interface.name)
    }

    /// Returns whether this interface holds segments back until the departure time set by the program.
    pub(super) fn paces(&self, interface: u32) -> bool {
        self.pacing.contains(&interface)
    }

    fn look_for_pacing(&mut self) {
        let disciplines = self.netlink.as_mut().map(Client::disciplines);
        let disciplines = disciplines.and_then(Result::ok).unwrap_or_default();
        let indices = self
            .attachments
            .iter()
            .map(|(interface, _)| interface.index);
        self.pacing = indices
            .filter(|index| holds_back(&disciplines, *index))
            .collect();
    }

    /// Removes interfaces that have disappeared, and checks which of the others pace; returns the names
    /// of the removed ones.
    pub(super) fn take_gone(&mut self) -> Vec<String> {
        self.look_for_pacing();
        let gone = (self.attachments).extract_if(.., |(interface, _)| !interface.exists());
        gone.map(|(interface, _)| interface.name).collect()
    }

    /// Returns the interfaces with programs.
    pub(super) fn interfaces(&self) -> Vec<String> {
        let all = self.attachments.iter();
        all.map(|(interface, _)| interface.name.clone()).collect()
    }

    /// Waits for events of the programs for a limited time; appends them to `events`.
    pub(super) fn listen(&self, events: &mut Vec<Event>) -> Result<(), BpfError> {
        match self.schedule.sleep {
            Some(sleep) if !self.is_woken() => std::thread::sleep(sleep.into()),
            sleep => match self.ring.0.poll(sleep.unwrap_or(PATIENCE).into()) {
                // Signals have their own handler.
                Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {}
                result => result.map_err(refused)?,
            },
        }
        // Events submitted without a wake-up do not end the poll, and neither do later ones.
        self.ring.0.consume().map_err(refused)?;
        let mut read = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.append(&mut read);
        Ok(())
    }

    pub(super) fn set_schedule(&mut self, schedule: ReportSchedule) {
        self.schedule = schedule;
        if let [interval, wake, opens_wake, ..] = self.settings.words() {
            interval.store(schedule.interval.as_nanos(), Ordering::Relaxed);
            let flags = if schedule.sleep.is_some() {
                NO_WAKEUP
            } else {
                0
            };
            wake.store(flags, Ordering::Relaxed);
            let flags = if self.is_woken() {
                FORCE_WAKEUP
            } else {
                NO_WAKEUP
            };
            opens_wake.store(flags, Ordering::Relaxed);
        }
    }

    /// Whether a flow that opens ends [`Self::listen`]. One that may have a highest rate waits for the
    /// decision.
    fn is_woken(&self) -> bool {
        self.schedule.opens_wake || self.has_rates
    }

    /// Sets whether a rule of the policy has a highest rate. Fails if this machine's sockets cannot be paced;
    /// the windows then hold their rates, too.
    pub(super) fn set_rates(&mut self, has_rates: bool) -> Result<(), BpfError> {
        self.has_rates = has_rates;
        self.set_schedule(self.schedule);
        if let [_, _, _, netns_cookie, word, ..] = self.settings.words() {
            word.store(has_rates.into(), Ordering::Relaxed);
            if has_rates && self.sockets.is_none() {
                netns_cookie.store(own_netns_cookie()?, Ordering::Relaxed);
                let shared = |name| map(&self._object, name);
                self.sockets = Some(SocketPacing::attach(shared)?);
            }
        }
        Ok(())
    }

    /// Sets what no rule limits of a connection's data.
    pub(super) fn set_free_window(&self, free: FreeWindow) {
        if let [.., segments, bytes, _] = self.settings.words() {
            bytes.store(free.bytes.bytes(), Ordering::Relaxed);
            segments.store(free.segments, Ordering::Relaxed);
        }
    }

    /// Sets whether no flow is controlled, so that none need be followed.
    pub(super) fn set_idle(&self, is_idle: bool) {
        if let [.., word] = self.settings.words() {
            word.store(is_idle.into(), Ordering::Relaxed);
        }
    }

    /// Sets a cap that expires at a time of the monotonic clock.
    pub(super) fn set_cap(&self, slot: u32, cap: Cap, until: Time) {
        self.caps.set(slot, cap, until);
    }

    /// Frees the slot of a flow that has ended and that the programs have removed.
    pub(super) fn free(&self, slot: u32) -> Result<(), BpfError> {
        self.caps.clear(slot);
        push(&self.slots, slot).map_err(refused)
    }

    /// Removes a flow from the programs' map.
    pub(super) fn forget(&self, slot: u32, key: &[u8; KEY]) -> Result<(), BpfError> {
        self.caps.clear(slot);
        match self.flows.delete(key) {
            Ok(()) => self.free(slot),
            // The programs have removed it themselves, and report that.
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(refused(error)),
        }
    }

    /// Returns when a flow was last active; `None` if the programs have removed it.
    pub(super) fn active_at(&self, key: &[u8; KEY]) -> Option<Time> {
        let value = self.flows.lookup(key, MapFlags::ANY).ok()??;
        let nanos = u64::from_ne_bytes(*value.get(ACTIVE_AT..)?.first_chunk()?);
        Some(Time::ZERO + Duration::from_nanos(nanos))
    }

    /// Returns these totals with the programs' counters added.
    pub(super) fn counted(&self, totals: Totals) -> Totals {
        let count = |counter: u32| {
            let values = (self.counters).lookup_percpu(&counter.to_ne_bytes(), MapFlags::ANY);
            let values = values.ok().flatten().unwrap_or_default();
            let numbers = values
                .iter()
                .filter_map(|bytes| bytes.first_chunk().copied());
            numbers.map(u64::from_ne_bytes).sum()
        };
        // `enum counter` of bpf/events.h.
        Totals {
            opened: count(0),
            closed: count(1),
            refused: count(2),
            unknown_packets: count(3),
            lowered: count(4),
            // Those that user space has not heard of, and the others.
            passed: totals.passed + count(8),
            kernel: Some(KernelCounts {
                reports: count(5),
                lost_reports: count(6),
                beyond_rate: count(7),
            }),
            ..totals
        }
    }
}

/// Claims an interface, which must have no bypass.
fn claim(interface: &Interface) -> Result<InterfaceClaim, BpfError> {
    let claim = InterfaceClaim::take(&interface.name, interface.index)?;
    // As far as this process may see that.
    if matches!(Leftover::find(interface.index), Ok(Some(_))) {
        return Err(BpfError::Bypassed {
            name: interface.name.clone(),
        });
    }
    Ok(claim)
}

/// Returns whether all egress traffic of an interface passes fq (tc-fq(8)): one, or one per queue.
fn holds_back(disciplines: &[(u32, String)], interface: u32) -> bool {
    let own = disciplines.iter().filter(|(index, _)| *index == interface);
    let kinds: Vec<_> = own.map(|(_, kind)| kind.as_str()).collect();
    let harmless = ["fq", "mq", "clsact", "ingress"];
    kinds.contains(&"fq") && kinds.iter().all(|kind| harmless.contains(kind))
}

pub(super) fn load(options: &Options) -> Result<Object, BpfError> {
    let mut open = ObjectBuilder::default()
        .open_memory(PROGRAMS)
        .map_err(refused)?;
    for mut map in open.maps_mut() {
        let entries = match map.name().to_str() {
            Some("flows" | "slots" | "caps") => options.flows,
            Some("openings") => sets(options),
            Some(name) if name.ends_with(".rodata") => {
                write_hashing(map.initial_value_mut().unwrap_or_default(), sets(options))?;
                continue;
            }
            _ => continue,
        };
        map.set_max_entries(entries).map_err(refused)?;
    }
    open.load().map_err(refused)
}

/// The ways of a set of connections that open: `WAYS` of `bpf/openings.h`.
const WAYS: u32 = 8;

/// Returns the number of sets of connections that open.
fn sets(options: &Options) -> u32 {
    options.flows.div_ceil(WAYS).next_power_of_two()
}

/// Writes `hashing` of `bpf/openings.h`.
fn write_hashing(target: &mut [u8], sets: u32) -> Result<(), BpfError> {
    let seed = RandomState::new().hash_one(sets);
    let words = [seed, u64::from(sets - 1)].map(u64::to_ne_bytes);
    let place = target.first_chunk_mut::<16>();
    let place = place.ok_or(BpfError::Object { missing: "hashing" })?;
    for (byte, word) in place.iter_mut().zip(words.as_flattened()) {
        *byte = *word;
    }
    Ok(())
}

fn map(object: &Object, name: &'static str) -> Result<MapHandle, BpfError> {
    let mut maps = object.maps();
    let map = maps
        .find(|map| map.name() == name)
        .ok_or(BpfError::Object { missing: name })?;
    MapHandle::try_from(&map).map_err(refused)
}

fn mapping(source: std::io::Error) -> BpfError {
    BpfError::System {
        doing: "mapping a BPF map",
        source,
    }
}

fn push(slots: &MapHandle, slot: u32) -> libbpf_rs::Result<()> {
    slots.update(&[], &slot.to_ne_bytes(), MapFlags::ANY)
}

fn listen(ring: &MapHandle, events: &Arc<Mutex<Vec<Event>>>) -> Result<Ring, BpfError> {
    let events = Arc::clone(events);
    let mut builder = RingBufferBuilder::new();
    let take = move |bytes: &[u8]| {
        if let Some(event) = Event::read(bytes) {
            events
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event);
        }
        0
    };
    builder.add(ring, take).map_err(refused)?;
    builder.build().map(Ring).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_paces_if_all_its_queues_are_fq() {
        let kinds = [
            (1, "fq"),
            (2, "mq"),
            (2, "fq"),
            (2, "fq"),
            (2, "clsact"),
            (3, "mq"),
            (3, "fq"),
            (3, "fq_codel"),
            (4, "noqueue"),
        ];
        let disciplines = kinds.map(|(index, kind)| (index, kind.to_owned()));
        let pacing = [1, 2, 3, 4, 5].map(|index| holds_back(&disciplines, index));
        assert_eq!(pacing, [true, true, false, false, false]);
    }
}
