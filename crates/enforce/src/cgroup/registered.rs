//! The algorithms that the rules of a policy name, in the kernel.

use super::algorithm::KernelAlgorithm;
use crate::bpf::{BpfError, D2tcp, Dctcp, Parameters, RegisteredAlgorithm};

/// More processes that register algorithms are not on one machine.
const MOST_NAMES: u32 = 99;

/// Weir's programs that are registered as congestion controls, for the lifetime of the value. Sockets that use
/// one keep it until they are given another, also without it.
#[derive(Debug, Default)]
pub(super) struct RegisteredAlgorithms(Vec<(KernelAlgorithm, RegisteredAlgorithm)>);

impl RegisteredAlgorithms {
    /// Returns the kernel's name of an algorithm, which is registered if it is a program.
    pub(super) fn name(&mut self, algorithm: KernelAlgorithm) -> Result<String, BpfError> {
        if let KernelAlgorithm::Own(name) = algorithm {
            return Ok(name.to_owned());
        }
        let mut known = self.0.iter();
        if let Some((_, registered)) = known.find(|(known, _)| *known == algorithm) {
            return Ok(registered.name().to_owned());
        }
        let registered = register(algorithm)?;
        let name = registered.name().to_owned();
        self.0.push((algorithm, registered));
        Ok(name)
    }
}

/// Registers a program by the first free name.
fn register(algorithm: KernelAlgorithm) -> Result<RegisteredAlgorithm, BpfError> {
    type Register = fn(&str, &Parameters) -> Result<RegisteredAlgorithm, BpfError>;
    let (base, register, parameters): (_, Register, _) = match algorithm {
        KernelAlgorithm::Own(name) => {
            let name = name.to_owned();
            return Err(BpfError::Name { name });
        }
        KernelAlgorithm::Dctcp(parameters) => ("weir_dctcp", Dctcp::register, parameters),
        KernelAlgorithm::D2tcp(parameters) => ("weir_d2tcp", D2tcp::register, parameters),
    };
    let mut number = 1;
    loop {
        let name = match number {
            1 => base.to_owned(),
            _ => format!("{base}_{number}"),
        };
        match register(&name, &parameters) {
            // Another process, or a rule with other parameters, has it.
            Err(BpfError::NameTaken { .. }) if number < MOST_NAMES => number += 1,
            result => return result,
        }
    }
}
