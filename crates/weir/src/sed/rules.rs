//! Deadline files, for applications that cannot be changed.

use std::path::{Path, PathBuf};

use tokio::signal::unix::Signal;
use weir_control::ControllerHandle;
use weir_policy::{DeadlineRule, PortRange, Prefix};
use weir_scenario::{ScenarioError, load_deadlines};
use weir_sed::{Demand, DemandRule};

/// Loads the rules of a file.
pub(super) fn load(path: &Path) -> Result<Vec<DemandRule>, ScenarioError> {
    let deadlines = load_deadlines(path)?;
    Ok(deadlines.rules.iter().map(rule).collect())
}

/// Reloads the file on each SIGHUP. A file with mistakes changes nothing.
pub(super) async fn reload(
    path: Option<PathBuf>,
    mut hangup: Signal,
    controller: ControllerHandle,
) {
    while hangup.recv().await.is_some() {
        let Some(path) = &path else {
            eprintln!("there are no --rules to read again");
            continue;
        };
        match load(path) {
            Ok(rules) => {
                let count = rules.len();
                if !controller.set_rules(rules).await {
                    return;
                }
                eprintln!(
                    "{}: {count} rules in force for flows that begin from now on",
                    path.display()
                );
            }
            Err(error) => eprintln!("{error}\nthe rules before it stay in force"),
        }
    }
}

fn rule(rule: &DeadlineRule) -> DemandRule {
    let prefixes = |prefixes: &[Prefix]| {
        let pairs = prefixes.iter();
        pairs
            .map(|prefix| (prefix.address(), prefix.length()))
            .collect()
    };
    let ports = |ports: &[PortRange]| ports.iter().map(PortRange::ports).collect();
    DemandRule {
        sources: prefixes(&rule.from),
        destinations: prefixes(&rule.to),
        source_ports: ports(&rule.from_ports),
        destination_ports: ports(&rule.to_ports),
        demand: rule.demand.map(|(size, within)| Demand { size, within }),
    }
}
