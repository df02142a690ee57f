//! Which transfers were in time, and how many could have been.

use weir_results::DeadlineSummary;
use weir_scenario::Scenario;
use weir_sed::schedule::{Job, most_in_time};
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::measure::rate;
use crate::world::World;

/// A transfer with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTransfer {
    /// When it began.
    pub start: Time,
    /// When everything has to have arrived.
    pub deadline: Time,
    /// When everything had arrived.
    pub end: Option<Time>,
    /// How much it is.
    pub size: ByteSize,
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

/// A group's transfers that were due by `now`.
fn due(world: &World, group: u32, now: Time) -> impl Iterator<Item = DueTransfer> {
    let over = world.flows.accounts()[group as usize].due.iter().copied();
    let flows = world
        .flows
        .iter()
        .filter(move |(_, flow)| flow.group == group);
    let open = flows.filter_map(|(_, flow)| flow.due_transfer());
    over.chain(open.filter(move |transfer| transfer.deadline <= now))
}

/// How many of a group's transfers were late, if it has deadlines.
pub(crate) fn missed(world: &World, group: u32, now: Time) -> Option<u64> {
    world.deadline_of(group)?;
    let missed = due(world, group, now).filter(DueTransfer::is_missed);
    Some(missed.count() as u64)
}

/// How all transfers with deadlines went, if there are any.
pub(crate) fn summary(world: &World, scenario: &Scenario, now: Time) -> Option<DeadlineSummary> {
    let groups = 0..scenario.groups.len() as u32;
    let all = groups.flat_map(|group| due(world, group, now));
    deadline_summary(scenario, Time::ZERO + scenario.warm_up, all.collect(), now)
}

/// How transfers went that began from `begin` on and were over or due by `now`, if there are any.
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
    Some(DeadlineSummary {
        transfers: all.len() as u64,
        missed: all.iter().filter(|transfer| transfer.is_missed()).count() as u64,
        fewest_missed: slowest(scenario).map(|rate| fewest_missed(&all, rate)),
        busy,
        goodput: rate(carried.bytes(), busy),
    })
}

/// How long at least one transfer was under way; they are in the order of their starts.
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

/// The rate at which the slowest of the measured ports carries data: TCP's headers without options and the
/// link's framing belong to each packet.
fn slowest(scenario: &Scenario) -> Option<Rate> {
    const HEADERS: u64 = 40;
    let ports = scenario.measurements.ports.iter();
    let rates = ports.map(|port| {
        let port = scenario.topology.port(*port);
        let mtu = port.mtu.bytes();
        let wire = (mtu + port.framing.bytes()).max(1);
        port.rate
            .mul_f64(mtu.saturating_sub(HEADERS) as f64 / wire as f64)
    });
    rates.min()
}

/// How many had to be late, whatever is done with those that were under way in one go: it takes as given
/// that all of them can begin with the first. They are in the order of their starts.
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
    rounds.into_iter().map(|round| late(round, rate)).sum()
}

/// How many of these have to be late.
fn late(mut round: Vec<DueTransfer>, rate: Rate) -> u64 {
    let Some(begin) = round.first().map(|first| first.start) else {
        return 0;
    };
    round.sort_by_key(|transfer| transfer.deadline);
    let jobs: Vec<_> = round.iter().map(|transfer| transfer.job(begin)).collect();
    let in_time = most_in_time(&jobs, rate).into_iter().filter(|met| *met);
    (jobs.len() - in_time.count()) as u64
}
