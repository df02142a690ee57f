//! The programs, run by the kernel on test packets (`BPF_PROG_TEST_RUN`).

use std::os::fd::{AsFd as _, AsRawFd as _};

use etherparse::{PacketBuilder, TcpOptionElement};
use libbpf_rs::{MapCore as _, MapHandle, Object, ProgramInput, ProgramMut};
use rustix::time::{ClockId, clock_gettime};
use weir_fabric::WindowLimit;
use weir_tcon::Cap;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::Options;
use super::caps::Caps;
use super::plane::load;
use crate::bpf::loader::check_permission;
use crate::bpf::mapped_words::MappedWords;

const LOCAL: [u8; 4] = [10, 0, 0, 1];
const REMOTE: [u8; 4] = [10, 0, 0, 2];
/// The size of `struct __sk_buff` (linux/bpf.h), and the offsets of `tstamp` and `wire_len`.
const CONTEXT: usize = 192;
const TSTAMP: std::ops::Range<usize> = 152..160;
const WIRE_LENGTH: std::ops::Range<usize> = 160..164;
const FLOWS: u32 = 8;
/// The payload of a segment.
const PAYLOAD: usize = 1000;
/// The segment size of the connection, and the scale of the windows.
const SEGMENT: u64 = 1460;
const SCALE: u32 = 7;
/// The window that the receiver announces.
const ANNOUNCED: u64 = 500 << SCALE;
/// The window field of a frame without options.
const WINDOW: std::ops::Range<usize> = 48..50;
/// The control bits of a frame without options.
const FLAGS: usize = 47;
/// The counters of the programs: `enum counter` of `bpf/events.h`.
const OPENED: u32 = 0;
const CLOSED: u32 = 1;
const REFUSED: u32 = 2;
const UNKNOWN: u32 = 3;
const PASSED: u32 = 8;
/// Where the local port is in a frame of the local end without VLAN tags.
const LOCAL_PORT: std::ops::Range<usize> = 34..36;
/// Its length with headers.
const LENGTH: u32 = 1000 + 14 + 20 + 20;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Syn,
    Ack,
    Data,
}

fn frame(
    from: [u8; 4],
    to: [u8; 4],
    kind: Kind,
    (sequence, number): (u32, Option<u32>),
) -> Vec<u8> {
    let port = |address| if address == LOCAL { 4000 } else { 80 };
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
    let mut builder = builder.tcp(port(from), port(to), sequence, 500);
    if kind == Kind::Syn {
        let options = [
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::WindowScale(SCALE as u8),
        ];
        builder = builder.syn().options(&options).unwrap();
    }
    if let Some(number) = number {
        builder = builder.ack(number);
    }
    let payload = vec![0; if kind == Kind::Data { PAYLOAD } else { 0 }];
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &payload).unwrap();
    bytes
}

/// Returns the segment with this number.
fn data(number: u32) -> Vec<u8> {
    let sequence = 100 + number * PAYLOAD as u32;
    let segment = frame(LOCAL, REMOTE, Kind::Data, (sequence, Some(500)));
    assert_eq!(segment.len() as u32, LENGTH);
    segment
}

struct World {
    object: Object,
    caps: Caps,
    settings: MappedWords,
}

/// Returns a segment with a FIN.
fn closing(from: [u8; 4], to: [u8; 4], (sequence, number): (u32, u32)) -> Vec<u8> {
    let mut bytes = frame(from, to, Kind::Ack, (sequence, Some(number)));
    bytes[FLAGS] |= 1;
    bytes
}

/// What became of a frame.
struct Outcome {
    verdict: i32,
    frame: Vec<u8>,
    departure: u64,
}

/// The verdicts `TCX_NEXT` and `TCX_DROP`.
const NEXT: i32 = -1;
const DROP: i32 = 2;

