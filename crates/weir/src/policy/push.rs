//! `weir policy push`

use std::path::PathBuf;

use clap::Args;
use weir_control::policy_v1 as v1;
use weir_policy::GuardCondition;
use weir_rollout::Stages;
use weir_units::Duration;

use super::controllers::{ControllerArguments, named};
use super::simulate::{RefusalCondition, Simulated};
use crate::arguments::seconds;
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy push`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy push policy.toml --as alice --message 'DCTCP for the web servers'
  weir policy push policy.toml --as alice -m 'DCTCP' --stages '10 % of role=web, then 50 %, then all' \\
       --wait 10min --guard 'retransmits > 2x for 1min' --guard 'cpu > 1.2x for 1min'
  weir policy push policy.toml --as alice -m 'DCTCP' --simulate fabric.toml --refuse-if 'completion.p99_s > 1.1x'
  weir policy status --watch                            where it is; `weir policy undo` stops it

A version goes to one stage of hosts after the other. Between two stages it waits, once all attached hosts of the stage
have it, and compares what hosts with it and hosts without it report. If a guard's condition holds, all hosts go back by
themselves. Hosts that are not attached get it when they come.

--simulate runs a scenario under the version that is everywhere (A) and under this one (B) first, and prints both.")]
pub(crate) struct Push {
    /// Policy file; docs/policy.md describes its format
    file: PathBuf,

    #[command(flatten)]
    controllers: ControllerArguments,

    /// Why, for the log
    #[arg(long, short, value_name = "TEXT")]
    message: String,

    /// Parts of the hosts, one after the other
    #[arg(long, value_name = "STAGES", default_value_t = Stages::at_once())]
    stages: Stages,

    /// How long the hosts of a stage have it before the next stage begins
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "1min")]
    wait: Duration,

    /// Condition under which all hosts go back: METRIC > VALUE for TIME (repeatable)
    #[arg(long, value_name = "CONDITION", value_parser = GuardCondition::of_hosts)]
    guard: Vec<GuardCondition>,

    /// How many hosts may refuse it before all hosts go back
    #[arg(long, value_name = "N", default_value_t = 0)]
    refusals: u64,

    /// Scenario file, or the name of a shipped one, to simulate first
    #[arg(long, value_name = "SCENARIO")]
    simulate: Option<PathBuf>,

    /// With --simulate: do not push if this holds of a group or a port: MEASURE > FACTORx of the version before
    /// (repeatable)
    #[arg(long, value_name = "CONDITION", requires = "simulate")]
    refuse_if: Vec<RefusalCondition>,

    /// With --simulate: write the results of both to this directory
    #[arg(long, value_name = "DIR", requires = "simulate")]
    out: Option<PathBuf>,

    /// Go beyond the version of hosts whose decision this controller's store does not know
    #[arg(long)]
    supersede: bool,

    /// Simulate and check only; push nothing
    #[arg(long)]
    dry_run: bool,
}

impl Push {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.check_stages()?;
        let policy = weir_scenario::load_policy(&self.file).map_err(Failure::of)?;
        let text = std::fs::read_to_string(&self.file);
        let text =
            text.map_err(|error| Failure::of(format!("{}: {error}", self.file.display())))?;
        let controllers = self.controllers.open()?;
        let simulated = match &self.simulate {
            Some(scenario) => {
                let before = controllers.version(None)?;
                let simulated = Simulated::run(scenario, &before, &policy, self.out.as_deref())?;
                output::print(&simulated.text())?;
                simulated.check(&self.refuse_if)?;
                simulated.summary(scenario, &self.refuse_if)
            }
            None => String::new(),
        };
        if self.dry_run {
            return output::print("nothing is pushed (--dry-run)\n");
        }
        let request = v1::PushRequest {
            message: self.message.clone(),
            text,
            plan: Some(v1::Plan {
                stages: self.stages.to_string(),
                wait_nanoseconds: self.wait.as_nanos(),
                guards: self.guard.iter().map(GuardCondition::to_string).collect(),
                refusals: self.refusals,
            }),
            simulated,
            supersede: self.supersede,
        };
        let pushed = controllers.ask(|client| async move { client.push(request).await })?;
        output::print(&format!(
            "{} is on its way: {}\n",
            named(pushed.version),
            self.stages
        ))
    }

    fn check_stages(&self) -> Result<(), Failure> {
        let is_at_once = self.stages.list().len() == 1;
        if is_at_once && !self.guard.is_empty() {
            let problem = "all hosts have it at once, and none is left to compare with: write --stages such as \
                           '10 %, then all'";
            return Err(Failure::option("guard", problem));
        }
        let longest = self.guard.iter().map(|guard| guard.duration).max();
        match longest.filter(|longest| *longest > self.wait) {
            Some(longest) => Err(Failure::option(
                "wait",
                format!(
                    "a guard needs {longest}, and the stage is over after {}",
                    self.wait
                ),
            )),
            None => Ok(()),
        }
    }
}
