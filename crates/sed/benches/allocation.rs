//! The controller's CPU time over the number of flows: a computation of all windows of a port, and
//! flows that arrive and end at a fixed rate with 1,000 of them open.
//!
//! `cargo bench -p weir-sed`
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::net::IpAddr;
use std::time::Instant;

use weir_sed::{Controller, ControllerConfig, Demand, DemandTable, Method, PortId, SwitchReport};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::FlowKey;

const PORT: PortId = PortId { switch: 0, port: 0 };

fn flow(number: u32) -> FlowKey {
    let [a, b, c, d] = number.to_be_bytes();
    FlowKey {
        source: IpAddr::from([10, b, c, d]),
        destination: IpAddr::from([10, 255, 255, 255]),
        source_port: 40_000 + u16::from(a),
        destination_port: 80,
        protocol: FlowKey::TCP,
    }
}

/// A port with this many flows, every tenth without deadline.
fn controller(method: Method, flows: u32) -> Controller {
    let config = ControllerConfig {
        method,
        flows_per_port: usize::MAX,
        idle: Duration::from_secs(3600),
        ..ControllerConfig::paper()
    };
    let mut controller = Controller::new(config, DemandTable::new(Vec::new(), usize::MAX));
    controller.add_port(PORT, Rate::from_gbps(100));
    for number in 0..flows {
        open(&mut controller, Time::ZERO, number);
    }
    controller
}

fn open(controller: &mut Controller, now: Time, number: u32) {
    let flow = flow(number);
    if !number.is_multiple_of(10) {
        // Deadlines in random order.
        let stirred = u64::from(number.wrapping_mul(2_654_435_761));
        let demand = Demand {
            size: ByteSize::from_bytes(20_000 + stirred % 1_000_000),
            within: Duration::from_nanos(10_000_000 + stirred),
        };
        let registered = (controller.demands_mut()).register(flow.source, flow, demand);
        assert_eq!(registered, Ok(()));
    }
    controller.receive(
        now,
        PORT.switch,
        SwitchReport::Opened {
            flow,
            port: PORT.port,
            age: Duration::ZERO,
            demand: None,
        },
    );
}

fn take_orders(controller: &mut Controller) -> usize {
    std::iter::from_fn(|| controller.next_order()).count()
}

fn main() {
    println!("computation of all windows of a port, one core");
    println!(
        "{:>9}  {:>9}  {:>10}  {:>10}  {:>8}",
        "flows", "method", "median", "longest", "ns/flow"
    );
    for method in [Method::Paper, Method::Planned] {
        for flows in [1_000, 10_000, 30_000, 100_000, 300_000] {
            let mut controller = controller(method, flows);
            let mut took: Vec<_> = (0..21_u64)
                .map(|round| {
                    let now = Time::from_nanos(1000 + round * 1_000_000);
                    let port = PORT.port;
                    controller.receive(now, PORT.switch, SwitchReport::Congested { port });
                    let begin = Instant::now();
                    controller.handle_timeout(now);
                    let took = begin.elapsed();
                    take_orders(&mut controller);
                    took
                })
                .collect();
            took.sort();
            let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
            println!(
                "{flows:>9}  {:>9}  {:>8.3}ms  {:>8.3}ms  {:>8.1}",
                format!("{method:?}"),
                median.as_secs_f64() * 1e3,
                longest.as_secs_f64() * 1e3,
                median.as_secs_f64() * 1e9 / f64::from(flows),
            );
        }
    }
    arrivals();
}

/// 10,000 flows per second arrive at a congested port, and each lasts 100 ms.
fn arrivals() {
    const COUNT: u32 = 600_000;
    const OPEN: u32 = 1000;
    let mut controller = controller(Method::Paper, OPEN);
    let port = PORT.port;
    controller.receive(Time::ZERO, PORT.switch, SwitchReport::Congested { port });
    controller.handle_timeout(Time::ZERO);
    let begin = Instant::now();
    let mut took = Vec::with_capacity(COUNT as usize);
    for number in 0..COUNT {
        let now = Time::from_nanos(u64::from(number + 1) * 100_000);
        let begin = Instant::now();
        let gone = flow(number);
        controller.receive(now, PORT.switch, SwitchReport::Closed { flow: gone });
        open(&mut controller, now, number + OPEN);
        controller.handle_timeout(now);
        take_orders(&mut controller);
        took.push(begin.elapsed());
    }
    let total = begin.elapsed();
    took.sort();
    let percentile = |part: usize| took[took.len() * part / 1000].as_secs_f64() * 1e6;
    println!(
        "\n10,000 arrivals per second for 60 s, {OPEN} flows open: {:.1} s of CPU; until all windows are \
         ordered: p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us",
        total.as_secs_f64(),
        percentile(500),
        percentile(990),
        percentile(999),
    );
}