impl World {
    fn new() -> Self {
        let options = Options {
            flows: FLOWS,
            ..Options::default()
        };
        let object = load(&options).unwrap();
        let map = |name: &str| {
            let found = object.maps().find(|map| map.name() == name).unwrap();
            MapHandle::try_from(&found).unwrap()
        };
        let caps = Caps::map(map("caps").as_fd(), FLOWS).unwrap();
        let settings = MappedWords::map(map("settings").as_fd(), 8).unwrap();
        let slots = map("slots");
        for slot in 0..FLOWS {
            slots
                .update(&[], &slot.to_ne_bytes(), libbpf_rs::MapFlags::ANY)
                .unwrap();
        }
        Self {
            object,
            caps,
            settings,
        }
    }

    /// Runs a program on a frame with departure time `wanted`, which passes; returns the new departure
    /// time.
    fn run(&mut self, program: &str, frame: &[u8], wanted: u64) -> u64 {
        let outcome = self.try_run(program, frame, wanted);
        assert_eq!(outcome.verdict, NEXT);
        outcome.departure
    }

    fn try_run(&mut self, program: &str, frame: &[u8], wanted: u64) -> Outcome {
        let mut changed = vec![0; frame.len()];
        let mut before = [0; CONTEXT];
        before[TSTAMP].copy_from_slice(&wanted.to_ne_bytes());
        before[WIRE_LENGTH].copy_from_slice(&(frame.len() as u32).to_ne_bytes());
        let mut after = [0; CONTEXT];
        let program: ProgramMut<'_> = self
            .object
            .progs_mut()
            .find(|found| found.name() == program)
            .unwrap();
        let output = program
            .test_run(ProgramInput {
                context_in: Some(&mut before),
                context_out: Some(&mut after),
                data_in: Some(frame),
                data_out: Some(&mut changed),
                ..ProgramInput::default()
            })
            .unwrap();
        Outcome {
            verdict: output.return_value as i32,
            frame: changed,
            departure: u64::from_ne_bytes(after[TSTAMP].try_into().unwrap()),
        }
    }

    fn connect(&mut self) {
        self.run("leaving", &frame(LOCAL, REMOTE, Kind::Syn, (99, None)), 0);
        self.run(
            "arriving",
            &frame(REMOTE, LOCAL, Kind::Syn, (499, Some(100))),
            0,
        );
        self.run(
            "leaving",
            &frame(LOCAL, REMOTE, Kind::Ack, (100, Some(500))),
            0,
        );
    }

    /// Sends the segment with this number.
    fn send(&mut self, number: u32, wanted: u64) -> u64 {
        self.run("leaving", &data(number), wanted)
    }

    /// Acknowledges the segments before this number; returns the window that the sender is told, or `None` if
    /// it is told nothing.
    fn acknowledge(&mut self, number: u32) -> Option<u64> {
        self.acknowledge_with(number, (ANNOUNCED >> SCALE) as u16)
    }

    /// The same with this window field of the receiver.
    fn acknowledge_with(&mut self, number: u32, window: u16) -> Option<u64> {
        let upto = 100 + number * PAYLOAD as u32;
        let mut segment = frame(REMOTE, LOCAL, Kind::Ack, (500, Some(upto)));
        segment[WINDOW].copy_from_slice(&window.to_be_bytes());
        let outcome = self.try_run("arriving", &segment, 0);
        let field = outcome.frame[WINDOW].try_into().unwrap();
        (outcome.verdict == NEXT).then(|| u64::from(u16::from_be_bytes(field)) << SCALE)
    }

    /// Allows this rate in all slots, for a minute.
    fn allow(&self, rate: Option<Rate>) {
        self.cap(rate, None);
    }

    /// Sets a highest rate, held by windows, in all slots.
    fn limit(&self, bytes_per_second: u64) {
        self.cap(None, Some(Rate::from_bits_per_second(8 * bytes_per_second)));
    }

    fn map(&self, name: &str) -> MapHandle {
        let found = self.object.maps().find(|map| map.name() == name).unwrap();
        MapHandle::try_from(&found).unwrap()
    }

    fn counter(&self, counter: u32) -> u64 {
        let key = counter.to_ne_bytes();
        let values = self
            .map("counters")
            .lookup_percpu(&key, libbpf_rs::MapFlags::ANY);
        let values = values.unwrap().unwrap_or_default();
        let numbers = values.iter().map(|bytes| *bytes.first_chunk().unwrap());
        numbers.map(u64::from_ne_bytes).sum()
    }

