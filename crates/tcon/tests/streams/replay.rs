//! One trace, twice: as the element sees it, and as an observed flow gets it in the reports of the
//! kernel's part (bpf/flow.h). The windows have to be the same.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use weir_congestion::AlgorithmSpec;
use weir_tcon::{DeliveryPoint, FlowStart, Limits, ObservedFlow, PLACES, ProgressReport};
use weir_tcp::EcnMode;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::{Flags, Options, Segment, Sequence};

use super::world::{Datagram, Passed, Setup};
use super::{bytes, exchange, loss, setup};

/// The element's record of a trace.
struct Trace {
    passed: Vec<Passed>,
    /// What was forwarded to the server, in the order of `passed`.
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

/// An element that keeps no copies, and so repairs nothing: it acts by windows only.
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
        // With Linux's HyStart, which leaves slow start earlier, a single wrong sample of the delivery rate
        // makes BBR's reported windows 8 % smaller in all.
        sender: "cubic,hystart_plus_plus=true",
        // Sequence numbers wrap in the middle.
        isn: u32::MAX - 3_000_000,
        ..setup(congestion)
    }
}

/// bpf/flow.h, compiled for this machine with room for this many marks.
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

/// The trace in the input format of the C program.
fn script(trace: &Trace, reported: Reported) -> String {
    let mut script = String::new();
    let mut told = trace.told.iter();
    let Handshake {
        first,
        size,
        scale,
        rtt,
        sender_rtt,
    } = Handshake::of(trace);
    let [rtt, sender_rtt, interval] =
        [rtt, sender_rtt, reported.interval].map(|span| span.as_nanos());
    let (first, answers) = (first.number(), reported.answers);
    let begin = format!("{first} {size} {scale} 1 {rtt} {sender_rtt} {interval} {answers}");
    writeln!(script, "b {begin}").unwrap();
    for passed in &trace.passed {
        let (now, segment) = (
            passed.now.since(Time::ZERO).as_nanos(),
            passed.datagram.segment,
        );
        let is_syn = segment.flags.contains(Flags::SYN);
        if passed.datagram.to_client {
            if !is_syn {
                let (number, flags) = (segment.sequence.number(), flags(&segment));
                writeln!(script, "s {now} {number} {} {flags}", segment.payload).unwrap();
            }
            continue;
        }
        let told = told.next().unwrap().segment.window;
        if is_syn {
            continue;
        }
        let (start, end, sacked) = blocks(&segment);
        let latest = latest(&segment);
        let duplicate = duplicate(&segment);
        let number = segment.acknowledgment.number();
        let (window, flags) = (segment.window, flags(&segment));
        let length = segment.payload;
        writeln!(
            script,
            "a {now} {number} {length} {window} {flags} {start} {end} {sacked} {latest} {duplicate} {told}"
        )
        .unwrap();
    }
    script
}

/// What the SYNs contain and measure.
struct Handshake {
    /// Sequence number of the server's first byte.
    first: Sequence,
    size: u32,
    scale: u8,
    rtt: Duration,
    sender_rtt: Duration,
}

impl Handshake {
    fn of(trace: &Trace) -> Self {
        let find = |to_client, is_syn| {
            let mut all = trace.passed.iter();
            let found = all.find(|Passed { datagram, .. }| {
                datagram.to_client == to_client
                    && datagram.segment.flags.contains(Flags::SYN) == is_syn
            });
            found
                .map(|passed| (passed.now, passed.datagram.segment))
                .unwrap()
        };
        let ((asked, client), (answered, server)) = (find(false, true), find(true, true));
        let (opened, _) = find(false, false);
        Self {
            first: server.sequence + 1,
            size: size(&client, &server),
            scale: scale(&client),
            rtt: opened.since(answered),
            sender_rtt: answered.since(asked),
        }
    }
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

/// The SACK block with the data that has just arrived.
fn latest(segment: &Segment) -> String {
    let block = match segment.options {
        Options::Sack(blocks) => blocks.iter().next(),
        _ => None,
    };
    let above = block.filter(|block| segment.acknowledgment.precedes(block.start));
    above.map_or("0 0".to_owned(), |block| {
        format!("{} {}", block.start.number(), block.end.number())
    })
}

/// The bytes of a block that tells of data which has arrived twice (RFC 2883).
fn duplicate(segment: &Segment) -> u64 {
    let Options::Sack(blocks) = segment.options else {
        return 0;
    };
    let is_below = |end: Sequence| !segment.acknowledgment.precedes(end);
    let first = blocks.iter().next().filter(|block| is_below(block.end));
    first.map_or(0, |block| block.end.distance_from(block.start) as u64)
}

/// The reports, one entry per acknowledgment; `None` where there was none.
fn reports(trace: &Trace, reported: Reported) -> Vec<Option<ProgressReport>> {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), reported.marks);
    let input = directory.path().join("input");
    std::fs::write(&input, script(trace, reported)).unwrap();
    let output = Command::new(&program)
        .stdin(Stdio::from(std::fs::File::open(input).unwrap()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| (line != "-").then(|| read(line)))
        .collect()
}

