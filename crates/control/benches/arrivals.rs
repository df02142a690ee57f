//! The time from an agent's report of a new flow until its order, by gRPC with mutual TLS over
//! loopback: 10,000 arrivals a second at a congested port with 1,000 open flows, the controller on one
//! core.
//!
//! `cargo bench -p weir-control --bench arrivals [-- SECONDS]`, 60 s by default. It takes two cores:
//! one for the controller, one for the agent and the measurement.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run ends")]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use weir_control::certificates::Authority;
use weir_control::{
    AgentChannel, AgentEvent, AgentOptions, AgentState, Controller, ControllerOptions, Credentials,
    EpochFile, PortDescription, Role,
};
use weir_sed::{ControllerConfig, Demand, DemandRule, Method, SwitchReport, WindowOrder};
use weir_units::{ByteSize, Duration as Span, Rate};
use weir_wire::FlowKey;

/// The interval between arrivals.
const EVERY: Duration = Duration::from_micros(100);
/// The lifetime of certificates.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The number of open flows.
const OPEN: u32 = 1000;

fn flow(number: u32) -> FlowKey {
    let [_, b, c, d] = number.to_be_bytes();
    FlowKey {
        source: IpAddr::from([10, b, c, d]),
        destination: IpAddr::from([10, 255, 255, 255]),
        source_port: 40_000,
        destination_port: 80,
        protocol: FlowKey::TCP,
    }
}

fn number(flow: &FlowKey) -> usize {
    match flow.source {
        IpAddr::V4(address) => (address.to_bits() & 0xff_ffff) as usize,
        IpAddr::V6(_) => usize::MAX,
    }
}

fn certificates(directory: &std::path::Path) -> [Credentials; 2] {
    let authority = Authority::open(directory).unwrap();
    [
        ("controller", Role::Controller),
        ("switch", Role::Switch("tor".to_owned())),
    ]
    .map(|(name, role)| {
        authority.issue(name, &[role], &[], DAY).unwrap();
        Credentials::from_directory(directory, name).unwrap()
    })
}

/// Starts a controller on the first core. Returns its address, and a function that ends it and returns
/// its CPU time.
fn controller(
    credentials: Credentials,
    method: Method,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<Duration>) {
    let (sender, address) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    // Every flow has a deadline: 20 KB within 100 ms. The reverse direction has none, and is not in the
    // table.
    let rule = DemandRule {
        destination_ports: vec![80..=80],
        demand: Some(Demand {
            size: ByteSize::from_bytes(20_000),
            within: Span::from_millis(100),
        }),
        ..DemandRule::default()
    };
    let thread = thread::spawn(move || {
        pin(0);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = ControllerOptions {
                listen: ([127, 0, 0, 1], 0).into(),
                credentials,
                state: EpochFile::ephemeral().unwrap(),
                config: ControllerConfig {
                    method,
                    ..ControllerConfig::paper()
                },
                rules: vec![rule],
                flows_per_client: 1000,
                policies: None,
                metrics: None,
            };
            let controller = Controller::bind(options).await.unwrap();
            sender.send(controller.address()).unwrap();
            let stop = async { drop(stopped.await) };
            controller.run(stop).await.unwrap();
        });
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
    });
    (address.recv().unwrap(), stop, thread)
}

/// Pins the calling thread, and those that it starts, to one core.
fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if let Err(error) = sched_setaffinity(None, &cores) {
        println!("not on a core of its own: {error}");
    }
}

fn agent(
    runtime: &tokio::runtime::Runtime,
    controller: SocketAddr,
    credentials: Credentials,
) -> AgentChannel {
    let _entered = runtime.enter();
    let measuring = thread::current();
    let port = PortDescription {
        number: 0,
        name: "eth0".to_owned(),
        rate: Rate::from_gbps(10),
        buffer: None,
        behind: Vec::new(),
    };
    AgentChannel::start(AgentOptions {
        controllers: vec![controller.to_string()],
        credentials,
        name: "tor".to_owned(),
        ports: vec![port],
        wake: Some(Arc::new(move || measuring.unpark())),
        metrics: None,
    })
}

/// Opens and closes flows for this long. Returns how long each waited for its window, and how many got
/// none.
fn measure(channel: &mut AgentChannel, seconds: u32) -> (Vec<Duration>, usize) {
    let count = (Duration::from_secs(seconds.into()).as_nanos() / EVERY.as_nanos()) as u32 + OPEN;
    let mut sent: Vec<Option<Instant>> = vec![None; count as usize];
    let mut took = Vec::with_capacity(count as usize);
    channel.report(SwitchReport::Congested { port: 0 });
    let begin = Instant::now();
    let end = begin + EVERY * count + Duration::from_secs(1);
    let mut next = 0;
    while Instant::now() < end {
        while next < count && begin + EVERY * next <= Instant::now() {
            begin_flow(channel, next);
            sent[next as usize] = Some(Instant::now());
            if let Some(over) = next.checked_sub(OPEN) {
                channel.report(SwitchReport::Closed { flow: flow(over) });
            }
            next += 1;
        }
        while let Some(event) = channel.next_event() {
            let AgentEvent::Order(WindowOrder::Allow { flow, .. }) = event else {
                continue;
            };
            let number = number(&flow);
            let first = sent.get_mut(number).and_then(Option::take);
            // The flows that fill the table first are not counted.
            took.extend(
                first
                    .filter(|_| number >= OPEN as usize)
                    .map(|at| at.elapsed()),
            );
        }
        thread::park_timeout(EVERY / 2);
    }
    let left = sent.iter().skip(OPEN as usize).flatten().count();
    (took, left)
}

fn begin_flow(channel: &mut AgentChannel, number: u32) {
    let flow = flow(number);
    channel.report(SwitchReport::Opened {
        flow,
        port: 0,
        age: Span::ZERO,
        demand: None,
    });
    channel.report(SwitchReport::Accepted {
        flow,
        segment: 1460,
        reverse_port: 0,
    });
}

fn main() {
    let said = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let seconds = said.unwrap_or(60);
    pin(1);
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    println!(
        "10,000 arrivals per second for {seconds} s, {OPEN} flows open: from the report to the order, by gRPC"
    );
    for method in [Method::Paper, Method::Planned] {
        let directory = tempfile::tempdir().unwrap();
        let [own, switch] = certificates(directory.path());
        let (address, stop, thread) = controller(own, method);
        let mut channel = agent(&runtime, address, switch);
        let state = channel.state();
        while !matches!(*state.borrow(), AgentState::Attached { .. }) {
            thread::sleep(Duration::from_millis(10));
        }
        let (mut took, left) = measure(&mut channel, seconds);
        drop(channel);
        let _ = stop.send(());
        let spent = thread.join().unwrap();
        took.sort();
        let part = |part: usize| match took.get(took.len() * part / 1000) {
            Some(took) => took.as_secs_f64() * 1e6,
            None => f64::NAN,
        };
        println!(
            "{:>8}: p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us; {} of {} without an order; controller {:.1} s of CPU",
            format!("{method:?}"),
            part(500),
            part(990),
            part(999),
            left,
            took.len() + left,
            spent.as_secs_f64(),
        );
    }
}
