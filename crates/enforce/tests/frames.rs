//! bpf/enforce.bpf.c in the running kernel, frame by frame (`BPF_PROG_TEST_RUN`). Needs root.
#![cfg(bpf_programs)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::path::Path;
use std::process::Command;

use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder, ProgramInput};
use proptest::prelude::*;

use support::can_run;

/// The headers before TCP: Ethernet with tags, and IP with options.
#[derive(Clone, Copy, Debug)]
struct Shape {
    tags: usize,
    version: u8,
    /// IPv4 options, or an IPv6 extension header: 8 bytes.
    options: bool,
}

const SHAPES: [Shape; 6] = [
    Shape {
        tags: 0,
        version: 4,
        options: false,
    },
    Shape {
        tags: 0,
        version: 4,
        options: true,
    },
    Shape {
        tags: 1,
        version: 4,
        options: false,
    },
    Shape {
        tags: 0,
        version: 6,
        options: false,
    },
    Shape {
        tags: 2,
        version: 6,
        options: false,
    },
    Shape {
        tags: 1,
        version: 6,
        options: true,
    },
];

/// The description of a TCP header.
#[derive(Clone, Debug)]
struct Tcp {
    /// Towards the local end.
    arriving: bool,
    flags: u8,
    sequence: u32,
    acknowledgment: u32,
    window: u16,
    options: Vec<u8>,
    payload: usize,
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const LOCAL_START: u32 = 1_000;
const REMOTE_START: u32 = u32::MAX - 5;

/// MSS 1460, SACK permitted, window scale 7.
const SYN_OPTIONS: [u8; 12] = [2, 4, 5, 0xb4, 4, 2, 1, 1, 1, 3, 3, 7];

fn tcp(arriving: bool, flags: u8, sequence: u32, acknowledgment: u32) -> Tcp {
    Tcp {
        arriving,
        flags,
        sequence,
        acknowledgment,
        window: 60_000,
        options: if flags & SYN != 0 {
            SYN_OPTIONS.to_vec()
        } else {
            Vec::new()
        },
        payload: 0,
    }
}

/// The three segments of a handshake.
fn handshake() -> [Tcp; 3] {
    [
        tcp(false, SYN, LOCAL_START, 0),
        tcp(true, SYN | ACK, REMOTE_START, LOCAL_START + 1),
        tcp(false, ACK, LOCAL_START + 1, REMOTE_START.wrapping_add(1)),
    ]
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

impl Shape {
    fn addresses(self, arriving: bool) -> (Vec<u8>, Vec<u8>) {
        let address = |last: u8| match self.version {
            4 => vec![10, 9, self.tags as u8, last],
            _ => [vec![0xfd; 15], vec![last]].concat(),
        };
        if arriving {
            (address(2), address(1))
        } else {
            (address(1), address(2))
        }
    }

    fn frame(self, tcp: &Tcp) -> Vec<u8> {
        let (source, destination) = self.addresses(tcp.arriving);
        let segment = self.segment(tcp);
        let mut frame = vec![2; 12];
        for tag in 0..self.tags {
            let kind: u16 = if tag + 1 < self.tags { 0x88a8 } else { 0x8100 };
            frame.extend(kind.to_be_bytes());
            frame.extend([0, 7]);
        }
        match self.version {
            4 => {
                let options: &[u8] = if self.options { &[1; 8] } else { &[] };
                let length = 20 + options.len() + segment.len();
                frame.extend([0x08, 0x00, 0x45 + options.len() as u8 / 4, 0]);
                frame.extend((length as u16).to_be_bytes());
                frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
                frame.extend([source, destination].concat());
                frame.extend(options);
            }
            _ => {
                // A hop-by-hop options header with four bytes of padding.
                let options: &[u8] = if self.options {
                    &[6, 0, 1, 4, 0, 0, 0, 0]
                } else {
                    &[]
                };
                let length = options.len() + segment.len();
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend((length as u16).to_be_bytes());
                frame.extend([if self.options { 0 } else { 6 }, 64]);
                frame.extend([source, destination].concat());
                frame.extend(options);
            }
        }
        frame.extend(segment);
        frame
    }

    fn segment(self, tcp: &Tcp) -> Vec<u8> {
        let (here, there) = (4_000_u16, 80_u16);
        let (from, to) = if tcp.arriving {
            (there, here)
        } else {
            (here, there)
        };
        let mut segment = [from.to_be_bytes(), to.to_be_bytes()].concat();
        segment.extend(tcp.sequence.to_be_bytes());
        segment.extend(tcp.acknowledgment.to_be_bytes());
        segment.extend([((20 + tcp.options.len() as u8) / 4) << 4, tcp.flags]);
        segment.extend(tcp.window.to_be_bytes());
        segment.extend([0; 4]);
        segment.extend(&tcp.options);
        segment.extend((0..tcp.payload).map(|position| position as u8));
        let checksum = !folded(self.pseudo(tcp.arriving, segment.len()) + sum(&segment));
        segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        segment
    }

    fn pseudo(self, arriving: bool, length: usize) -> u32 {
        let (source, destination) = self.addresses(arriving);
        sum(&source) + sum(&destination) + 6 + length as u32
    }

    /// Returns the offset of TCP in a frame.
    fn offset(self) -> usize {
        let options = if self.options { 8 } else { 0 };
        14 + 4 * self.tags + if self.version == 4 { 20 } else { 40 } + options
    }

    /// Returns the window in a frame, and whether its checksum is valid.
    fn window(self, frame: &[u8], arriving: bool) -> (u16, bool) {
        let segment = &frame[self.offset()..];
        let window = u16::from_be_bytes([segment[14], segment[15]]);
        let total = folded(self.pseudo(arriving, segment.len()) + sum(segment));
        (window, total == 0xffff)
    }
}

struct Programs(Object);

impl Programs {
    fn load() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
        let directory = tempfile::tempdir().unwrap();
        let compiled = directory.path().join("enforce.o");
        let status = Command::new(env!("WEIR_CLANG"))
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11"])
            .args(["-I", env!("WEIR_BPF_HEADERS"), "-c"])
            .arg(root.join("enforce.bpf.c"))
            .arg("-o")
            .arg(&compiled)
            .status()
            .unwrap();
        assert!(status.success());
        let object = ObjectBuilder::default().open_file(&compiled).unwrap();
        let programs = Self(object.load().unwrap());
        let slots = programs.map("slots");
        for slot in 0..8_u32 {
            slots
                .update(&[], &slot.to_ne_bytes(), MapFlags::ANY)
                .unwrap();
        }
        programs
    }

    fn map(&self, name: &str) -> libbpf_rs::Map<'_> {
        self.0.maps().find(|map| map.name() == name).unwrap()
    }

