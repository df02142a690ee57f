//! Deadline statistics: which transfers were in time, and how many could have been.

use std::collections::HashMap;

use indexmap::IndexMap;
use weir_results::{DeadlineSummary, PortDeadlines};
use weir_scenario::{HostIndex, Node, PortIndex, Routes, Scenario, Topology};
use weir_sed::schedule::{Job, ReleasedJob, most_in_time, most_in_time_preemptive};
use weir_units::{ByteSize, Duration, Rate, Time};

/// A transfer with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTransfer {
    /// Its start.
    pub start: Time,
    /// The time by which all of it must have arrived.
    pub deadline: Time,
    /// When all of it had arrived.
    pub end: Option<Time>,
    /// Its size.
    pub size: ByteSize,
    /// The sender.
    pub from: HostIndex,
    /// The receiver.
    pub to: HostIndex,
}

impl DueTransfer {
    /// Whether it was late, or has not arrived at all.
    pub fn is_missed(&self) -> bool {
        self.end.is_none_or(|end| end > self.deadline)
    }

    fn job(&self, begin: Time) -> Job {
        Job {
            size: self.size,
            due: self.deadline.since(begin),
        }
    }
}

/// Summarizes the transfers that began from `begin` on and had ended or were due by `now`; `None` if
/// there are none.
pub fn deadline_summary(
    scenario: &Scenario,
    begin: Time,
    mut all: Vec<DueTransfer>,
    now: Time,
) -> Option<DeadlineSummary> {
    all.retain(|transfer| transfer.start >= begin);
    if all.is_empty() {
        return None;
    }
    all.sort_by_key(|transfer| (transfer.start, transfer.deadline));
    let busy = busy(&all, now);
    let carried: ByteSize = (all.iter())
        .filter(|transfer| transfer.end.is_some())
        .map(|transfer| transfer.size)
        .sum();
    let ports = by_port(scenario, &all);
    let fewest_missed = ports.values().map(|port| port.fewest_missed).sum();
    Some(DeadlineSummary {
        transfers: all.len() as u64,
        missed: all.iter().filter(|transfer| transfer.is_missed()).count() as u64,
        fewest_missed: (!ports.is_empty()).then_some(fewest_missed),
        busy,
        goodput: Rate::average(carried, busy),
        // A single port repeats the totals.
        ports: if ports.len() > 1 {
            ports
        } else {
            IndexMap::new()
        },
    })
}

/// Returns how long at least one transfer was active. The transfers are sorted by start.
fn busy(transfers: &[DueTransfer], now: Time) -> Duration {
    let mut busy = Duration::ZERO;
    let mut until = Time::ZERO;
    for transfer in transfers {
        let (start, end) = (transfer.start.max(until), transfer.end.unwrap_or(now));
        busy += end.checked_since(start).unwrap_or(Duration::ZERO);
        until = until.max(end);
    }
    busy
}

/// Summarizes the transfers by their bottleneck among the measured ports; transfers without one are left
/// out. The transfers are sorted by start. Each belongs to one port, so the minima of all ports add up.
fn by_port(scenario: &Scenario, transfers: &[DueTransfer]) -> IndexMap<String, PortDeadlines> {
    let (topology, routes) = (&scenario.topology, scenario.topology.routes());
    let mut known: HashMap<(HostIndex, HostIndex), Option<PortIndex>> = HashMap::new();
    let mut of_port: Vec<Vec<DueTransfer>> = vec![Vec::new(); scenario.measurements.ports.len()];
    for transfer in transfers {
        let (from, to) = (transfer.from, transfer.to);
        let port = known
            .entry((from, to))
            .or_insert_with(|| bottleneck(scenario, &routes, from, to));
        let position = port.and_then(|port| position_of(scenario, port));
        if let Some(location) = position.and_then(|position| of_port.get_mut(position)) {
            location.push(*transfer);
        }
    }
    let ports = scenario.measurements.ports.iter().zip(of_port);
    let ports = ports.filter(|(_, transfers)| !transfers.is_empty());
    let summary = |(port, transfers): (&PortIndex, Vec<DueTransfer>)| {
        let missed = transfers.iter().filter(|transfer| transfer.is_missed());
        let summary = PortDeadlines {
            transfers: transfers.len() as u64,
            missed: missed.count() as u64,
            fewest_missed: fewest_missed(&transfers, data_rate(topology, *port)),
        };
        (topology.port(*port).name.clone(), summary)
    };
    ports.map(summary).collect()
}

