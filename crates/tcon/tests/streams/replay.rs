//! One trace, twice: as the element sees it pass, and as a flow that is only heard of, from what the
//! kernel's part (bpf/flow.h) reports of it. The windows have to be the same.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use weir_congestion::AlgorithmSpec;
use weir_tcon::{Beginning, Limits, Milestone, Observed, Report, Treatment};
use weir_tcp::EcnMode;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::{Flags, Options, Segment, Sequence};

use super::world::{Datagram, Passed, Setup};
use super::{bytes, exchange, loss, setup};

/// What the element has made of a trace.
struct Trace {
    passed: Vec<Passed>,
    /// What the server was told, in the same order as it was said.
    told: Vec<Datagram>,
}

fn trace(setup: &Setup, length: u64) -> Trace {
    let world = exchange(setup, length, 0);
    assert_eq!(
        world.tcon().counters().retransmissions,
        0,
        "it only watches"
    );
    Trace {
        passed: world.passed,
        told: world.to_server,
    }
}

/// An element that keeps nothing, and so repairs nothing: what it does is what can be done by windows.
fn watching(congestion: &str) -> Setup {
    Setup {
        limits: Limits {
            memory: ByteSize::ZERO,
            ..Limits::default()
        },
        link: (
            Rate::from_mbps(50),
            Duration::from_millis(5),
            bytes(150_000),
        ),
        ..setup(congestion)
    }
}

/// bpf/flow.h, compiled for this machine with room for so many marks.
fn compile(directory: &Path, marks: u32) -> std::path::PathBuf {
    let program = directory.join("flow");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams/flow.c");
    let status = Command::new("cc")
        .args([
            "-O1",
            "-Wno-unknown-pragmas",
            &format!("-DMARKS={marks}"),
            "-o",
        ])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());
    program
}

/// The trace as the C program reads it.
fn script(trace: &Trace, interval: Duration) -> String {
    let mut script = String::new();
    let mut told = trace.told.iter();
    let (mut client, mut server) = (None, None);
    for passed in &trace.passed {
        let (now, segment) = (
            passed.now.since(Time::ZERO).as_nanos(),
            passed.datagram.segment,
        );
        let is_syn = segment.flags.contains(Flags::SYN);
        if passed.datagram.to_client {
            if is_syn {
                server = Some(segment);
            } else {
                let (number, flags) = (segment.sequence.number(), flags(&segment));
                writeln!(script, "s {now} {number} {} {flags}", segment.payload).unwrap();
            }
            continue;
        }
        let told = told.next().unwrap().segment.window;
        if is_syn {
            client = Some(segment);
            continue;
        }
        if let (Some(client), Some(server)) = (client.take(), server) {
            let (size, scale) = (size(&client, &server), scale(&client));
            let first = server.sequence.number().wrapping_add(1);
            let nanos = interval.as_nanos();
            writeln!(script, "b {first} {size} {scale} {} {nanos}", 1).unwrap();
        }
        let (start, end, sacked) = blocks(&segment);
        let number = segment.acknowledgment.number();
        let (window, flags) = (segment.window, flags(&segment));
        let length = segment.payload;
        writeln!(
            script,
            "a {now} {number} {length} {window} {flags} {start} {end} {sacked} {told}"
        )
        .unwrap();
    }
    script
}

fn flags(segment: &Segment) -> u8 {
    [
        (Flags::FIN, 1),
        (Flags::SYN, 2),
        (Flags::RST, 4),
        (Flags::ACK, 16),
        (Flags::ECE, 64),
    ]
    .into_iter()
    .filter(|(flag, _)| segment.flags.contains(*flag))
    .map(|(_, bit)| bit)
    .sum()
}

fn scale(syn: &Segment) -> u8 {
    match syn.options {
        Options::Syn(options) => options.window_scale.unwrap_or(0),
        _ => 0,
    }
}

fn size(client: &Segment, server: &Segment) -> u32 {
    let Options::Syn(options) = client.options else {
        return 536;
    };
    let stamps = client.timestamps.and(server.timestamps).map_or(0, |_| 12);
    u32::from(options.maximum_segment_size) - stamps
}

fn blocks(segment: &Segment) -> (u32, u32, u32) {
    let Options::Sack(blocks) = segment.options else {
        return (0, 0, 0);
    };
    let above = |start: Sequence| segment.acknowledgment.precedes(start);
    let mut highest: Option<(Sequence, Sequence)> = None;
    let mut sacked = 0;
    for block in blocks.iter().filter(|block| above(block.start)) {
        sacked += block.end.distance_from(block.start) as u32;
        if highest.is_none_or(|(_, end)| end.precedes(block.end)) {
            highest = Some((block.start, block.end));
        }
    }
    highest.map_or((0, 0, 0), |(start, end)| {
        (start.number(), end.number(), sacked)
    })
}

/// The reports, one for each acknowledgment that has one.
fn reports(trace: &Trace, marks: u32, interval: Duration) -> Vec<Option<Report>> {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), marks);
    let input = directory.path().join("input");
    std::fs::write(&input, script(trace, interval)).unwrap();
    let output = Command::new(&program)
        .stdin(Stdio::from(std::fs::File::open(input).unwrap()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| (line != "-").then(|| read(line)))
        .collect()
}

