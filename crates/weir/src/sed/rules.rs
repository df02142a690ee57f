//! Deadline files, for applications that cannot be changed.

use std::path::{Path, PathBuf};

use tokio::signal::unix::Signal;
use weir_control::ControllerHandle;
use weir_policy::{DeadlineRule, PortRange, Prefix};
use weir_scenario::{ScenarioError, load_deadlines};
use weir_sed::{Demand, DemandRule};

use crate::{logging, service_manager};

/// Loads the rules of a file.
pub(super) fn load(path: &Path) -> Result<Vec<DemandRule>, ScenarioError> {
    let deadlines = load_deadlines(path)?;
    Ok(deadlines.rules.iter().map(rule).collect())
}

/// Reloads the credentials and the file, if there is one, on each SIGHUP. A file with mistakes changes nothing.
pub(super) async fn reload(
    path: Option<PathBuf>,
    mut hangup: Signal,
    controller: ControllerHandle,
) {
    while hangup.recv().await.is_some() {
        service_manager::reloading();
        let reloaded = controller.reload_credentials();
        let Some(path) = &path else {
            // A failure is logged where it happens.
            service_manager::ready(match reloaded {
                Ok(_) => "certificates were read again; there are no rules",
                Err(_) => "certificates cannot be read again: see the log",
            });
            continue;
        };
        match load(path) {
            Ok(rules) => {
                let count = rules.len();
                if !controller.set_rules(rules).await {
                    return;
                }
                tracing::info!(
                    "SIGHUP: {}: {count} rules in force for flows that begin from now on",
                    path.display()
                );
                service_manager::ready(&format!("{count} rules in force"));
            }
            Err(error) => {
                let mistakes = logging::in_one_line(&error);
                tracing::warn!("SIGHUP: {mistakes}; the rules before it stay in force");
                service_manager::ready("a file with mistakes was refused: see the log");
            }
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
