//! Inline enforcement while kernel TCP at the ends uses ECN: super-packets stay whole, which the rate depends
//! on.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_enforce::segment::Segment;
use weir_fabric::{Element, Output, Packet, PortIndex};
use weir_units::Time;
use weir_wire::tcp::Flags;

use crate::in_line::{CLIENT, DOWNLOADS, Row, set_ecn};
use crate::namespace::{Namespace, possible};
use crate::running::Running;
use crate::support::run;

/// A bridge behind the enforcer that counts data.
#[derive(Debug, Default)]
struct Counter {
    counts: Arc<Counts>,
    /// The number of the last frame with data.
    last: Option<u64>,
}

#[derive(Debug, Default)]
struct Counts {
    segments: AtomicU64,
    frames: AtomicU64,
    /// Segments with CWR. Of a super-packet these are counted as a network card would set it: the first.
    with_cwr: AtomicU64,
}

impl Counts {
    fn read(&self) -> [u64; 3] {
        [&self.segments, &self.frames, &self.with_cwr].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Element<Segment> for Counter {
    fn process(
        &mut self,
        _: Time,
        ingress: PortIndex,
        packet: Segment,
        out: &mut Output<'_, Segment>,
    ) {
        if let Some(segment) = packet.tcp().filter(|segment| segment.payload > 0) {
            let add = |count: &AtomicU64, one: bool| {
                count.fetch_add(u64::from(one), Ordering::Relaxed);
            };
            let number = packet.burst().map(|burst| burst.id);
            add(&self.counts.segments, true);
            add(&self.counts.frames, number != self.last);
            add(&self.counts.with_cwr, segment.flags.contains(Flags::CWR));
            self.last = number;
        }
        out.forward(ingress, packet);
    }
}

/// Returns the frames that an interface has sent, super-packets counted once.
fn frames_sent(namespace: &Namespace) -> u64 {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("eth0:"));
    let column = line.unwrap().split_whitespace().nth(9);
    column.unwrap().parse().unwrap()
}

/// The server opens a connection and sends; the client reads until its end.
fn upload(row: &Row, port: u16, amount: u64) {
    let listener = (row.client).run(move || TcpListener::bind((CLIENT, port)).unwrap());
    let mut to = (row.server).run(move || TcpStream::connect((CLIENT, port)).unwrap());
    let (mut from, _) = listener.accept().unwrap();
    let receiver = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        std::iter::repeat_with(|| from.read(&mut buffer).unwrap() as u64)
            .take_while(|count| *count > 0)
            .sum::<u64>()
    });
    to.write_all(&vec![1; amount as usize]).unwrap();
    drop(to);
    assert_eq!(receiver.join().unwrap(), amount);
}

#[test]
fn super_packets_stay_whole_with_ecn_at_the_ends() {
    if !possible("super_packets_stay_whole_with_ecn_at_the_ends") {
        return;
    }
    const AMOUNT: u64 = 2_000_000;
    let counter = Counter::default();
    let counts = Arc::clone(&counter.counts);
    let row = Row::with(counter);
    let all = run(&["algorithms", "--json"]).json();
    let all = all.as_array().unwrap().iter();
    let all: Vec<_> = all.map(|one| one["name"].as_str().unwrap()).collect();
    assert!(all.contains(&"cubic") && all.contains(&"dctcp"), "{all:?}");
    let policy = |algorithm| match algorithm {
        // On a busy machine each round trip is above its usual target, and its window below a packet.
        "swift" => format!("{DOWNLOADS}{{ name = \"swift\", base_target = \"1s\" }}\n"),
        _ => format!("{DOWNLOADS}\"{algorithm}\"\n"),
    };
    let running = Running::start(&row.middle, &policy("cubic"), &["--inline", "lan0", "wan0"]);
    let mut ports = 8100..;
    for algorithm in all {
        running.reload(&policy(algorithm)).ok();
        for ecn in [0, 1, 2] {
            set_ecn(&row.server, ecn);
            set_ecn(&row.client, ecn);
            let (before, sent) = (counts.read(), frames_sent(&row.server));
            upload(&row, ports.next().unwrap(), AMOUNT);
            let sent = frames_sent(&row.server) - sent;
            let after = counts.read();
            let [segments, frames, with_cwr] = [0, 1, 2].map(|index| after[index] - before[index]);
            let seen = format!(
                "{algorithm}, ecn {ecn}: {segments} segments, {sent} frames, {frames} after, {with_cwr} with CWR"
            );
            println!("{seen}");
            assert!(segments >= AMOUNT / 1_500, "{seen}");
            // An end with `2` accepts ECN, and does not offer it.
            let counts_marks = match algorithm {
                "dctcp" | "d2tcp" => ecn > 0,
                "dcudp-proportional" | "dcudp-rtt-fair" => ecn == 1,
                _ => false,
            };
            if counts_marks {
                // Repeated segments have none.
                assert!(with_cwr >= frames / 2, "frames begin with CWR: {seen}");
            } else {
                // Nothing marks here. But the sender's TCP sets CWR after every reduction of its own.
                assert!(with_cwr <= 5 + frames / 4, "{seen}");
            }
            // Pacing splits super-packets by time.
            if matches!(algorithm, "newreno" | "cubic" | "dctcp" | "d2tcp") {
                assert!(frames <= 2 * sent + 50, "{seen}");
            }
        }
    }
}