fn read(line: &str) -> ProgressReport {
    let fields: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    let time = |at: usize| Time::ZERO + Duration::from_nanos(fields[at]);
    let number = |at: usize| Sequence::new(fields[at] as u32);
    let (fields, places) = fields.split_at(20);
    let mut passed = [None; PLACES];
    for (slot, point) in passed.iter_mut().zip(places.chunks(10)) {
        *slot = Some(milestone(point));
    }
    ProgressReport {
        now: time(0),
        delivered: bytes(fields[1]),
        marked: bytes(fields[2]),
        retransmitted: bytes(fields[3]),
        timeouts: fields[4],
        sent_at: time(5),
        una: number(6),
        nxt: number(7),
        sacked: bytes(fields[8]),
        sack_end: number(9),
        duplicates: fields[10] as u32,
        prior_in_flight: bytes(fields[11]),
        new_acks: fields[12] as u32,
        limited_until: bytes(fields[13]),
        first_ack_at: time(14),
        app_limited_acks: fields[15],
        echo_acks: fields[16],
        skipped: bytes(fields[17]),
        skipped_at: time(18),
        duplicated: bytes(fields[19]),
        delivery_points: passed,
    }
}

fn milestone(fields: &[u64]) -> DeliveryPoint {
    let time = |at: usize| Time::ZERO + Duration::from_nanos(fields[at]);
    DeliveryPoint {
        passed_at: time(0),
        upto: bytes(fields[1]),
        sent_at: time(2),
        delivered: bytes(fields[3]),
        delivered_at: time(4),
        first_sent_at: time(5),
        in_flight: bytes(fields[6]),
        was_retransmitted: fields[7] != 0,
        app_limited: fields[8] != 0,
        ack_index: fields[9] as u32,
    }
}

/// The windows of a flow that receives these reports, after each acknowledgment.
fn windows(
    trace: &Trace,
    congestion: &AlgorithmSpec,
    marked: bool,
    reports: &[Option<ProgressReport>],
) -> Vec<u64> {
    let handshake = Handshake::of(trace);
    let beginning = FlowStart {
        first: handshake.first,
        segment_size: handshake.size,
        is_marked: marked,
        rtt: Some(handshake.rtt),
    };
    let mut flow = ObservedFlow::new(congestion, &beginning, 1);
    let mut windows = Vec::new();
    for report in reports {
        if let Some(report) = report {
            flow.on_report(report);
        }
        windows.push(flow.window().bytes());
    }
    windows
}

/// The windows of the element.
fn expected(trace: &Trace) -> Vec<u64> {
    let is_answer = |passed: &&Passed| {
        !passed.datagram.to_client && !passed.datagram.segment.flags.contains(Flags::SYN)
    };
    let answers = trace.passed.iter().filter(is_answer);
    answers.map(|passed| passed.window).collect()
}

/// When reports are made, and how exactly data is noted.
#[derive(Clone, Copy, Debug)]
struct Reported {
    /// The shortest time between two reports.
    interval: Duration,
    /// The least number of acknowledgments per report.
    answers: u32,
    /// Points in the data that are noted at a time.
    marks: u32,
}

/// Reports each acknowledgment and each point in the data.
const EACH: Reported = Reported {
    interval: Duration::ZERO,
    answers: 0,
    marks: 4096,
};

/// As in bpf/flow.h.
const MARKS: u32 = 128;

/// As the kernel programs note it.
fn batched_reports(answers: u32) -> Reported {
    Reported {
        answers,
        marks: MARKS,
        ..EACH
    }
}

/// The difference between the controller's windows of the element and of the observed flow, relative to
/// the element's: just after each report, over all reports of a trace.
#[derive(Clone, Copy, Debug)]
struct Apart {
    median: f64,
    p95: f64,
    most: f64,
    /// The same for the sums of all windows.
    total: f64,
}

