//! A link between two namespaces: TAP devices in each, and the switch between them.

use std::net::IpAddr;

use weir_fabric::{PortChange, Probability};
use weir_scenario::{PortIndex, Scenario};
use weir_traffic::calls::Placement;
use weir_traffic::calls::placement::pin;
use weir_units::{ByteSize, Duration, Rate};

use super::NetworkError;
use super::namespace::{Namespace, on_thread};
use crate::host::create_interfaces;
use crate::plan::{HostInterface, Plan};
use crate::switch::{self, HostSocket, SwitchHandle, SwitchSetup};

/// What a link does to packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// The rate; one beyond what a core sends stands for no limit.
    pub rate: Rate,
    /// The delay in each direction.
    pub delay: Duration,
    /// The largest IP packet.
    pub mtu: ByteSize,
    /// The probability, for each packet in each direction, that it is lost.
    pub loss: Probability,
    /// Whether the client has a second link, by another switch.
    pub has_second: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            rate: Rate::from_gbps(100),
            delay: Duration::ZERO,
            mtu: ByteSize::from_bytes(1500),
            loss: Probability::NEVER,
            has_second: false,
        }
    }
}

impl LinkSettings {
    /// The network as a scenario. The group is there because a scenario needs one; nothing runs it.
    fn scenario(&self) -> Result<Scenario, NetworkError> {
        let mut text = r#"
            title = "A link"
            source = "weir_lab::network"
            duration = "1h"
            [hosts.client]
            [hosts.server]
            [switches.near]
            [switches.far]
            [groups.calls]
            from = "client"
            to = "server"
            transport = "quic"
            workload = "bulk"
            "#
        .to_owned();
        let half = self.delay / 2;
        text += &self.link("client", "near", half);
        if self.has_second {
            text += "[switches.other]\n";
            text += &self.link("client", "other", half);
            text += &self.link("other", "far", Duration::ZERO);
        }
        text += &self.link("near", "far", Duration::ZERO);
        text += &self.link("far", "server", self.delay - half);
        let parsed = Scenario::parse("link", &text, &[])
            .map_err(|error| NetworkError::Scenario(error.to_string()))?;
        Ok(parsed.scenario)
    }

    fn link(&self, from: &str, to: &str, delay: Duration) -> String {
        let (rate, mtu) = (self.rate.bits_per_second(), self.mtu.bytes());
        let delay = delay.as_nanos();
        format!(
            "[[links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}bps\"\n\
             delay = \"{delay}ns\"\nmtu = \"{mtu}B\"\nqueue = \"unlimited\"\n"
        )
    }
}

/// The addresses of both sides, and the switch between them.
pub(super) struct Connected {
    /// The client's, one for each of its links.
    pub(super) client: Vec<IpAddr>,
    pub(super) server: IpAddr,
    /// The ports of the client's first link, in both directions.
    pub(super) first: [PortIndex; 2],
    /// Carries the packets until it is dropped.
    pub(super) switch: SwitchHandle,
}

/// Connects two namespaces. The switch runs on the second processor: client and server should share the
/// first.
///
/// # Errors
/// No `/dev/net/tun`, or the kernel's error.
pub(super) fn connect(
    client: &Namespace,
    server: &Namespace,
    settings: LinkSettings,
) -> Result<Connected, NetworkError> {
    let scenario = settings.scenario()?;
    let plan = Plan::new(&scenario)?;
    let (mut sockets, mut addresses, mut of_hosts) = (Vec::new(), Vec::new(), Vec::new());
    for (namespace, host) in [client, server].into_iter().zip(&plan.hosts) {
        let taps = namespace.run(|| create_interfaces(host))??;
        for (nic, tap) in host.nics.iter().zip(taps) {
            let port = port(&scenario, nic.port)?;
            addresses.push((nic.address(), port));
            sockets.push(HostSocket {
                port,
                device: tap.into(),
                mac: nic.mac,
            });
        }
        of_hosts.push(host.nics.iter().map(HostInterface::address).collect());
    }
    let [client, server]: [Vec<IpAddr>; 2] = of_hosts
        .try_into()
        .map_err(|_| NetworkError::Scenario("there are not two hosts".to_owned()))?;
    let server = server.first().copied();
    let server = server.ok_or_else(|| NetworkError::Scenario("there is no server".to_owned()))?;
    let setup = SwitchSetup {
        scenario: &scenario,
        epoch: 0,
        sockets,
        addresses,
        owners: switch::AddressOwners::default(),
        demands: Vec::new(),
        capture: None,
    };
    let switch = start(setup)?;
    if settings.loss > Probability::NEVER {
        for name in ["far->server", "server->far"] {
            switch.apply(named(&scenario, name)?, PortChange::Loss(settings.loss))?;
        }
    }
    let first = ["client->near", "near->client"].map(|name| named(&scenario, name));
    let [there, back] = first;
    Ok(Connected {
        client,
        server,
        first: [there?, back?],
        switch,
    })
}

/// Starts the switch on the second processor, or anywhere if there is only one.
fn start(setup: SwitchSetup<'_>) -> Result<SwitchHandle, NetworkError> {
    let second = Placement::TwoCores.processors();
    on_thread(|| {
        if let Ok(processors) = second {
            // Where the system refuses, its scheduler chooses.
            let _ = pin(&processors.client);
        }
        Ok(switch::start(setup)?)
    })
}

fn named(scenario: &Scenario, name: &str) -> Result<PortIndex, NetworkError> {
    let port = scenario.topology.port_by_name(name);
    port.ok_or_else(|| NetworkError::Scenario(format!("there is no port {name}")))
}

fn port(scenario: &Scenario, position: usize) -> Result<PortIndex, NetworkError> {
    let port = scenario.topology.port_indices().nth(position);
    port.ok_or_else(|| NetworkError::Scenario(format!("there is no port {position}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_has_the_delay_and_the_mtu() {
        let settings = LinkSettings {
            delay: Duration::from_nanos(25_001),
            mtu: ByteSize::from_bytes(9000),
            ..LinkSettings::default()
        };
        let scenario = settings.scenario().unwrap();
        let topology = &scenario.topology;
        for host in ["client->near", "server->far"] {
            let there = topology.port_by_name(host).unwrap();
            let links = topology.ports.iter().map(|port| port.delay.as_nanos());
            assert_eq!(links.sum::<u64>(), 2 * 25_001);
            assert_eq!(topology.port(there).mtu.bytes(), 9000);
        }
        assert_eq!(Plan::new(&scenario).unwrap().hosts.len(), 2);
    }

    #[test]
    fn a_client_may_have_two_links() {
        let settings = LinkSettings {
            has_second: true,
            ..LinkSettings::default()
        };
        let plan = Plan::new(&settings.scenario().unwrap()).unwrap();
        let links: Vec<_> = plan.hosts.iter().map(|host| host.nics.len()).collect();
        assert_eq!(links, [2, 1]);
    }
}
