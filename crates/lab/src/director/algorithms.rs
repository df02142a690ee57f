//! Congestion control of the kernel's TCP: under which name each group's is known, and what is registered
//! for those that the kernel lacks.

use std::collections::BTreeMap;

use weir_congestion::{AlgorithmSpec, Value};
use weir_enforce::bpf::{self, D2tcp, Dctcp, Parameters, RegisteredAlgorithm};
use weir_scenario::{Group, Scenario, Transport};

use crate::error::{CongestionError, LabError};
use crate::plan::INITIAL_WINDOW;
use crate::tcp_options::kernel_name;

/// The kernel's names for the groups' congestion controls. What was registered for them is there as long
/// as this is.
#[derive(Debug, Default)]
pub(super) struct KernelAlgorithms {
    names: BTreeMap<String, String>,
    registered: Vec<(AlgorithmSpec, RegisteredAlgorithm)>,
    /// What the kernel's differ in from what the scenario says.
    pub(super) notes: Vec<String>,
}

impl KernelAlgorithms {
    /// Those of all groups whose transport is the kernel's.
    ///
    /// # Errors
    /// The kernel has none, and none can be registered.
    pub(super) fn for_groups(scenario: &Scenario) -> Result<Self, LabError> {
        let mut algorithms = Self::default();
        for group in &scenario.groups {
            if let Some(congestion) = of_kernel(&group.transport) {
                let name = algorithms.find(congestion);
                let name = name.map_err(|source| LabError::Congestion {
                    group: group.name.clone(),
                    congestion: congestion.to_string(),
                    source,
                })?;
                algorithms.note(group, congestion);
                algorithms.names.insert(group.name.clone(), name);
            }
        }
        Ok(algorithms)
    }

    /// What the kernel calls a group's.
    pub(super) fn of(&self, group: &Group) -> Option<&str> {
        self.names.get(&group.name).map(String::as_str)
    }

    fn find(&mut self, congestion: &AlgorithmSpec) -> Result<String, CongestionError> {
        let has_parameters = congestion
            .values()
            .any(|(name, _)| is_registered(congestion, name));
        let name = kernel_name(congestion);
        if !has_parameters && bpf::kernel_offers(name)? {
            return Ok(name.to_owned());
        }
        let alike = self
            .registered
            .iter()
            .find(|(other, _)| other == congestion);
        if let Some((_, registered)) = alike {
            return Ok(registered.name().to_owned());
        }
        let registered = self.register(congestion)?;
        let name = registered.name().to_owned();
        self.registered.push((congestion.clone(), registered));
        Ok(name)
    }

    /// Registers a congestion control under a name that is this run's alone: it is the whole machine's.
    fn register(&self, congestion: &AlgorithmSpec) -> Result<RegisteredAlgorithm, CongestionError> {
        let number = self.registered.len();
        let name = format!(
            "w{}{}_{number}",
            congestion.name(),
            std::process::id() % 1_000_000
        );
        let parameters = parameters(congestion);
        match congestion.name() {
            "dctcp" => Ok(Dctcp::register(&name, &parameters)?),
            "d2tcp" => Ok(D2tcp::register(&name, &parameters)?),
            _ => Err(CongestionError::Unknown),
        }
    }

    /// Parameters that the kernel does not take are no secret.
    fn note(&mut self, group: &Group, congestion: &AlgorithmSpec) {
        let others = congestion.values().map(|(name, _)| name);
        // The initial window is a matter of routes ([`crate::plan::HostPlan::initial_window`]).
        let others = others.filter(|name| *name != INITIAL_WINDOW);
        let others: Vec<_> = others
            .filter(|name| !is_registered(congestion, name))
            .collect();
        if !others.is_empty() {
            self.notes.push(format!(
                "group `{}`: the kernel's `{}` has its own {}",
                group.name,
                congestion.name(),
                others.join(", ")
            ));
        }
    }
}

/// The congestion control, if it is the kernel's.
fn of_kernel(transport: &Transport) -> Option<&AlgorithmSpec> {
    match transport {
        Transport::Tcp { congestion, .. } | Transport::Tls { congestion, .. } => Some(congestion),
        Transport::Quic { .. } | Transport::Dcudp { .. } | Transport::Udp { .. } => None,
    }
}

/// Whether what we register takes this parameter.
fn is_registered(congestion: &AlgorithmSpec, parameter: &str) -> bool {
    matches!(congestion.name(), "dctcp" | "d2tcp")
        && matches!(parameter, "g" | "initial_alpha" | "min_window")
}

fn parameters(congestion: &AlgorithmSpec) -> Parameters {
    let mut parameters = Parameters::default();
    for value in congestion.values() {
        match value {
            ("g", Value::Float(value)) => parameters.g = value,
            ("initial_alpha", Value::Float(value)) => parameters.initial_alpha = value,
            ("min_window", Value::Integer(value)) => {
                parameters.min_window = u32::try_from(value).unwrap_or(u32::MAX);
            }
            _ => {}
        }
    }
    parameters
}
