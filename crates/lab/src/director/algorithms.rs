//! Congestion control of the kernel's TCP: the kernel's name for each group's algorithm, and registration
//! of those that the kernel lacks.

use std::collections::BTreeMap;

use weir_congestion::{AlgorithmSpec, Value};
use weir_enforce::bpf::{self, D2tcp, Dctcp, Parameters, RegisteredAlgorithm};
use weir_scenario::{Group, Scenario, Transport};

use crate::error::{CongestionError, LabError};
use crate::plan::INITIAL_WINDOW;
use crate::tcp_options::kernel_name;

/// The kernel's names for the groups' congestion controls. Algorithms registered for them stay registered
/// until this is dropped.
#[derive(Debug, Default)]
pub(super) struct KernelAlgorithms {
    names: BTreeMap<String, String>,
    registered: Vec<(AlgorithmSpec, RegisteredAlgorithm)>,
    /// Differences between the kernel's algorithms and the scenario.
    pub(super) notes: Vec<String>,
}

impl KernelAlgorithms {
    /// Finds or registers the algorithms of all groups with kernel TCP.
    ///
    /// # Errors
    /// The kernel lacks an algorithm, and it cannot be registered.
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

    /// Returns the kernel's name of a group's algorithm.
    pub(super) fn of(&self, group: &Group) -> Option<&str> {
        self.names.get(&group.name).map(String::as_str)
    }

    fn find(&mut self, congestion: &AlgorithmSpec) -> Result<String, CongestionError> {
        let has_parameters = congestion
            .values()
            .any(|(name, value)| is_registered(congestion, name, value));
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

    /// Registers a congestion control. Names are machine-wide, so it gets one that is unique to this run.
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

    /// Notes the parameters that the kernel does not support.
    fn note(&mut self, group: &Group, congestion: &AlgorithmSpec) {
        // The initial window is set by routes ([`crate::plan::HostPlan::initial_window`]).
        let others = congestion
            .values()
            .filter(|(name, value)| {
                *name != INITIAL_WINDOW && !is_registered(congestion, name, *value)
            })
            .map(|(name, _)| name);
        let others: Vec<_> = others.collect();
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

/// Returns the congestion control of a transport over kernel TCP.
fn of_kernel(transport: &Transport) -> Option<&AlgorithmSpec> {
    match transport {
        Transport::Tcp { congestion, .. } | Transport::Tls { congestion, .. } => Some(congestion),
        Transport::Quic { .. } | Transport::Dcudp { .. } | Transport::Udp { .. } => None,
    }
}

/// Returns whether a registered algorithm supports this parameter with this value. The kernel counts
/// windows in whole packets.
fn is_registered(congestion: &AlgorithmSpec, parameter: &str, value: Value) -> bool {
    let is_supported = match (parameter, value) {
        ("g" | "initial_alpha", _) => true,
        ("min_window", Value::Float(packets)) => packets >= 1.0 && packets.fract() == 0.0,
        _ => false,
    };
    is_supported && matches!(congestion.name(), "dctcp" | "d2tcp")
}

fn parameters(congestion: &AlgorithmSpec) -> Parameters {
    let mut parameters = Parameters::default();
    for value in congestion.values() {
        match value {
            ("g", Value::Float(value)) => parameters.g = value,
            ("initial_alpha", Value::Float(value)) => parameters.initial_alpha = value,
            ("min_window", Value::Float(packets)) if packets >= 1.0 => {
                parameters.min_window = packets as u32;
            }
            _ => {}
        }
    }
    parameters
}
