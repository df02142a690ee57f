//! What is simulated: dumbbells with many flows, scenario files, a fat tree; and one run of it in this
//! process.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use weir_scenario::{Document, Scenario, Setting};
use weir_sim::{Simulation, Threads};
use weir_units::Duration;

/// The metrics of one run. Binaries of earlier commits print the first four.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SpeedFigures {
    /// The packets that left the measured ports.
    pub(crate) packets: u64,
    pub(crate) simulated_s: f64,
    /// CPU time of the simulation alone, on all its threads.
    pub(crate) cpu_s: f64,
    pub(crate) peak_rss_bytes: u64,
    /// CPU time before the first event: reading the scenario, routes, hosts.
    #[serde(default)]
    pub(crate) setup_s: f64,
    /// What all flows delivered.
    #[serde(default)]
    pub(crate) delivered_bytes: u64,
    /// Wall-clock time of the simulation alone.
    #[serde(default)]
    pub(crate) wall_s: f64,
}

impl SpeedFigures {
    pub(crate) fn packets_per_cpu_second(&self) -> f64 {
        self.packets as f64 / self.cpu_s
    }

    pub(crate) fn ns_per_packet(&self) -> f64 {
        1e9 / self.packets_per_cpu_second()
    }
}

/// A dumbbell with bulk flows. Its JSON is an argument of this program, and of the binaries of earlier
/// commits that it is compared with: a new key would be lost on them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) dctcp_hosts: u32,
    pub(crate) cubic_hosts: u32,
    pub(crate) flows_per_host: u32,
    /// The number of segments per ACK.
    pub(crate) ack_every: u32,
    /// In megabytes; the drop-tail threshold for CUBIC is below it.
    pub(crate) buffer_mb: f64,
    pub(crate) duration_ms: u64,
}

/// What a program is asked to simulate.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Case(Case),
    /// A scenario file and settings such as `duration=5s`.
    Scenario {
        path: String,
        settings: Vec<String>,
    },
    /// A scenario on this number of threads.
    Threads {
        threads: usize,
        path: String,
        settings: Vec<String>,
    },
}

/// The argument that makes this program run one [`Case`] and print its metrics.
pub(crate) const RUN_CASE: &str = "--run-case";

/// The same for a scenario file; settings follow it.
pub(crate) const RUN_SCENARIO: &str = "--run-scenario";

/// The same on a number of threads, which comes before the file.
pub(crate) const RUN_ON_THREADS: &str = "--run-on-threads";

/// The argument that makes this program print the text of the row that it names, for a run by other means.
pub(crate) const PRINT_SCENARIO: &str = "--print-scenario";

impl Work {
    /// Returns the arguments that make a binary of this benchmark run it.
    pub(crate) fn arguments(&self) -> Result<Vec<String>, Box<dyn Error>> {
        Ok(match self {
            Self::Case(case) => vec![RUN_CASE.to_owned(), serde_json::to_string(case)?],
            Self::Scenario { path, settings } => {
                let mut arguments = vec![RUN_SCENARIO.to_owned(), path.clone()];
                arguments.extend_from_slice(settings);
                arguments
            }
            Self::Threads {
                threads,
                path,
                settings,
            } => {
                let threads = threads.to_string();
                let mut arguments = vec![RUN_ON_THREADS.to_owned(), threads, path.clone()];
                arguments.extend_from_slice(settings);
                arguments
            }
        })
    }
}

/// Runs what `arguments` ask for in this process; `None` if they ask for nothing.
pub(crate) fn run_arguments(arguments: &[String]) -> Result<Option<SpeedFigures>, Box<dyn Error>> {
    match arguments {
        [mode, case, ..] if mode == RUN_CASE => {
            let case: Case = serde_json::from_str(case)?;
            let scenario = || Ok(Scenario::parse("speed", &case.scenario(), &[])?.scenario);
            run(scenario, Threads::ONE).map(Some)
        }
        [mode, path, settings @ ..] if mode == RUN_SCENARIO => {
            run(|| load(path, settings), Threads::ONE).map(Some)
        }
        [mode, threads, path, settings @ ..] if mode == RUN_ON_THREADS => {
            let threads = Threads::up_to(threads.parse()?);
            run(|| load(path, settings), threads).map(Some)
        }
        [mode, ..] if [RUN_CASE, RUN_SCENARIO, RUN_ON_THREADS].contains(&mode.as_str()) => {
            Err(format!("{mode} needs a value").into())
        }
        _ => Ok(None),
    }
}