    /// Passes a frame through a program; returns the result.
    fn pass(&self, arriving: bool, frame: &[u8]) -> Vec<u8> {
        let name = if arriving { "arriving" } else { "leaving" };
        let program = self
            .0
            .progs_mut()
            .find(|program| program.name() == name)
            .unwrap();
        let mut out = vec![0; frame.len() + 64];
        let input = ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..ProgramInput::default()
        };
        let output = program.test_run(input).unwrap();
        // TCX_NEXT.
        assert_eq!(output.return_value, u32::MAX);
        let length = output.data.as_ref().map_or(0, |data| data.len());
        out.truncate(length);
        out
    }

    fn pass_segment(&self, shape: Shape, tcp: &Tcp) -> Vec<u8> {
        self.pass(tcp.arriving, &shape.frame(tcp))
    }

    /// Sets this limit in every slot.
    fn allow(&self, allowed: u64, expires_at: u64) {
        let value = [allowed, 2 * 1460, expires_at, 0, 0, 0, 0, 0]
            .map(u64::to_ne_bytes)
            .concat();
        for slot in 0..8_u32 {
            self.map("caps")
                .update(&slot.to_ne_bytes(), &value, MapFlags::ANY)
                .unwrap();
        }
    }
}

#[test]
fn windows_are_lowered_behind_all_header_combinations() {
    if !can_run("windows_are_lowered_behind_all_header_combinations") {
        return;
    }
    for shape in SHAPES {
        let programs = Programs::load();
        for segment in handshake() {
            let frame = shape.frame(&segment);
            assert_eq!(programs.pass(segment.arriving, &frame), frame, "{shape:?}");
        }
        let mut data = tcp(false, ACK, LOCAL_START + 1, REMOTE_START.wrapping_add(1));
        data.payload = 1_000;
        programs.pass_segment(shape, &data);
        // In units of 128 bytes.
        let ask = |number, window, allowed, expires_at| {
            programs.allow(allowed, expires_at);
            let mut answer = tcp(true, ACK, REMOTE_START.wrapping_add(1), number);
            answer.window = window;
            let passed = programs.pass_segment(shape, &answer);
            let (window, is_right) = shape.window(&passed, true);
            assert!(is_right, "{shape:?}: the checksum");
            window
        };
        assert_eq!(
            ask(LOCAL_START + 1, 60_000, u64::MAX, 0),
            60_000,
            "{shape:?}"
        );
        assert_eq!(
            ask(LOCAL_START + 501, 60_000, 20_000, u64::MAX),
            156,
            "{shape:?}"
        );
        // A duplicate keeps its window, and no window is widened.
        assert_eq!(
            ask(LOCAL_START + 501, 60_000, 30_000, u64::MAX),
            156,
            "{shape:?}"
        );
        assert_eq!(
            ask(LOCAL_START + 601, 100, 30_000, u64::MAX),
            100,
            "{shape:?}"
        );
        assert_eq!(
            ask(LOCAL_START + 701, 60_000, 0, u64::MAX),
            23,
            "{shape:?}: two segments"
        );
        assert_eq!(
            ask(LOCAL_START + 801, 60_000, 0, 1),
            60_000,
            "{shape:?}: expired"
        );
        // An acknowledgment of data never sent.
        assert_eq!(
            ask(LOCAL_START + 5_001, 60_000, 64_000, u64::MAX),
            500,
            "{shape:?}"
        );
    }
}