/// Returns the position of a port among the measured ones.
fn position_of(scenario: &Scenario, port: PortIndex) -> Option<usize> {
    let mut ports = scenario.measurements.ports.iter();
    ports.position(|measured| *measured == port)
}

/// Returns the slowest measured port on the path from one host to the other, the first of several; `None`
/// if there is none. The path ends where there are several next hops.
fn bottleneck(
    scenario: &Scenario,
    routes: &Routes,
    from: HostIndex,
    to: HostIndex,
) -> Option<PortIndex> {
    let topology = &scenario.topology;
    let mut on_the_way = Vec::new();
    let mut ways = routes.from_host(from, to);
    while let [port] = ways[..] {
        // A route from the scenario file may form a loop.
        if on_the_way.contains(&port) {
            break;
        }
        on_the_way.push(port);
        ways = match topology.port(port).to {
            Node::Switch(switch) => routes.from_switch(switch, to).to_vec(),
            Node::Host(_) => break,
        };
    }
    let measured = on_the_way.into_iter();
    let measured = measured.filter(|port| position_of(scenario, *port).is_some());
    measured.min_by_key(|port| data_rate(topology, *port))
}

/// Returns the payload rate of a port: each packet carries TCP's headers without options and the link's
/// framing.
fn data_rate(topology: &Topology, port: PortIndex) -> Rate {
    const HEADERS: u64 = 40;
    let port = topology.port(port);
    let mtu = port.mtu.bytes();
    let wire = (mtu + port.framing.bytes()).max(1);
    port.rate
        .mul_f64(mtu.saturating_sub(HEADERS) as f64 / wire as f64)
}

/// Returns how many transfers must miss their deadlines under any schedule of those that overlap. Where
/// these are too many to search all schedules, it assumes that they could all begin with the first. The
/// transfers are sorted by start.
fn fewest_missed(transfers: &[DueTransfer], rate: Rate) -> u64 {
    let mut until = Time::ZERO;
    let mut rounds: Vec<Vec<DueTransfer>> = Vec::new();
    for transfer in transfers {
        match rounds.last_mut().filter(|_| transfer.start <= until) {
            Some(round) => round.push(*transfer),
            None => rounds.push(vec![*transfer]),
        }
        until = until.max(transfer.end.unwrap_or(Time::MAX));
    }
    rounds
        .into_iter()
        .map(|round| missed_count(round, rate))
        .sum()
}

/// More transfers than this are not searched.
const MOST_SEARCHED: usize = 32;

/// Returns how many of these must be late.
fn missed_count(mut round: Vec<DueTransfer>, rate: Rate) -> u64 {
    let Some(begin) = round.first().map(|first| first.start) else {
        return 0;
    };
    if round.len() <= MOST_SEARCHED && round.iter().any(|transfer| transfer.start > begin) {
        let jobs: Vec<_> = round
            .iter()
            .map(|transfer| ReleasedJob {
                release: transfer.start.since(begin),
                due: transfer.deadline.since(begin),
                size: transfer.size,
            })
            .collect();
        if let Some(met) = most_in_time_preemptive(&jobs, rate) {
            return (jobs.len() - met) as u64;
        }
    }
    round.sort_by_key(|transfer| transfer.deadline);
    let jobs: Vec<_> = round.iter().map(|transfer| transfer.job(begin)).collect();
    let in_time = most_in_time(&jobs, rate).into_iter().filter(|met| *met);
    (jobs.len() - in_time.count()) as u64
}