/// Loads a scenario file with these settings.
fn load(path: &str, settings: &[String]) -> Result<Scenario, Box<dyn Error>> {
    let settings: Result<Vec<Setting>, _> = settings.iter().map(|text| text.parse()).collect();
    let document = Document::load(Path::new(path))?;
    Ok(document.with(&settings?)?.scenario()?)
}

fn run(
    scenario: impl FnOnce() -> Result<Scenario, Box<dyn Error>>,
    threads: Threads,
) -> Result<SpeedFigures, Box<dyn Error>> {
    let start = cpu_seconds();
    let mut simulation = Simulation::with_threads(scenario()?, threads)?;
    if let Some(reason) = simulation.fewer_threads() {
        return Err(format!("{} threads: {reason}", simulation.threads()).into());
    }
    simulation.set_thread_time(|| Duration::from_nanos((cpu_seconds() * 1e9) as u64));
    let end = simulation.end();
    let (before, begin) = (cpu_seconds(), Instant::now());
    simulation.advance(end, &mut ())?;
    let (after, wall) = (cpu_seconds(), begin.elapsed());
    let others_s = simulation.others_time().as_secs_f64();
    let summary = simulation.finish(&mut ())?;
    let groups = summary.groups.values();
    Ok(SpeedFigures {
        packets: summary.ports.values().map(|port| port.packets).sum(),
        simulated_s: summary.simulated.as_secs_f64(),
        cpu_s: after - before + others_s,
        wall_s: wall.as_secs_f64(),
        peak_rss_bytes: peak_memory()?,
        setup_s: before - start,
        delivered_bytes: groups.map(|group| group.delivered.bytes()).sum(),
    })
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the largest resident set of this process so far.
fn peak_memory() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.ok_or("no VmHWM in /proc/self/status")?.parse()?;
    Ok(kilobytes * 1024)
}

impl Case {
    fn scenario(&self) -> String {
        let group = |name: &str, hosts: u32, rtt: &str| {
            if hosts == 0 {
                return String::new();
            }
            format!(
                r#"
                [dumbbell.senders.{name}]
                count = {hosts}
                rtt = "{rtt}"
                [groups.{name}]
                from = "{name}"
                to = "receiver"
                flows = {flows}
                congestion = "{name}"
                workload = "bulk"
                start_within = "10ms"
                [groups.{name}.tcp]
                ack_every = {ack_every}
                send_buffer = "2MB"
                receive_buffer = "2MB"
                "#,
                flows = self.flows_per_host,
                ack_every = self.ack_every,
            )
        };
        dumbbell(
            self.duration_ms,
            self.buffer_mb,
            &(group("dctcp", self.dctcp_hosts, "50us") + &group("cubic", self.cubic_hosts, "25ms")),
        )
    }
}

/// Returns the text of a dumbbell with these senders and groups.
fn dumbbell(duration_ms: u64, buffer_mb: f64, senders: &str) -> String {
    format!(
        r#"
        title = "How fast the simulator is"
        source = "crates/sim/benches/speed"
        duration = "{duration_ms}ms"
        [dumbbell]
        rate = "25Gbps"
        delay = "12500ns"
        framing = "2B"
        queue = {{ kind = "shared", buffer = "{buffer_mb}MB", ecn_threshold = "100KB", red_min = "800KB", red_max = "800KB", drop_probability = 0.05 }}
        {senders}
        "#
    )
}

/// Returns the text of the row called `name`, if it is a scenario of this benchmark.
pub(crate) fn text(name: &str, duration_us: u64) -> Option<String> {
    match name {
        "dcquic-20" => Some(dcquic(20, duration_us / 1000)),
        "fat-tree" => Some(fat_tree(16, duration_us)),
        _ => None,
    }
}