#[test]
fn sacked_bytes_are_added_to_the_window() {
    if !can_run("sacked_bytes_are_added_to_the_window") {
        return;
    }
    let (programs, shape) = (Programs::load(), SHAPES[0]);
    for segment in handshake() {
        programs.pass_segment(shape, &segment);
    }
    let mut data = tcp(false, ACK, LOCAL_START + 1, REMOTE_START.wrapping_add(1));
    data.payload = 1_280;
    for _ in 0..4 {
        programs.pass_segment(shape, &data);
        data.sequence += 1_280;
    }
    programs.allow(12_800, u64::MAX);
    let mut answer = tcp(true, ACK, REMOTE_START.wrapping_add(1), LOCAL_START + 1);
    let blocks = [LOCAL_START + 1_281, LOCAL_START + 1 + 3 * 1_280];
    answer.options = [1, 1, 5, 10].to_vec();
    answer
        .options
        .extend(blocks.iter().flat_map(|number| number.to_be_bytes()));
    let (window, is_right) = shape.window(&programs.pass_segment(shape, &answer), true);
    assert_eq!((window, is_right), (120, true));
}

#[test]
fn malformed_frames_pass_untouched() {
    if !can_run("malformed_frames_pass_untouched") {
        return;
    }
    let programs = Programs::load();
    for shape in SHAPES {
        for segment in handshake() {
            programs.pass_segment(shape, &segment);
        }
    }
    programs.allow(12_800, u64::MAX);
    let cases = (
        0..SHAPES.len(),
        any::<prop::sample::Index>(),
        any::<u8>(),
        any::<bool>(),
    );
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&cases, |(shape, place, value, cut)| {
        let shape = SHAPES[shape];
        let mut answer = tcp(true, ACK, REMOTE_START.wrapping_add(1), LOCAL_START + 1);
        answer.options = SYN_OPTIONS.to_vec();
        let mut frame = shape.frame(&answer);
        let place = place.index(frame.len() - 14) + 14;
        if cut {
            // The kernel runs no program on a frame that ends within the IP header.
            frame.truncate(place.max(60));
        } else {
            frame[place] = value;
        }
        let passed = programs.pass(true, &frame);
        prop_assert_eq!(passed.len(), frame.len());
        let offset = shape.offset();
        for (at, (before, after)) in frame.iter().zip(&passed).enumerate() {
            // Only the TCP window and checksum may differ.
            let rewritten = at >= offset + 14 && at < offset + 18;
            prop_assert!(before == after || rewritten, "byte {} of {:?}", at, shape);
        }
        if cut {
            prop_assert_eq!(passed, frame);
        }
        Ok(())
    });
    result.unwrap();
}