impl Apart {
    fn of(expected: &[u64], found: &[u64]) -> Self {
        let mut apart: Vec<f64> = expected
            .iter()
            .zip(found)
            // The flow has been forgotten.
            .filter(|(expected, _)| **expected > 0)
            .map(|(expected, found)| expected.abs_diff(*found) as f64 / *expected as f64)
            .collect();
        apart.sort_by(f64::total_cmp);
        let known = expected
            .iter()
            .zip(found)
            .filter(|(expected, _)| **expected > 0);
        let (sum, other) = known.fold((0.0, 0.0), |(sum, other), (expected, found)| {
            (sum + *expected as f64, other + *found as f64)
        });
        Self {
            median: apart[apart.len() / 2],
            p95: apart[apart.len() * 95 / 100],
            most: apart[apart.len() - 1],
            total: (other - sum) / sum,
        }
    }
}

fn apart(setup: &Setup, reported: Reported) -> Apart {
    compare(&trace(setup, 8_000_000), setup, reported)
}

fn compare(trace: &Trace, setup: &Setup, reported: Reported) -> Apart {
    let marked = setup.server_ecn != EcnMode::Off;
    let reports = reports(trace, reported);
    let found = windows(trace, &setup.policy.congestion, marked, &reports);
    let expected = expected(trace);
    assert!(expected.len() > 500, "{}", expected.len());
    let at_reports = |windows: &[u64]| -> Vec<u64> {
        let pairs = windows.iter().zip(&reports);
        let kept = pairs.filter(|(_, report)| report.is_some());
        kept.map(|(window, _)| *window).collect()
    };
    Apart::of(&at_reports(&expected), &at_reports(&found))
}

/// DCTCP, with ECN echoes that no switch has caused.
fn marked(every: usize) -> Setup {
    let mut setup = watching("dctcp");
    setup.policy.ecn = false;
    setup.config.ecn = EcnMode::Classic;
    setup.server_ecn = EcnMode::Classic;
    setup.echo_every = Some(every);
    setup
}

/// The traces: a flow limited only by its sender, one that fills a buffer, one with random loss, and
/// marks.
fn traces(congestion: &str) -> Vec<(&'static str, Setup)> {
    let mut free = watching(congestion);
    free.link.2 = ByteSize::MAX;
    let full = watching(congestion);
    let mut lossy = watching(congestion);
    lossy.wide = loss(0.002);
    let mut all = vec![("free", free), ("full", full), ("lossy", lossy)];
    if congestion == "dctcp" {
        all.push(("marked", marked(40)));
        all.push(("marked much", marked(7)));
    }
    all
}

const ALGORITHMS: [&str; 4] = ["newreno", "cubic", "dctcp", "bbr"];

#[test]
fn reports_give_the_same_windows_as_observed_segments() {
    for congestion in ALGORITHMS {
        let mut setup = watching(congestion);
        setup.link.2 = ByteSize::MAX;
        let each = apart(&setup, EACH);
        assert_eq!(each.most, 0.0, "{congestion}: {each:?}");
    }
}

#[test]
fn reports_of_marks_give_the_same_windows_as_observed_segments() {
    let each = apart(&marked(40), EACH);
    assert_eq!(each.most, 0.0, "{each:?}");
}

/// All traces that are within 5 % in the table of docs/tcon.md.
#[test]
fn reports_of_many_acknowledgments_stay_within_a_twentieth() {
    const MOST: f64 = 0.05;
    for congestion in ALGORITHMS {
        for (name, setup) in traces(congestion) {
            let trace = trace(&setup, 8_000_000);
            for answers in [1, 4, 16] {
                let found = compare(&trace, &setup, batched_reports(answers));
                let what = format!("{congestion}, {name}, {answers} at a time: {found:?}");
                match (congestion, name) {
                    // A single wrong sample of the delivery rate stays for ten round trips.
                    ("bbr", "lossy") => {
                        assert!(found.median <= MOST && found.total.abs() <= MOST, "{what}");
                    }
                    _ => {
                        assert!(found.median <= MOST && found.p95 <= MOST, "{what}");
                        assert!(found.total.abs() <= MOST, "{what}");
                    }
                }
            }
        }
    }
}

/// For docs/tcon.md: cargo test -p weir-tcon --test streams table -- --ignored --nocapture
#[test]
#[ignore = "it only prints"]
fn table() {
    for congestion in ALGORITHMS {
        for (name, setup) in traces(congestion) {
            let trace = trace(&setup, 8_000_000);
            for reported in [
                EACH,
                batched_reports(1),
                batched_reports(4),
                batched_reports(16),
                batched_reports(32),
                batched_reports(64),
            ] {
                let found = compare(&trace, &setup, reported);
                eprintln!("{congestion} {name} {reported:?} {found:?}");
            }
        }
    }
}
