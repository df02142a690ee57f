//! The plan of a measurement and its execution.

use std::collections::BTreeMap;

use crate::calls::driver::{Drivers, Phase};
use crate::calls::environment;
use crate::calls::error::Error;
use crate::calls::identity::TLS_PARAMETERS;
use crate::calls::message::Command;
use crate::calls::network;
use crate::calls::placement::Placement;
use crate::calls::process::Launcher;
use crate::calls::report::{Environment, Failure, Measurement, Report};
use crate::calls::specification::TransportSpecification;
use crate::calls::statistics::Summary;

mod bulk;
mod mixes;
mod pair;
mod plan;
mod samples;

pub use plan::{BulkPlan, Latency, MixPlan, OpenMixPlan, Plan, RemoteServer, Servers, latencies};

use pair::{Pair, Setting};
use samples::Samples;

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
    let open: u64 = plan.open_mixes.iter().map(|of| u64::from(of.rounds)).sum();
    let each = latency + bulk + plan.mixes.len() as u64 + open;
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
                network: &self.plan.network,
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
                    self.fail(specification, self.situation("starting", placement), &error);
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
        for mix in &self.plan.open_mixes {
            self.open_mix(placement, mix, &mut contenders);
        }
        Ok(())
    }

    fn supports(&self, specification: &TransportSpecification, phase: Phase) -> bool {
        self.drivers
            .get(&specification.driver)
            .is_ok_and(|driver| driver.supports(phase))
    }

    /// Returns what is measured and where, for progress and failures.
    fn situation(&self, what: &str, placement: Placement) -> String {
        let network = network::suffix(&self.plan.network.name);
        format!("{what}, {placement}{network}")
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
        let what = self.situation(&format!("{phase} {size_bytes} B"), placement);
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
                self.plan.network.name.clone(),
                &summary,
            );
            self.report.measurements.push(
                measurement.with_teardown(samples.teardown()).with_costs(
                    samples
                        .processor_per_call()
                        .map(|of| (of.client, of.server)),
                    samples.interrupts_per_call(),
                ),
            );
        }
    }
}

/// Returns the part of `whole` for one of `rounds` rounds; the parts add up to `whole`.
fn share(whole: u32, rounds: u32, round: u32) -> u32 {
    let extra = u32::from(round < whole % rounds.max(1));
    whole / rounds.max(1) + extra
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
}
