//! The plan of a measurement and its execution.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_net::tls::Identity;
use weir_units::{ByteSize, Duration};

use crate::calls::driver::{Drivers, Phase};
use crate::calls::environment;
use crate::calls::error::Error;
use crate::calls::identity::TLS_PARAMETERS;
use crate::calls::message::Command;
use crate::calls::mix::{MixTimes, Workload};
use crate::calls::placement::Placement;
use crate::calls::process::Launcher;
use crate::calls::report::{Bulk, Environment, Failure, Measurement, Mix, Report};
use crate::calls::specification::TransportSpecification;
use crate::calls::statistics::Summary;
use crate::tls::Trust;

mod pair;
mod samples;

use pair::{Pair, Setting};
use samples::Samples;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The transports, which alternate.
    pub transports: Vec<TransportSpecification>,
    /// The placements of the processes.
    pub placements: Vec<Placement>,
    /// The location of the servers.
    pub servers: Servers,
    /// The latencies to measure; may be empty.
    pub latencies: Vec<Latency>,
    /// The downloads to measure.
    pub bulk: Option<BulkPlan>,
    /// The mixes to run.
    pub mixes: Vec<MixPlan>,
    /// The baselines of the ratios.
    pub baselines: Vec<String>,
    /// The time limit of each single step.
    pub limit: Duration,
    /// The date for the report.
    pub date: String,
}

/// The location of the servers.
#[derive(Clone, Debug)]
pub enum Servers {
    /// On loopback, started by this run, with this certificate.
    Local(Identity),
    /// On another machine, started there.
    Remote {
        /// Address of each transport's server.
        addresses: BTreeMap<String, RemoteServer>,
        /// The certificate to trust.
        trust: Trust,
    },
}

/// One transport's server on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteServer {
    /// The server without early data.
    pub full: SocketAddr,
    /// The server with early data, if there is one.
    pub early_data: Option<SocketAddr>,
}

impl RemoteServer {
    /// Returns the servers that [`standing::listen`](crate::calls::standing::listen) binds at an
    /// address: the one with early data has the next port.
    #[must_use]
    pub fn at(full: SocketAddr) -> Self {
        let early_data = full
            .port()
            .checked_add(1)
            .map(|port| SocketAddr::new(full.ip(), port));
        Self { full, early_data }
    }
}

/// A latency to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The phase to measure.
    pub phase: Phase,
    /// Size of the reply; zero for handshakes.
    pub size: ByteSize,
    /// Measured times per transport, over all rounds.
    pub iterations: u32,
    /// Rounds in which the transports alternate.
    pub rounds: u32,
    /// Iterations at the start of each round that are not measured.
    pub warm_up: u32,
}

/// Returns the latencies of all these phases and sizes, with the default rounds and warm-up. Calls
/// on an open connection are measured `iterations` times, new connections a quarter as often.
#[must_use]
pub fn latencies(phases: &[Phase], sizes: &[ByteSize], iterations: u32) -> Vec<Latency> {
    let mut all = Vec::new();
    for phase in phases {
        let (iterations, warm_up) = match phase {
            Phase::Established => (iterations, 100),
            _ => (iterations.div_ceil(4), 5),
        };
        let sizes = match phase {
            Phase::Handshake => &[ByteSize::ZERO][..],
            _ => sizes,
        };
        all.extend(sizes.iter().map(|size| Latency {
            phase: *phase,
            size: *size,
            iterations,
            rounds: 5,
            warm_up,
        }));
    }
    all
}

/// Downloads to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkPlan {
    /// Bytes per round.
    pub size: ByteSize,
    /// Bytes before on the same connection that are not measured.
    pub warm_up: ByteSize,
    /// Rounds in which the transports alternate.
    pub rounds: u32,
}

/// A mix to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixPlan {
    /// The mix.
    pub workload: Workload,
    /// Concurrent connections.
    pub connections: u32,
    /// Calls on each connection.
    pub calls: u32,
    /// The time after which a call counts as stalled.
    pub stall: Duration,
}

/// The progress of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Completed steps.
    pub done: u64,
    /// Total steps.
    pub total: u64,
    /// The next step.
    pub now: String,
}