    /// The number of flows that are followed.
    fn flows(&self) -> usize {
        self.map("flows").keys().count()
    }

    fn cap(&self, rate: Option<Rate>, max_rate: Option<Rate>) {
        let limit = WindowLimit {
            allowed: ByteSize::from_mib(1),
            floor: ByteSize::ZERO,
        };
        let until = Time::from_nanos(now()) + Duration::from_secs(60);
        for slot in 0..FLOWS {
            let cap = Cap {
                limit,
                rate,
                max_rate,
                socket_rate: max_rate,
            };
            self.caps.set(slot, cap, until);
        }
    }
}

/// Returns the time of the clock that the programs and fq use.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A receiver may close its window while more is in flight than it takes.
#[test]
fn a_window_that_opens_again_is_passed_on() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    world.connect();
    world.allow(None);
    world.send(0, 0);
    world.send(1, 0);
    assert_eq!(world.acknowledge_with(1, 0), Some(0));
    assert_eq!(world.acknowledge(1), Some(ANNOUNCED));
}

#[test]
fn segments_leave_at_the_rate_that_is_given() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    world.connect();
    // Without a rate, segments are not spaced, and the sender's departure time is kept.
    world.allow(None);
    let later = now() + 500_000_000;
    assert_eq!((world.send(0, 0), world.send(1, later)), (0, later));
    // Ten segments per second: slow compared with the time of a run.
    const APART: u64 = 100_000_000;
    world.allow(Some(Rate::from_bits_per_second(u64::from(LENGTH) * 8 * 10)));
    let begun = now();
    let first = world.send(2, 0);
    let times = [3, 4, 5].map(|number| world.send(number, 0));
    // A segment with a later departure time keeps it, and delays the segments after it.
    let later = now() + 6 * APART;
    let delayed = (world.send(6, later), world.send(7, 0));
    // Never further ahead than fq accepts.
    let far = world.send(8, now() + 60_000_000_000);
    let ended = now();
    if ended - begun > APART {
        println!("SKIPPED: this machine stood still, and segments were due meanwhile");
        return;
    }
    assert_eq!(first, 0, "it leaves at once");
    assert!(times[0] > begun && times[0] <= ended + APART);
    assert_eq!(times.map(|time| time - times[0]), [0, APART, 2 * APART]);
    assert_eq!(delayed, (later, later + APART));
    assert!(far > later && far <= ended + 1_000_000_000);
}

#[test]
fn the_window_ends_where_the_highest_rate_does() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    world.connect();
    world.limit(1_000_000_000);
    world.send(0, 0);
    assert_eq!(world.acknowledge(1), Some(ANNOUNCED), "plenty is left");

    // A byte per millisecond: nothing is left, but what is in flight is not taken back.
    let mut world = World::new();
    world.connect();
    world.limit(1_000);
    (0..4).for_each(|number| assert_eq!(world.send(number, 0), 0));
    let in_flight = |count: u64| Some((count * PAYLOAD as u64) >> SCALE << SCALE);
    assert_eq!(world.acknowledge(1), in_flight(3));
    assert_eq!(world.acknowledge(3), in_flight(1));
    assert_eq!(world.acknowledge(4), None, "it would close the window");

    // Between: 120 ms of the rate at the start, in whole segments, and what time has brought since.
    let mut world = World::new();
    let rate = 100_000;
    let begun = now();
    world.connect();
    world.limit(rate);
    (0..3).for_each(|number| assert_eq!(world.send(number, 0), 0));
    let told = world.acknowledge(0).unwrap();
    let spent = now() - begun;
    let room = |nanos: u64| (nanos * rate / 1_000_000_000 - 3_000) / SEGMENT * SEGMENT;
    let [least, most] = [0, spent].map(|nanos| {
        let bytes: u64 = 3_000 + room(120_000_000 + nanos);
        bytes.next_multiple_of(1 << SCALE)
    });
    assert!(
        (least..=most).contains(&told),
        "{least} <= {told} <= {most}"
    );
}

