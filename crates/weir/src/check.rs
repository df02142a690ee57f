//! `weir check`

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use weir_scenario::{
    GroupUnderPolicy, LoadedScenario, Position, Problem, Scenario, ScenarioError, Setting, Workload,
};

use crate::failure::Failure;
use crate::output;
use crate::scenarios::{self, ScenarioArguments};

/// The arguments of `weir check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir check my.toml                                   its mistakes, or all of it written out
  weir check incast --set parameters.servers=20        a scenario that ships, with another value
  weir check my.toml --policy policy.toml              the same under the rules of a policy
  weir check my.toml --json                            for programs

A scenario without mistakes is printed in the general form: every host, link and default. That text
is a scenario file itself; what the file's variants are stands above it. Exit code 1 tells of
mistakes.")]
pub(crate) struct Check {
    #[command(flatten)]
    chosen: ScenarioArguments,

    /// Print JSON, mistakes included
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self.chosen.load(&self.chosen.settings(None)) {
            Ok(loaded) => {
                let (loaded, groups) = self.chosen.under_policy(loaded)?;
                scenarios::check_simulation(&loaded)?;
                if self.json {
                    output::print_json(&Expanded::of(&loaded, &groups))
                } else {
                    output::print(&self.text(&loaded, &groups)?)
                }
            }
            Err(ScenarioError::Invalid { problems }) if self.json => {
                let mistakes = problems.iter().map(Mistake::of).collect();
                output::print_json(&Mistakes { mistakes })?;
                Err(Failure::Failed(format!(
                    "{}: {} found",
                    self.chosen.name(),
                    count(problems.len() as u64, "mistake"),
                )))
            }
            Err(error) => Err(self.chosen.failure(&error)),
        }
    }

    fn text(
        &self,
        loaded: &LoadedScenario,
        groups: &[GroupUnderPolicy],
    ) -> Result<String, Failure> {
        let scenario = &loaded.scenario;
        let topology = &scenario.topology;
        let flows = scenario.groups.iter().map(|group| group.flow_count());
        let facts = [
            count(topology.hosts.len() as u64, "host"),
            count(topology.ports.len() as u64 / 2, "link"),
            count(flows.sum::<u64>() + traced_flows(scenario), "flow"),
            count(loaded.variants.len() as u64, "variant"),
        ];
        let mut out = format!("# {}: {}\n", self.chosen.name(), facts.join(", "));
        for variant in &loaded.variants {
            let settings: Vec<_> = variant.settings.iter().map(Setting::to_string).collect();
            let _ = writeln!(out, "# variant {}: {}", variant.name, settings.join(", "));
        }
        for group in groups {
            let _ = writeln!(out, "# policy: {group}");
        }
        for (class, load) in loads(scenario) {
            let _ = writeln!(out, "# load of {class}: {:.1} %", 100.0 * load);
        }
        for warning in scenario.warnings() {
            let _ = writeln!(out, "# warning: {warning}");
        }
        // Names of files and variants may contain any characters; they must not control a terminal
        // or end a comment.
        out = out.lines().map(|line| format!("{line}\n")).collect();
        out.retain(|character| character == '\n' || !character.is_control());
        out.push('\n');
        out.push_str(&toml::to_string(scenario).map_err(Failure::of)?);
        Ok(out)
    }
}

/// Returns the number of flows that traces have.
fn traced_flows(scenario: &Scenario) -> u64 {
    let traces = scenario.groups.iter().map(|group| match &group.workload {
        Workload::Trace { trace } => trace.flows.len() as u64,
        _ => 0,
    });
    traces.sum()
}

/// Returns the loads of the classes of links, if flows arrive at random and the loads are known.
fn loads(scenario: &Scenario) -> Vec<(String, f64)> {
    if !scenario.has_arrivals() {
        return Vec::new();
    }
    let crossings = scenario.crossings(&scenario.topology.routes());
    let classes = scenario.reported_link_classes().into_iter();
    classes
        .filter_map(|class| {
            let load = scenario.expected_load(&class, &crossings)?;
            Some((class.name, load))
        })
        .collect()
}

/// `1 host`, `2 hosts`.
fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[derive(Serialize)]
struct Expanded<'l> {
    /// The scenario with the file's own values.
    scenario: &'l Scenario,
    variants: Vec<NamedVariant<'l>>,
    warnings: Vec<NamedWarning>,
    /// What becomes of the groups under a policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policy: Vec<String>,
}

/// A warning with the key that it is about.
#[derive(Serialize)]
struct NamedWarning {
    key: String,
    message: String,
}

#[derive(Serialize)]
struct NamedVariant<'l> {
    name: &'l str,
    settings: serde_json::Map<String, serde_json::Value>,
}

impl<'l> Expanded<'l> {
    fn of(loaded: &'l LoadedScenario, groups: &[GroupUnderPolicy]) -> Self {
        let variants = loaded.variants.iter().map(|variant| NamedVariant {
            name: &variant.name,
            settings: (variant.settings.iter())
                .map(|setting| (setting.path.clone(), setting.value.clone().into()))
                .collect(),
        });
        Self {
            scenario: &loaded.scenario,
            variants: variants.collect(),
            warnings: (loaded.scenario.warnings().into_iter())
                .map(|warning| NamedWarning {
                    key: warning.key,
                    message: warning.kind.to_string(),
                })
                .collect(),
            policy: groups.iter().map(GroupUnderPolicy::to_string).collect(),
        }
    }
}

#[derive(Serialize)]
struct Mistakes<'p> {
    mistakes: Vec<Mistake<'p>>,
}

#[derive(Serialize)]
struct Mistake<'p> {
    file: &'p str,
    /// The line in the file, counted from 1.
    line: Option<u32>,
    /// The setting on the command line.
    setting: Option<&'p str>,
    variant: Option<&'p str>,
    key: &'p str,
    message: String,
}

impl<'p> Mistake<'p> {
    fn of(problem: &'p Problem) -> Self {
        let (line, setting) = match &problem.position {
            Position::Line(line) => (Some(*line), None),
            Position::Setting(setting) => (None, Some(&**setting)),
        };
        Self {
            file: &problem.file,
            line,
            setting,
            variant: problem.variant.as_deref(),
            key: &problem.key,
            message: problem.kind.to_string(),
        }
    }
}
