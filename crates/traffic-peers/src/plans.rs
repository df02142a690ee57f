//! The default measurement plans, and the command line options that change them. A transport that is
//! added to [`drivers`](weir_traffic_peers::drivers) must be added to the lists here and in `networks` too.

mod networks;

use weir_lab::network::NetworkKind;
use weir_traffic::calls::driver::Phase;
use weir_traffic::calls::identity::new_identity;
use weir_traffic::calls::mix::Workload;
use weir_traffic::calls::run::{self, BulkPlan, MixPlan, OpenMixPlan, Servers};
use weir_traffic::calls::{Error, Network, Placement, Plan, TransportSpecification};
use weir_units::{ByteSize, Duration};

use crate::arguments::Options;

pub(crate) use networks::networks;
#[cfg(test)]
pub(crate) use networks::{OVER_1500, OVER_9000, OVER_LINK};

/// A plan and the network that is made for it.
pub(crate) struct Step {
    /// The network; loopback if absent.
    pub(crate) kind: Option<NetworkKind>,
    /// The plan, still on loopback.
    pub(crate) plan: Plan,
}

impl From<Plan> for Step {
    fn from(plan: Plan) -> Self {
        Self { kind: None, plan }
    }
}

/// The transports of the latency plan.
pub(crate) const LATENCY: [&str; 8] = [
    "dcquic",
    "dcquic+spin",
    "tcp-tls",
    "floor",
    "floor+spin",
    "quinn",
    "quiche",
    "s2n-quic",
];

/// The transports of the bulk plan, with the packet sizes that each supports.
pub(crate) const BULK: [&str; 16] = [
    "dcquic@1452",
    "dcquic@8972",
    "dcquic@65000",
    "tcp-tls",
    "floor@1452",
    "floor@8972",
    "floor@65000",
    "quinn@1452",
    "quinn@8972",
    "quinn@65000",
    "quiche@1452",
    "quiche@8972",
    "quiche@65000",
    "s2n-quic@1452",
    "s2n-quic@8972",
    "s2n-quic",
];

/// The transports of the mixes.
pub(crate) const MIXES: [&str; 5] = ["dcquic", "tcp-tls", "quinn", "quiche", "s2n-quic"];

/// The transport that the load of mixes in an open loop is a part of.
const MIX_REFERENCE: &str = "tcp-tls";

/// The seed of the arrivals in these mixes.
const MIX_SEED: u64 = 1;

/// DCQUIC's packet sizes, with each of the paper's socket buffers.
const PACKET_SIZES: [&str; 6] = [
    "dcquic@1252+buffer=200KB",
    "dcquic@5000+buffer=200KB",
    "dcquic@8972+buffer=200KB",
    "dcquic@1252+buffer=1MB",
    "dcquic@5000+buffer=1MB",
    "dcquic@8972+buffer=1MB",
];

/// DCQUIC's packet sizes without and with the paper's size rule.
const RULES: [&str; 3] = ["dcquic@1252", "dcquic@8972", "dcquic+by-task"];

/// Time limit of a step.
const LIMIT: Duration = Duration::from_secs(60);

/// Time limit of a call in a mix.
const STALL: Duration = Duration::from_secs(10);

/// Returns all plans in the order in which they run.
pub(crate) fn all(options: &Options) -> Result<Vec<Step>, Error> {
    let on_loopback = [latency(options)?, bulk(options)?, mixes(options)?];
    let mut steps: Vec<Step> = on_loopback.map(Step::from).into();
    steps.extend(networks(options)?);
    Ok(steps)
}

/// Returns the plan for latencies at every placement.
pub(crate) fn latency(options: &Options) -> Result<Plan, Error> {
    let phases = if options.phases.is_empty() {
        Phase::ALL.to_vec()
    } else {
        options.phases.clone()
    };
    let established = options
        .iterations
        .unwrap_or(if options.quick { 1000 } else { 4000 });
    let sizes: Vec<ByteSize> = options
        .sizes
        .iter()
        .copied()
        .map(ByteSize::from_bytes)
        .collect();
    let placements = placements(options, &Placement::ALL);
    let mut plan = plan(options, &LATENCY, placements)?;
    plan.latencies = run::latencies(&phases, &sizes, established);
    Ok(plan)
}

