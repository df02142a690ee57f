//! Which scenarios can run on several threads.
//!
//! Hosts of different shards must affect each other by nothing but packets: see [`windows`](crate::windows).
//! An application whose flows end or answer acts on both hosts of a flow at once, as do faults and the
//! controller of SED. Endless TCP flows do not, unless one is given up, which takes a number of time-outs.

use thiserror::Error;
use weir_network::{Indivisible, Partition};
use weir_scenario::{Group, Scenario, TcpOptions, Transport, Workload};
use weir_units::Duration;

/// The number of threads that a simulation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The largest number.
    pub most: usize,
    /// Each thread must have this many hosts on the average: with few, threads wait more than they work.
    pub least_hosts: usize,
}

/// Why a simulation uses fewer threads than it may.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FewerThreads {
    /// Not all flows are endless TCP flows.
    #[error("group `{0}` is not `workload = \"bulk\"` over TCP without TLS and `deadline`")]
    Group(String),
    /// There are faults.
    #[error("the scenario has faults")]
    Faults,
    /// SED's controller gives orders.
    #[error("the scenario has a controller of SED")]
    Sed,
    /// A switch has transparent congestion control.
    #[error("switch `{0}` has transparent congestion control")]
    Tcon(String),
    /// The run is so long that a connection might be given up.
    #[error("`duration` is above {limit}: after that a flow of group `{group}` might be given up")]
    Long {
        /// The group's name.
        group: String,
        /// The longest possible duration.
        limit: Duration,
    },
    /// The network cannot be divided.
    #[error(transparent)]
    Indivisible(#[from] Indivisible),
    /// The network has few parts.
    #[error("the network has no more parts with enough hosts")]
    Parts,
}

impl Threads {
    /// One thread.
    pub const ONE: Self = Self::up_to(1);

    /// Creates a number of threads, each of which needs 16 hosts.
    pub const fn up_to(most: usize) -> Self {
        Self {
            most,
            least_hosts: 16,
        }
    }

    /// Returns the partition of a scenario's network, if it can run on several threads; and why they are
    /// fewer than possible.
    pub(crate) fn partition(
        self,
        scenario: &Scenario,
    ) -> (Option<Partition>, Option<FewerThreads>) {
        if self.most < 2 {
            return (None, None);
        }
        let partition = check(scenario).and_then(|()| {
            Ok(Partition::new(
                &scenario.topology,
                self.most,
                self.least_hosts,
            )?)
        });
        match partition {
            Ok(partition) if partition.shards() < self.most => {
                (Some(partition), Some(FewerThreads::Parts))
            }
            Ok(partition) => (Some(partition), None),
            Err(reason) => (None, Some(reason)),
        }
    }
}

/// Checks that hosts affect each other by packets alone.
fn check(scenario: &Scenario) -> Result<(), FewerThreads> {
    for group in &scenario.groups {
        let name = || group.name.clone();
        let Some(options) = endless_tcp(group) else {
            return Err(FewerThreads::Group(name()));
        };
        let limit = endurance(options);
        if scenario.duration > limit {
            return Err(FewerThreads::Long {
                group: name(),
                limit,
            });
        }
    }
    if !scenario.faults.is_empty() {
        return Err(FewerThreads::Faults);
    }
    if scenario.sed.is_some() {
        return Err(FewerThreads::Sed);
    }
    let mut switches = scenario.topology.switches.iter();
    match switches.find(|switch| !switch.tcon.is_empty()) {
        Some(switch) => Err(FewerThreads::Tcon(switch.name.clone())),
        None => Ok(()),
    }
}

/// Returns the options of a group of endless TCP flows, of which applications are notified of nothing and
/// which nothing but packets and timers acts on between control events.
fn endless_tcp(group: &Group) -> Option<&TcpOptions> {
    match (&group.workload, &group.transport) {
        (Workload::Bulk, Transport::Tcp { options, .. }) if group.deadline.is_none() => {
            Some(options)
        }
        _ => None,
    }
}

/// Returns the time before which no connection is given up: each of the time-outs that this takes lasts at
/// least as long as the shortest RTO. They may not grow, as samples from SACKs end the backoff.
fn endurance(options: &TcpOptions) -> Duration {
    let defaults = weir_tcp::Config::default();
    let (data, syn) = (defaults.max_retries, defaults.max_syn_retries);
    let shortest = options
        .min_rto
        .min(options.initial_rto)
        .min(options.max_rto);
    let of_data = shortest * u64::from(data + 1);
    let of_syn = options.initial_rto.min(options.max_rto) * u64::from(syn + 1);
    if options.handshake {
        of_data.min(of_syn)
    } else {
        of_data
    }
}