#[test]
fn what_has_arrived_is_not_paid_for_again() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    world.connect();
    // 12,000 bytes at the start, of which three segments take a quarter.
    world.limit(100_000);
    (0..3).for_each(|number| assert_eq!(world.send(number, 0), 0));
    assert!(world.acknowledge(3).is_some());
    (0..50).for_each(|_| assert_eq!(world.send(2, 0), 0));
    let told = world.acknowledge(3).unwrap();
    assert!(told >= 8_000, "{told}");
    // A segment that has not arrived is paid for each time.
    (0..50).for_each(|_| assert_eq!(world.send(3, 0), 0));
    assert_eq!(world.acknowledge(4), None);
}

#[test]
fn a_sender_that_ignores_its_window_loses_what_is_beyond_the_rate() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    world.connect();
    world.limit(1_000);
    world.send(0, 0);
    assert_eq!(world.acknowledge(1), None);
    let verdicts = (1..100).map(|number| world.try_run("leaving", &data(number), 0).verdict);
    let verdicts: Vec<_> = verdicts.collect();
    let passed = verdicts
        .iter()
        .take_while(|verdict| **verdict == NEXT)
        .count();
    // A super-packet's worth of debt.
    assert!((64..=67).contains(&passed), "{passed}");
    assert_eq!(verdicts[passed], DROP);
    // What has left may be sent again.
    assert_eq!(world.send(40, 0), 0);
}

#[test]
fn a_connection_whose_rule_may_have_a_highest_rate_starts_with_a_small_window() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    world.connect();
    world.send(0, 0);
    assert_eq!(world.acknowledge(1), Some(ANNOUNCED), "no rule has one");
    let mut world = World::new();
    let [_, _, _, _, has_rates, ..] = world.settings.words() else {
        panic!("seven settings");
    };
    has_rates.store(1, std::sync::atomic::Ordering::Relaxed);
    let begun = now();
    world.connect();
    (0..20).for_each(|number| assert_eq!(world.send(number, 0), 0));
    let told = [1, 5, 20].map(|number| world.acknowledge(number));
    if now() - begun > 10_000_000_000 {
        println!("SKIPPED: this machine needs more than ten seconds, after which nothing waits");
        return;
    }
    let segments = |count: u64| (count * SEGMENT) >> SCALE << SCALE;
    let first = |number: u64| (10 * SEGMENT - number * PAYLOAD as u64) >> SCALE << SCALE;
    assert_eq!(told, [first(1), first(5), segments(2)].map(Some));
    world.limit(1_000_000_000);
    world.send(20, 0);
    assert_eq!(world.acknowledge(21), Some(ANNOUNCED), "it is decided");
}

/// Lets connections send this many segments before they count.
fn leave_alone(world: &World, segments: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    let [.., free_segments, free_bytes, _] = world.settings.words() else {
        panic!("eight settings");
    };
    free_segments.store(segments, Relaxed);
    free_bytes.store(u64::MAX, Relaxed);
}

#[test]
fn a_connection_opens_when_its_sender_has_sent_more_than_no_rule_limits() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    leave_alone(&world, 10);
    world.connect();
    // A byte per millisecond would leave nothing: but the connection is young.
    world.limit(1_000);
    (0..14).for_each(|number| assert_eq!(world.send(number, 0), 0));
    assert_eq!(world.acknowledge(13), Some(ANNOUNCED));
    assert_eq!((world.counter(OPENED), world.flows()), (1, 0));
    // The 15th segment goes beyond ten of the connection's.
    world.send(14, 0);
    assert_eq!((world.counter(OPENED), world.flows()), (1, 1));
    world.limit(1_000);
    let in_flight = (PAYLOAD as u64) >> SCALE << SCALE;
    assert_eq!(world.acknowledge(14), Some(in_flight));
}

