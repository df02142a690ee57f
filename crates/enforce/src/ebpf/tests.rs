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

const LOCAL: [u8; 4] = [10, 0, 0, 1];
const REMOTE: [u8; 4] = [10, 0, 0, 2];
/// The size of `struct __sk_buff` (linux/bpf.h), and the offsets of `tstamp` and `wire_len`.
const CONTEXT: usize = 192;
const TSTAMP: std::ops::Range<usize> = 152..160;
const WIRE_LENGTH: std::ops::Range<usize> = 160..164;
const FLOWS: u32 = 8;
/// The payload of a segment.
const PAYLOAD: usize = 1000;
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
            TcpOptionElement::WindowScale(7),
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

struct World {
    object: Object,
    caps: Caps,
}

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
        let slots = map("slots");
        for slot in 0..FLOWS {
            slots
                .update(&[], &slot.to_ne_bytes(), libbpf_rs::MapFlags::ANY)
                .unwrap();
        }
        Self { object, caps }
    }

    /// Runs a program on a frame with departure time `wanted`; returns the new departure time.
    fn run(&mut self, program: &str, frame: &[u8], wanted: u64) -> u64 {
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
                ..ProgramInput::default()
            })
            .unwrap();
        // TCX_NEXT.
        assert_eq!(output.return_value as i32, -1);
        u64::from_ne_bytes(after[TSTAMP].try_into().unwrap())
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
        let sequence = 100 + number * PAYLOAD as u32;
        let segment = frame(LOCAL, REMOTE, Kind::Data, (sequence, Some(500)));
        assert_eq!(segment.len() as u32, LENGTH);
        self.run("leaving", &segment, wanted)
    }

    /// Allows this rate in all slots, for a minute.
    fn allow(&self, rate: Option<Rate>) {
        let limit = WindowLimit {
            allowed: ByteSize::from_mib(1),
            floor: ByteSize::ZERO,
        };
        let until = Time::from_nanos(now()) + Duration::from_secs(60);
        for slot in 0..FLOWS {
            self.caps.set(slot, Cap { limit, rate }, until);
        }
    }
}

/// Returns the time of the clock that the programs and fq use.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
    // A thousand segments per second: slow compared with the time of a run.
    world.allow(Some(Rate::from_bits_per_second(
        u64::from(LENGTH) * 8 * 1000,
    )));
    let begun = now();
    // The first segment leaves at once.
    assert_eq!(world.send(2, 0), 0);
    let times = [3, 4, 5].map(|number| world.send(number, 0));
    assert!(times[0] > begun && times[0] <= now() + 1_000_000);
    assert_eq!(times.map(|time| time - times[0]), [0, 1_000_000, 2_000_000]);
    // A segment with a later departure time keeps it, and delays the segments after it.
    let later = now() + 100_000_000;
    assert_eq!(
        (world.send(6, later), world.send(7, 0)),
        (later, later + 1_000_000)
    );
    // Never further ahead than fq accepts.
    let far = world.send(8, now() + 60_000_000_000);
    assert!(far <= now() + 1_000_000_000 && far > later);
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