/// Runs a plan. `launcher` starts each transport's client and server processes. `progress` is
/// called before each step.
///
/// A failure of one transport is recorded in the report, and the others continue.
///
/// # Errors
/// The plan names an unknown transport or placement.
pub fn run(
    plan: &Plan,
    drivers: &Drivers,
    launcher: &Launcher,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, Error> {
    for specification in &plan.transports {
        drivers.get(&specification.driver)?;
    }
    let mut runner = Runner {
        plan,
        drivers,
        launcher,
        report: Report {
            environment: describe(plan, drivers)?,
            ..Report::default()
        },
        progress,
        done: 0,
        total: steps(plan),
    };
    for placement in &plan.placements {
        runner.placement(*placement)?;
    }
    let mut report = runner.report;
    report.compare(&plan.baselines);
    Ok(report)
}

fn steps(plan: &Plan) -> u64 {
    let latency: u64 = plan.latencies.iter().map(|of| u64::from(of.rounds)).sum();
    let bulk = plan.bulk.map_or(0, |bulk| u64::from(bulk.rounds));
    let each = latency + bulk + plan.mixes.len() as u64;
    each * plan.transports.len() as u64 * plan.placements.len() as u64
}

fn describe(plan: &Plan, drivers: &Drivers) -> Result<Environment, Error> {
    let mut placements = BTreeMap::new();
    for placement in &plan.placements {
        let processors = placement.processors()?;
        let text = if processors.client.is_empty() {
            "any processor".to_owned()
        } else {
            format!(
                "client on {:?}, server on {:?}",
                processors.client, processors.server
            )
        };
        placements.insert(placement.to_string(), text);
    }
    let versions = plan
        .transports
        .iter()
        .map(|specification| {
            let driver = drivers.get(&specification.driver)?;
            Ok((specification.driver.clone(), driver.version()))
        })
        .collect::<Result<_, Error>>()?;
    Ok(Environment {
        date: plan.date.clone(),
        kernel: environment::kernel(),
        processor: environment::processor_model(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        tls: TLS_PARAMETERS.to_owned(),
        kernel_congestion: environment::kernel_congestion(),
        versions,
        placements,
        notes: BTreeMap::new(),
    })
}

struct Runner<'a> {
    plan: &'a Plan,
    drivers: &'a Drivers,
    launcher: &'a Launcher,
    report: Report,
    progress: &'a mut dyn FnMut(&Progress),
    done: u64,
    total: u64,
}

/// A transport in one placement; without processes once they have failed.
struct MeasuredTransport<'a> {
    specification: &'a TransportSpecification,
    pair: Option<Pair>,
}