#[test]
fn a_young_connection_ends_without_an_event() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    leave_alone(&world, 10);
    for _ in 0..20 {
        world.connect();
        world.send(0, 0);
        world.acknowledge(1);
        world.run("leaving", &closing(LOCAL, REMOTE, (1100, 500)), 0);
        world.run("arriving", &closing(REMOTE, LOCAL, (500, 1101)), 0);
        let last = frame(LOCAL, REMOTE, Kind::Ack, (1101, Some(501)));
        world.run("leaving", &last, 0);
    }
    let counted = [OPENED, CLOSED, REFUSED].map(|counter| world.counter(counter));
    assert_eq!((counted, world.flows()), ([20, 20, 0], 0));
}

/// Returns a segment of the local end's from another port.
fn from_port(port: u16, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[LOCAL_PORT].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Begins a connection from a port, and completes its handshake if `is_answered`.
fn open_from(world: &mut World, port: u16, is_answered: bool) {
    let syn = frame(LOCAL, REMOTE, Kind::Syn, (99, None));
    world.run("leaving", &from_port(port, syn), 0);
    if is_answered {
        let mut answer = frame(REMOTE, LOCAL, Kind::Syn, (499, Some(100)));
        // The destination port is behind the source port.
        answer[LOCAL_PORT.end..LOCAL_PORT.end + 2].copy_from_slice(&port.to_be_bytes());
        world.run("arriving", &answer, 0);
        let ack = frame(LOCAL, REMOTE, Kind::Ack, (100, Some(500)));
        world.run("leaving", &from_port(port, ack), 0);
    }
}

/// Returns how many connections from these ports are in no table.
fn forgotten(world: &mut World, ports: std::ops::RangeInclusive<u16>) -> u64 {
    let before = world.counter(UNKNOWN);
    for port in ports {
        let ack = frame(LOCAL, REMOTE, Kind::Ack, (100, Some(500)));
        world.run("leaving", &from_port(port, ack), 0);
    }
    world.counter(UNKNOWN) - before
}

#[test]
fn a_flood_of_syns_displaces_at_most_one_young_connection_of_a_full_set() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    // All connections are in one set.
    for (young, displaced) in [(1..=7, 0), (1..=8, 1)] {
        let mut world = World::new();
        leave_alone(&world, 10);
        for port in young.clone() {
            open_from(&mut world, port, true);
        }
        for port in 1000..1200 {
            open_from(&mut world, port, false);
        }
        assert_eq!(forgotten(&mut world, young), displaced);
    }
}

#[test]
fn where_no_rule_controls_connections_are_only_counted() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let mut world = World::new();
    let idle = |world: &World, is_idle: bool| {
        let [.., word] = world.settings.words() else {
            panic!("eight settings");
        };
        word.store(is_idle.into(), std::sync::atomic::Ordering::Relaxed);
    };
    idle(&world, true);
    world.connect();
    world.send(0, 0);
    assert_eq!(world.acknowledge(1), Some(ANNOUNCED));
    let counted = [PASSED, OPENED, UNKNOWN].map(|counter| world.counter(counter));
    assert_eq!((counted, world.flows()), ([1, 0, 0], 0));
    // A policy that controls is for connections that open from now on.
    idle(&world, false);
    assert_eq!(forgotten(&mut world, 4000..=4000), 1);
    open_from(&mut world, 4001, true);
    let counted = [PASSED, OPENED].map(|counter| world.counter(counter));
    assert_eq!((counted, world.flows()), ([1, 1], 1));
}

/// The most instructions that the verifier may follow in a program: 100,000 take about 0.15 s. There were
/// 533,571 while it followed what was read of a packet on the stack, and starting took 0.9 s.
const MOST_VERIFIED: u32 = 200_000;

#[test]
fn the_verifier_follows_few_paths() {
    if check_permission().is_err() {
        println!("SKIPPED: root (CAP_BPF) is needed");
        return;
    }
    let world = World::new();
    for program in world.object.progs() {
        let verified = verified(&program);
        println!("{}: {verified}", program.name().display());
        assert!(verified < MOST_VERIFIED, "{}", program.name().display());
    }
}

/// Returns how many instructions the verifier has followed; zero before Linux 5.16.
fn verified(program: &libbpf_rs::Program<'_>) -> u32 {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    let descriptor = program.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes, which is the size of the structure.
    let result = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(descriptor, &mut info, &mut length) };
    assert_eq!(result, 0);
    info.verified_insns
}