/// Returns the text of the dumbbell with `hosts` DCQUIC hosts under DCTCP, one flow each. Packets are as
/// large as TCP's.
fn dcquic(hosts: u32, duration_ms: u64) -> String {
    let senders = format!(
        r#"
        [dumbbell.senders.dctcp]
        count = {hosts}
        rtt = "50us"
        [groups.dctcp]
        from = "dctcp"
        to = "receiver"
        transport = "quic"
        congestion = "dctcp"
        workload = "bulk"
        start_within = "10ms"
        [groups.dctcp.quic]
        packet_size = "1472B"
        "#
    );
    dumbbell(duration_ms, 1.8, &senders)
}

/// A port of the fat tree. It is the only measured one of a timed run, because measurements take time.
pub(crate) const FAT_TREE_PORT: &str = r#"measurements.ports="edge-1-1->host-1-1-1""#;

/// Measures all ports, so that the packets of a run are its hops.
pub(crate) const ALL_PORTS: &str = r#"measurements.ports="*""#;

/// Returns the text of a fat tree of switches with `k` ports: k³/4 hosts, each with one DCTCP flow to the
/// next host in one random cycle through all of them. Links have 100 Gbps and 1 µs.
fn fat_tree(k: usize, duration_us: u64) -> String {
    let half = k / 2;
    let mut text = format!(
        r#"
        title = "How fast the simulator is in a fat tree"
        source = "crates/sim/benches/speed"
        duration = "{duration_us}us"
        [queues.fabric]
        kind = "step"
        ecn_threshold = "100KB"
        buffer = "1MB"
        [measurements]
        ports = "*"
        sample_interval = "1s"
        "#
    );
    let mut links = String::new();
    let mut link = |from: &str, to: &str, queue: &str| {
        let _ = write!(
            links,
            r#"
            [[links]]
            from = "{from}"
            to = "{to}"
            rate = "100Gbps"
            delay = "1us"
            {queue}
            reverse_queue = "fabric"
            "#
        );
    };
    let mut names = Vec::new();
    let mut switches = Vec::new();
    for pod in 1..=k {
        for edge in 1..=half {
            let _ = writeln!(text, "[hosts.host-{pod}-{edge}-]\ncount = {half}");
            names.extend((1..=half).map(|host| format!("host-{pod}-{edge}-{host}")));
            let switch = format!("edge-{pod}-{edge}");
            link(&format!("host-{pod}-{edge}-"), &switch, "");
            switches.push(switch);
        }
        switches.extend((1..=half).map(|aggregation| format!("agg-{pod}-{aggregation}")));
        let queue = r#"queue = "fabric""#;
        link(&format!("edge-{pod}-*"), &format!("agg-{pod}-*"), queue);
    }
    for group in 1..=half {
        switches.extend((1..=half).map(|core| format!("core-{group}-{core}")));
        let queue = r#"queue = "fabric""#;
        link(&format!("agg-*-{group}"), &format!("core-{group}-*"), queue);
    }
    for switch in switches {
        let _ = writeln!(text, "[switches.{switch}]");
    }
    let order = shuffled(names.len());
    let receivers = order.iter().skip(1).chain(order.first());
    let list = |hosts: &mut dyn Iterator<Item = &usize>| {
        let quoted: Vec<_> = hosts.map(|host| format!("{:?}", names[*host])).collect();
        quoted.join(", ")
    };
    let (from, to) = (list(&mut order.iter()), list(&mut receivers.into_iter()));
    let _ = write!(
        text,
        r#"
        {links}
        [groups.dctcp]
        from = [{from}]
        to = [{to}]
        pairing = "one-to-one"
        congestion = "dctcp"
        workload = "bulk"
        start_within = "10us"
        [groups.dctcp.tcp]
        ack_every = 1
        "#
    );
    text
}

/// Returns the numbers below `count` in a random order, the same each time (Fisher and Yates's shuffle).
fn shuffled(count: usize) -> Vec<usize> {
    let mut numbers: Vec<_> = (0..count).collect();
    // Knuth's MMIX generator; its upper bits are random enough for a shuffle.
    let mut state = 1_u64;
    for last in (1..count).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        numbers.swap(last, (state >> 33) as usize % (last + 1));
    }
    numbers
}
