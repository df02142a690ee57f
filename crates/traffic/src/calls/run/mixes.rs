//! Mixes: in a closed loop, and in an open loop at a part of the load that a transport can carry.

use weir_units::{ByteSize, Duration};

use super::plan::{MixPlan, OpenMixPlan};
use super::{MeasuredTransport, Runner, share};
use crate::calls::error::Error;
use crate::calls::message::Command;
use crate::calls::mix::{MixTimes, Workload};
use crate::calls::placement::Placement;
use crate::calls::report::Mix;
use crate::calls::statistics::Summary;

/// What a mix is, apart from its transport.
struct Situation {
    workload: Workload,
    placement: Placement,
    connections: u32,
    /// The rate of the arrivals; absent in a closed loop.
    offered_per_s: Option<f64>,
}

impl Runner<'_> {
    pub(super) fn mix(
        &mut self,
        placement: Placement,
        plan: MixPlan,
        contenders: &mut [MeasuredTransport<'_>],
    ) {
        let what = self.situation(&format!("{} mix", plan.workload.name()), placement);
        let command = Command::Mix {
            connections: plan.connections,
            calls: plan.calls,
            sizes_bytes: sizes(plan.workload),
            stall_ns: plan.stall.as_nanos(),
        };
        let situation = Situation {
            workload: plan.workload,
            placement,
            connections: plan.connections,
            offered_per_s: None,
        };
        self.run_mix(&what, &[command], &situation, contenders);
    }

    pub(super) fn open_mix(
        &mut self,
        placement: Placement,
        plan: &OpenMixPlan,
        contenders: &mut [MeasuredTransport<'_>],
    ) {
        let name = plan.workload.name();
        let what = self.situation(&format!("{name} mix at {} load", plan.load), placement);
        let Some(carried) = self.carried_per_s(placement, plan) else {
            let reference = plan.reference.clone();
            let error = Error::NoRate { reference };
            self.done += u64::from(plan.rounds) * contenders.len() as u64;
            if let Some(first) = contenders.first() {
                self.fail(first.specification, what, &error);
            }
            return;
        };
        let rate_per_s = plan.load * carried;
        let round = |round| Command::OpenMix {
            connections: plan.connections,
            calls: share(plan.calls, plan.rounds, round),
            sizes_bytes: sizes(plan.workload),
            rate_per_s,
            seed: plan.seed.wrapping_add(u64::from(round)),
            stall_ns: plan.stall.as_nanos(),
        };
        let commands: Vec<_> = (0..plan.rounds).map(round).collect();
        let situation = Situation {
            workload: plan.workload,
            placement,
            connections: plan.connections,
            offered_per_s: Some(rate_per_s),
        };
        self.run_mix(&what, &commands, &situation, contenders);
    }

    /// Returns the rate that the reference carried in a closed loop; `None` if that was not measured.
    fn carried_per_s(&self, placement: Placement, plan: &OpenMixPlan) -> Option<f64> {
        let mut rows = self.report.mixes.iter();
        let row = rows.find(|row| {
            row.transport == plan.reference
                && row.workload == plan.workload.name()
                && row.placement == placement
                && row.offered_per_s.is_none()
        })?;
        (row.calls_per_s > 0.0).then_some(row.calls_per_s)
    }

    /// Runs a mix with all transports, a command per round.
    fn run_mix(
        &mut self,
        what: &str,
        commands: &[Command],
        situation: &Situation,
        contenders: &mut [MeasuredTransport<'_>],
    ) {
        let mut all = vec![Some(MixTimes::default()); contenders.len()];
        for command in commands {
            for (contender, times) in contenders.iter_mut().zip(&mut all) {
                let Some(so_far) = times else {
                    self.done += 1;
                    continue;
                };
                match self.step(contender, what, |pair| pair.mix(command)) {
                    Some(round) => so_far.add(round),
                    // After one failure, the mix is not measured further.
                    None => *times = None,
                }
            }
        }
        for (contender, times) in contenders.iter().zip(all) {
            let Some(times) = times else { continue };
            let transport = contender.specification.to_string();
            let network = self.plan.network.name.clone();
            let row = mix_row(transport, network, situation, times);
            self.report.mixes.push(row);
        }
    }
}

fn sizes(workload: Workload) -> Vec<u64> {
    workload.sizes().into_iter().map(ByteSize::bytes).collect()
}

fn mix_row(transport: String, network: String, situation: &Situation, mut times: MixTimes) -> Mix {
    let calls_per_s = times.calls_per_s();
    let summary = Summary::of(&mut times.completed_ns);
    let microseconds = |of: fn(&Summary) -> Duration| {
        summary
            .as_ref()
            .map_or(0.0, |summary| of(summary).as_nanos() as f64 / 1e3)
    };
    Mix {
        transport,
        workload: situation.workload.name().to_owned(),
        placement: situation.placement,
        network,
        connections: situation.connections,
        offered_per_s: situation.offered_per_s,
        calls_per_s,
        client_busy: situation
            .offered_per_s
            .is_none()
            .then(|| times.client_busy()),
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