/// Returns the plan for bulk downloads at several packet sizes, without pinning to cores.
pub(crate) fn bulk(options: &Options) -> Result<Plan, Error> {
    let placements = placements(options, &[Placement::Free]);
    let mut plan = plan(options, &BULK, placements)?;
    let (size, rounds) = if options.quick { (500, 2) } else { (1000, 3) };
    plan.bulk = Some(BulkPlan {
        size: ByteSize::from_bytes(size * 1_000_000),
        warm_up: ByteSize::from_bytes(50_000_000),
        rounds,
    });
    Ok(plan)
}

/// Returns the plan for the paper's mixes, without pinning to cores: as fast as each transport can, and
/// at half of the rate that TCP + TLS carries.
pub(crate) fn mixes(options: &Options) -> Result<Plan, Error> {
    let placements = placements(options, &[Placement::Free]);
    let mut plan = plan(options, &MIXES, placements)?;
    let calls = |normal, quick| if options.quick { quick } else { normal };
    plan.mixes = vec![
        MixPlan {
            workload: Workload::WebSearch,
            connections: 200,
            calls: calls(100, 40),
            stall: STALL,
        },
        MixPlan {
            workload: Workload::DataMining,
            connections: 200,
            calls: calls(6, 3),
            stall: STALL,
        },
    ];
    let half = |workload, calls| OpenMixPlan {
        workload,
        connections: 200,
        calls,
        rounds: 5,
        load: 0.5,
        reference: MIX_REFERENCE.to_owned(),
        seed: MIX_SEED,
        stall: STALL,
    };
    plan.open_mixes = vec![
        half(Workload::WebSearch, calls(100_000, 20_000)),
        half(Workload::DataMining, calls(3000, 1000)),
    ];
    Ok(plan)
}

/// Returns the plans for tasks at three packet sizes and two socket buffers, and for the mixes with
/// and without the rule that chooses the packet size (DCQUIC paper, section 4.2).
pub(crate) fn sizes(options: &Options) -> Result<Vec<Plan>, Error> {
    let placements = placements(options, &[Placement::TwoCores]);
    let mut tasks = plan(options, &PACKET_SIZES, placements)?;
    let calls = options
        .iterations
        .unwrap_or(if options.quick { 500 } else { 2000 });
    let sizes = [100_000, 1_000_000].map(ByteSize::from_bytes);
    tasks.latencies = run::latencies(&[Phase::Established], &sizes, calls);
    let mut by_rule = mixes(options)?;
    by_rule.open_mixes.clear();
    by_rule.transports = plan(options, &RULES, Vec::new())?.transports;
    Ok(vec![tasks, by_rule])
}

/// Returns the plans that measure the cost of a standby path while nothing fails.
pub(crate) fn armed(options: &Options) -> Result<Vec<Plan>, Error> {
    let names = ["dcquic", "dcquic+armed"];
    let choose = |mut planned: Plan| -> Result<Plan, Error> {
        planned.transports = plan(options, &names, Vec::new())?.transports;
        Ok(planned)
    };
    let mut calls = choose(latency(options)?)?;
    let iterations = options.iterations.unwrap_or(4000);
    let sizes = [10_000, 100_000].map(ByteSize::from_bytes);
    calls.latencies = run::latencies(&[Phase::Established], &sizes, iterations);
    Ok(vec![calls, choose(bulk(options)?)?])
}

fn placements(options: &Options, default: &[Placement]) -> Vec<Placement> {
    if options.placements.is_empty() {
        default.to_vec()
    } else {
        options.placements.clone()
    }
}

fn plan(options: &Options, default: &[&str], placements: Vec<Placement>) -> Result<Plan, Error> {
    let transports = if options.transports.is_empty() {
        default
            .iter()
            .map(|text| text.parse())
            .collect::<Result<Vec<TransportSpecification>, Error>>()?
    } else {
        options.transports.clone()
    };
    Ok(Plan {
        transports,
        placements,
        servers: Servers::Local(new_identity()?),
        network: Network::loopback(),
        latencies: Vec::new(),
        bulk: None,
        mixes: Vec::new(),
        open_mixes: Vec::new(),
        baselines: options.baselines(),
        limit: LIMIT,
        date: options.date.clone(),
    })
}
