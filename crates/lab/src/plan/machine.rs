//! The resources of this machine, and the check that a plan fits.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use rustix::process::{Resource, geteuid, getrlimit};
use weir_netlink::Client;
use weir_scenario::Network;
use weir_units::ByteSize;

use super::addresses::contains;
use super::{Plan, PlanError};

/// The resources of a machine that the lab uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineLimits {
    /// Whether this process runs as root.
    pub is_root: bool,
    /// Whether /dev/net/tun exists.
    pub has_tun: bool,
    /// The addresses of its interfaces, as this process sees them.
    pub addresses: Vec<IpAddr>,
    /// The available memory.
    pub memory: ByteSize,
    /// The limit of open files per process.
    pub files: u64,
}

/// The memory of a host process, its interfaces and the kernel's tables of its namespace.
const PER_HOST: u64 = 16 << 20;
/// The memory of a flow at both ends, with full socket buffers.
const PER_FLOW: u64 = 512 << 10;
/// The open files of the director besides its hosts' control sockets and interfaces.
const FILES: u64 = 64;

impl MachineLimits {
    /// Reads those of this machine.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn this() -> io::Result<Self> {
        Ok(Self {
            is_root: geteuid().is_root(),
            has_tun: Path::new("/dev/net/tun").exists(),
            addresses: Client::open()?.addresses()?,
            memory: free_memory(&std::fs::read_to_string("/proc/meminfo")?),
            files: getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
        })
    }

    /// Checks that this process can create a lab at all.
    ///
    /// # Errors
    /// What is missing.
    pub fn check_rights(&self) -> Result<(), PlanError> {
        match (self.is_root, self.has_tun) {
            (false, _) => Err(PlanError::NotRoot),
            (_, false) => Err(PlanError::NoTun),
            _ => Ok(()),
        }
    }

    /// Checks that no address of this machine lies in the lab's network.
    ///
    /// # Errors
    /// An address that lies in it.
    pub fn check_network(&self, network: Network) -> Result<(), PlanError> {
        let mut addresses = self.addresses.iter();
        match addresses.find(|address| contains(network, **address)) {
            Some(address) => Err(PlanError::AddressClash {
                address: *address,
                network,
            }),
            None => Ok(()),
        }
    }

    /// Checks that the machine has the resources for a plan with `flows` concurrent flows.
    ///
    /// # Errors
    /// The resource that is too small.
    pub fn check_room(&self, plan: &Plan, flows: u64) -> Result<(), PlanError> {
        let hosts = plan.hosts.len() as u64;
        let nics: usize = plan.hosts.iter().map(|host| host.nics.len()).sum();
        let enough = |what, needed: u64, available: u64| {
            if needed <= available {
                Ok(())
            } else {
                Err(PlanError::TooLarge {
                    what,
                    needed,
                    available,
                })
            }
        };
        let memory =
            (hosts.saturating_mul(PER_HOST)).saturating_add(flows.saturating_mul(PER_FLOW));
        enough("bytes of memory", memory, self.memory.bytes())?;
        // The director holds the interfaces and control sockets of all hosts.
        enough("open files", FILES + 2 * hosts + nics as u64, self.files)?;
        enough("open files of one host", FILES + 2 * flows, self.files)
    }
}

/// Returns `MemAvailable` of /proc/meminfo.
fn free_memory(text: &str) -> ByteSize {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    ByteSize::from_bytes(kib.unwrap_or_default().saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_mem_available() {
        let text = "MemTotal:  100 kB\nMemFree: 3 kB\nMemAvailable:   42 kB\n";
        assert_eq!(free_memory(text), ByteSize::from_bytes(42 * 1024));
        assert_eq!(free_memory(""), ByteSize::ZERO);
    }

    #[test]
    fn missing_machine_capabilities_are_named() {
        let machine = MachineLimits {
            is_root: true,
            has_tun: true,
            addresses: vec!["10.213.7.1".parse().unwrap()],
            memory: ByteSize::from_bytes(1 << 30),
            files: 1024,
        };
        assert_eq!(machine.check_rights(), Ok(()));
        let nobody = MachineLimits {
            is_root: false,
            ..machine.clone()
        };
        assert_eq!(nobody.check_rights(), Err(PlanError::NotRoot));
        let no_tun = MachineLimits {
            has_tun: false,
            ..machine.clone()
        };
        assert_eq!(no_tun.check_rights(), Err(PlanError::NoTun));
        let clash = machine
            .check_network("10.213.0.0/16".parse().unwrap())
            .unwrap_err();
        assert!(clash.to_string().contains("10.213.7.1"));
        assert_eq!(machine.check_network("fd57::/48".parse().unwrap()), Ok(()));
        let plan = Plan { hosts: Vec::new() };
        assert_eq!(machine.check_room(&plan, 0), Ok(()));
        let many = machine.check_room(&plan, 3_000).unwrap_err();
        assert!(
            matches!(
                many,
                PlanError::TooLarge {
                    what: "bytes of memory",
                    ..
                }
            ),
            "{many}"
        );
    }
}