impl Runner<'_> {
    fn placement(&mut self, placement: Placement) -> Result<(), Error> {
        let processors = placement.processors()?;
        let mut contenders = Vec::new();
        for specification in &self.plan.transports {
            let wants_early_data = self
                .plan
                .latencies
                .iter()
                .any(|latency| latency.phase == Phase::Resumed)
                && self.supports(specification, Phase::Resumed);
            let setting = Setting {
                specification,
                servers: &self.plan.servers,
                bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
                early_data: wants_early_data,
                processors: &processors,
                limit: self.plan.limit,
            };
            let pair = match Pair::start(self.launcher, &setting) {
                Ok(pair) => {
                    self.report
                        .environment
                        .notes
                        .insert(specification.to_string(), pair.notes().to_vec());
                    Some(pair)
                }
                Err(error) => {
                    self.fail(specification, format!("starting, {placement}"), &error);
                    None
                }
            };
            contenders.push(MeasuredTransport {
                specification,
                pair,
            });
        }
        for latency in &self.plan.latencies {
            self.latency(placement, latency, &mut contenders);
        }
        if let Some(bulk) = self.plan.bulk {
            self.bulk(placement, bulk, &mut contenders);
        }
        for mix in &self.plan.mixes {
            self.mix(placement, *mix, &mut contenders);
        }
        Ok(())
    }

    fn supports(&self, specification: &TransportSpecification, phase: Phase) -> bool {
        self.drivers
            .get(&specification.driver)
            .is_ok_and(|driver| driver.supports(phase))
    }

    fn fail(&mut self, specification: &TransportSpecification, what: String, error: &Error) {
        self.report.failures.push(Failure {
            transport: specification.to_string(),
            what,
            message: error.to_string(),
        });
    }

    /// Executes one step of a transport that still runs, and records its failure.
    fn step<T>(
        &mut self,
        contender: &mut MeasuredTransport<'_>,
        what: &str,
        step: impl FnOnce(&mut Pair) -> Result<T, Error>,
    ) -> Option<T> {
        let now = format!("{}, {what}", contender.specification);
        (self.progress)(&Progress {
            done: self.done,
            total: self.total,
            now,
        });
        self.done += 1;
        match step(contender.pair.as_mut()?) {
            Ok(value) => Some(value),
            Err(error) => {
                // After an error that the worker itself reports it is usable; after any other it is
                // not.
                if !matches!(error, Error::Worker { .. }) {
                    contender.pair = None;
                }
                self.fail(contender.specification, what.to_owned(), &error);
                None
            }
        }
    }

    fn latency(
        &mut self,
        placement: Placement,
        latency: &Latency,
        contenders: &mut [MeasuredTransport<'_>],
    ) {
        let phase = latency.phase;
        let size_bytes = match phase {
            Phase::Handshake => 0,
            _ => latency.size.bytes(),
        };
        let what = format!("{phase} {size_bytes} B, {placement}");
        let mut samples: Vec<Option<Samples>> = contenders
            .iter()
            .map(|contender| {
                self.supports(contender.specification, phase)
                    .then(Samples::default)
            })
            .collect();
        for round in 0..latency.rounds {
            let command = Command::Measure {
                phase,
                size_bytes,
                warm_up: latency.warm_up,
                iterations: share(latency.iterations, latency.rounds, round),
            };
            for (contender, samples) in contenders.iter_mut().zip(&mut samples) {
                let Some(so_far) = samples else {
                    self.done += 1;
                    continue;
                };
                match self.step(contender, &what, |pair| pair.samples(&command)) {
                    Some(block) => so_far.add(block, latency.warm_up),
                    // After one failure, the situation is not measured further.
                    None => *samples = None,
                }
            }
        }
        for (contender, samples) in contenders.iter().zip(samples) {
            let Some(mut samples) = samples else { continue };
            let Some(summary) = Summary::of(&mut samples.times) else {
                continue;
            };
            let measurement = Measurement::new(
                contender.specification.to_string(),
                phase,
                size_bytes,
                placement,
                &summary,
            );
            self.report.measurements.push(
                measurement
                    .with_teardown(samples.teardown())
                    .with_costs(samples.processor_per_call(), samples.interrupts_per_call()),
            );
        }
    }

    fn bulk(
        &mut self,
        placement: Placement,
        plan: BulkPlan,
        contenders: &mut [MeasuredTransport<'_>],
    ) {
        let what = format!("bulk {} B, {placement}", plan.size.bytes());
        let mut rounds: Vec<Option<Vec<pair::Download>>> =
            contenders.iter().map(|_| Some(Vec::new())).collect();
        for _ in 0..plan.rounds {
            for (contender, downloads) in contenders.iter_mut().zip(&mut rounds) {
                let Some(so_far) = downloads else {
                    self.done += 1;
                    continue;
                };
                match self.step(contender, &what, |pair| pair.download(plan)) {
                    Some(download) => so_far.push(download),
                    None => *downloads = None,
                }
            }
        }
        let gigabytes = plan.size.bytes() as f64 / 1e9;
        for (contender, downloads) in contenders.iter().zip(rounds) {
            let Some(downloads) = downloads.filter(|downloads| !downloads.is_empty()) else {
                continue;
            };
            let of = |value: fn(&pair::Download) -> f64| median(downloads.iter().map(value));
            let server = downloads
                .iter()
                .map(|download| download.server.map(Duration::as_secs_f64))
                .collect::<Option<Vec<f64>>>()
                .map(|seconds| median(seconds.into_iter()) / gigabytes);
            let client = of(|download| download.client.as_secs_f64()) / gigabytes;
            self.report.bulk.push(Bulk {
                transport: contender.specification.to_string(),
                placement,
                size_bytes: plan.size.bytes(),
                rounds: downloads.len(),
                gbit_per_s: 8.0 * gigabytes / of(|download| download.elapsed.as_secs_f64()),
                cpu_s_per_gb: server.map(|server| server + client),
                client_cpu_s_per_gb: client,
                server_cpu_s_per_gb: server,
            });
        }
    }

    fn mix(
        &mut self,
        placement: Placement,
        plan: MixPlan,
        contenders: &mut [MeasuredTransport<'_>],
    ) {
        let what = format!("{} mix, {placement}", plan.workload.name());
        let command = Command::Mix {
            connections: plan.connections,
            calls: plan.calls,
            sizes_bytes: plan
                .workload
                .sizes()
                .iter()
                .map(|size| size.bytes())
                .collect(),
            stall_ns: plan.stall.as_nanos(),
        };
        for contender in contenders {
            let Some(times) = self.step(contender, &what, |pair| pair.mix(&command)) else {
                continue;
            };
            let transport = contender.specification.to_string();
            self.report
                .mixes
                .push(mix_row(transport, placement, plan, times));
        }
    }
}

fn mix_row(transport: String, placement: Placement, plan: MixPlan, mut times: MixTimes) -> Mix {
    let summary = Summary::of(&mut times.completed_ns);
    let microseconds = |of: fn(&Summary) -> Duration| {
        summary
            .as_ref()
            .map_or(0.0, |summary| of(summary).as_nanos() as f64 / 1e3)
    };
    Mix {
        transport,
        workload: plan.workload.name().to_owned(),
        placement,
        connections: plan.connections,
        completed: times.completed_ns.len(),
        errors: times.errors,
        stalls: times.stalls,
        first_error: times.first_error,
        median_us: microseconds(Summary::median),
        p99_us: microseconds(Summary::p99),
        p999_us: microseconds(Summary::p999),
        gbit_per_s: 8.0 * times.bytes as f64 / times.elapsed_ns.max(1) as f64,
    }
}

/// Returns the part of `whole` for one of `rounds` rounds; the parts add up to `whole`.
fn share(whole: u32, rounds: u32, round: u32) -> u32 {
    let extra = u32::from(round < whole % rounds.max(1));
    whole / rounds.max(1) + extra
}

/// Returns the median; the upper one of the middle two, or 0 without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_rounds_share_all_iterations(whole in 0_u32..10_000, rounds in 1_u32..50) {
            let parts: Vec<u32> = (0..rounds).map(|round| share(whole, rounds, round)).collect();
            prop_assert_eq!(parts.iter().sum::<u32>(), whole);
            prop_assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median(std::iter::empty()), 0.0);
    }
}