fn read(line: &str) -> Report {
    let fields: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    let time = |at: usize| Time::ZERO + Duration::from_nanos(fields[at]);
    let span = |at: usize| (fields[at] > 0).then(|| Duration::from_nanos(fields[at]));
    let number = |at: usize| Sequence::new(fields[at] as u32);
    Report {
        now: time(0),
        delivered: bytes(fields[1]),
        marked: bytes(fields[2]),
        sent_again: bytes(fields[3]),
        timeouts: fields[4],
        sent_at: time(5),
        rtt: span(6),
        least_rtt: span(7),
        passed: (fields[13] != 0).then(|| Milestone {
            sent_at: time(8),
            delivered: bytes(fields[9]),
            delivered_at: time(10),
            first_sent_at: time(11),
            in_flight: bytes(fields[12]),
        }),
        una: number(14),
        nxt: number(15),
        sacked: bytes(fields[16]),
        sack_end: number(17),
        duplicates: fields[18] as u32,
        prior_in_flight: bytes(fields[19]),
        edge: number(20),
        answers: fields[21] as u32,
    }
}

/// The windows of a flow that hears these reports, after each acknowledgment.
fn windows(
    trace: &Trace,
    congestion: &AlgorithmSpec,
    marked: bool,
    reports: &[Option<Report>],
) -> Vec<u64> {
    let segments = || {
        trace
            .passed
            .iter()
            .map(|passed| (passed.now, passed.datagram))
    };
    let syn = |to_client| {
        let is_syn = |(_, datagram): &(Time, Datagram)| {
            datagram.to_client == to_client && datagram.segment.flags.contains(Flags::SYN)
        };
        segments().find(is_syn).unwrap()
    };
    let ((asked, client), (answered, server)) = (syn(false), syn(true));
    let is_third = |(_, datagram): &(Time, Datagram)| {
        !datagram.to_client && !datagram.segment.flags.contains(Flags::SYN)
    };
    let (opened, _) = segments().find(is_third).unwrap();
    let beginning = Beginning {
        first: server.segment.sequence + 1,
        segment_size: size(&client.segment, &server.segment),
        is_marked: marked,
        rtt: Some(opened.since(answered)),
        sender_rtt: answered.since(asked),
    };
    let mut flow = Observed::new(congestion, &beginning, 1);
    let mut windows = Vec::new();
    for report in reports {
        if let Some(report) = report {
            flow.on_report(report);
        }
        windows.push(flow.window().bytes());
    }
    windows
}

/// Those of the element.
fn expected(trace: &Trace) -> Vec<u64> {
    let is_answer = |passed: &&Passed| {
        !passed.datagram.to_client && !passed.datagram.segment.flags.contains(Flags::SYN)
    };
    let answers = trace.passed.iter().filter(is_answer);
    answers.map(|passed| passed.window).collect()
}

/// How far the windows of the two are apart, on average, in parts of the element's.
fn difference(expected: &[u64], found: &[u64]) -> f64 {
    let pairs = expected
        .iter()
        .zip(found)
        .filter(|(expected, _)| **expected > 0);
    let (sum, apart) = pairs.fold((0.0, 0.0), |(sum, apart), (expected, found)| {
        (
            sum + *expected as f64,
            apart + expected.abs_diff(*found) as f64,
        )
    });
    apart / sum
}

/// How many acknowledgments a report stands for.
#[derive(Clone, Copy)]
enum Reports {
    /// One.
    Each,
    /// Those of a millisecond, as at an interface where much is going on.
    Together,
}

/// How far apart the windows are of a flow that is seen and of one that is heard of.
fn apart(setup: &Setup, reported: Reports) -> f64 {
    let trace = trace(setup, 8_000_000);
    let congestion = &setup.treatment.congestion;
    let marked = setup.server_ecn != EcnMode::Off;
    let expected = expected(&trace);
    assert!(expected.len() > 500, "{}", expected.len());
    let (marks, interval) = match reported {
        Reports::Each => (4096, Duration::ZERO),
        Reports::Together => (8, Duration::from_millis(1)),
    };
    let reports = reports(&trace, marks, interval);
    let found = windows(&trace, congestion, marked, &reports);
    difference(&expected, &found)
}

#[test]
fn what_is_heard_of_gives_the_windows_of_what_is_seen() {
    for congestion in ["newreno", "cubic", "dctcp", "bbr"] {
        let mut setup = watching(congestion);
        setup.link.2 = ByteSize::MAX;
        assert_eq!(apart(&setup, Reports::Each), 0.0, "{congestion}");
    }
}

/// With BBR. Those that count acknowledgments are further apart: docs/tcon.md.
#[test]
fn reports_of_a_millisecond_stay_close() {
    let mut setup = watching("bbr");
    setup.link.2 = ByteSize::MAX;
    let together = apart(&setup, Reports::Together);
    assert!(together < 0.05, "{together}");
}

#[test]
fn marks_too() {
    let mut setup = watching("dctcp");
    setup.treatment = Treatment {
        ecn: false,
        ..setup.treatment
    };
    setup.config.ecn = EcnMode::Classic;
    setup.server_ecn = EcnMode::Classic;
    setup.echo_every = Some(40);
    assert_eq!(apart(&setup, Reports::Each), 0.0);
}

#[test]
fn with_losses_they_stay_close() {
    for congestion in ["cubic", "bbr"] {
        let mut setup = watching(congestion);
        setup.wide = loss(0.002);
        let each = apart(&setup, Reports::Each);
        assert!(each < 0.05, "{congestion}: {each}");
    }
}
