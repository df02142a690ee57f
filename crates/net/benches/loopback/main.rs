//! One flow over loopback, from one process to another: DCUDP, raw UDP in batches, DCQUIC and the
//! kernel's TCP. `cargo bench -p weir-net --bench loopback [-- TRANSPORT…]`, or `make bench-dcudp`.
//!
//! Each end is a process of its own with one thread. The output is the median of several rounds:
//! bytes received per second, and CPU time of each end per received GB (10⁹ bytes). Raw UDP has no
//! flow control: data for which its receiver is too slow are lost, and not counted.
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]
#![allow(clippy::print_stdout, reason = "what was measured is printed")]

mod ends;
mod raw;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Rounds of each transport, one after the other.
const ROUNDS: usize = 5;
/// Sending time of a round.
const SPAN: Duration = Duration::from_secs(2);
/// UDP payload of a packet: fits a link MTU of 1500 bytes over IPv6.
const PACKET: usize = 1452;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Raw,
    Dcudp,
    /// By buffers of the application: two copies more.
    DcudpCopied,
    DcudpKeyed,
    Dcquic,
    Tcp,
}

const ALL: [Transport; 6] = [
    Transport::Raw,
    Transport::Dcudp,
    Transport::DcudpCopied,
    Transport::DcudpKeyed,
    Transport::Dcquic,
    Transport::Tcp,
];

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw-udp",
            Self::Dcudp => "dcudp",
            Self::DcudpCopied => "dcudp-copied",
            Self::DcudpKeyed => "dcudp-keyed",
            Self::Dcquic => "dcquic",
            Self::Tcp => "tcp",
        }
    }

    fn named(name: &str) -> Self {
        let found = ALL.into_iter().find(|transport| transport.name() == name);
        found.unwrap_or_else(|| panic!("there is no `{name}`; there are {ALL:?}"))
    }
}

/// The result of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    gbps: f64,
    sender_per_gb: f64,
    receiver_per_gb: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["receive", name] => return ends::receive(Transport::named(name)),
        ["send", name, address, fingerprint] => {
            return ends::send(Transport::named(name), address, fingerprint);
        }
        _ => {}
    }
    let named: Vec<Transport> = words
        .iter()
        .filter(|word| !word.starts_with('-'))
        .map(|name| Transport::named(name))
        .collect();
    let chosen = if named.is_empty() {
        ALL.to_vec()
    } else {
        named
    };
    let mut rounds = vec![Vec::new(); chosen.len()];
    for _ in 0..ROUNDS {
        for (transport, rounds) in chosen.iter().zip(&mut rounds) {
            rounds.push(round(*transport));
        }
    }
    let reference = chosen.iter().position(|it| *it == Transport::Raw);
    let reference = reference.map(|index| median(&rounds[index], |round| round.gbps));
    println!(
        "{:<12} {:>8} {:>8} {:>10} {:>10} {:>10}",
        "", "Gbit/s", "of raw", "s/GB out", "s/GB in", "s/GB"
    );
    for (transport, rounds) in chosen.iter().zip(&rounds) {
        let gbps = median(rounds, |round| round.gbps);
        let share =
            reference.map_or_else(String::new, |raw| format!("{:.0} %", 100.0 * gbps / raw));
        let sender = median(rounds, |round| round.sender_per_gb);
        let receiver = median(rounds, |round| round.receiver_per_gb);
        println!(
            "{:<12} {gbps:>8.2} {share:>8} {sender:>10.3} {receiver:>10.3} {:>10.3}",
            transport.name(),
            sender + receiver
        );
    }
}

fn median(rounds: &[Round], of: fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs both ends once.
fn round(transport: Transport) -> Round {
    let program = std::env::current_exe().unwrap();
    let mut receiver = Command::new(&program)
        .args(["receive", transport.name()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let (address, fingerprint) = line.split_once(' ').unwrap();
    let sender = Command::new(&program)
        .args(["send", transport.name(), address, fingerprint])
        .output()
        .unwrap();
    assert!(sender.status.success(), "{transport:?}: {sender:?}");
    let result = lines.next().unwrap().unwrap();
    receiver.wait().unwrap();
    let numbers: Vec<f64> = result
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let [bytes, seconds, receiver_cpu] = numbers[..] else {
        panic!("{result}");
    };
    let sender_cpu: f64 = String::from_utf8(sender.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    Round {
        gbps: 8e-9 * bytes / seconds,
        sender_per_gb: 1e9 * sender_cpu / bytes,
        receiver_per_gb: 1e9 * receiver_cpu / bytes,
    }
}

/// Returns the CPU time of this process so far, in seconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
