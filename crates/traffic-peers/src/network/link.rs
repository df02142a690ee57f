//! A link with a delay between two namespaces: a TAP device in each, and the lab's switch between them.

use std::net::IpAddr;

use weir_lab::host::create_interfaces;
use weir_lab::plan::Plan;
use weir_lab::switch::{self, HostSocket, SwitchHandle, SwitchSetup};
use weir_scenario::{PortIndex, Scenario};
use weir_traffic::calls::Placement;
use weir_traffic::calls::placement::pin;
use weir_units::{ByteSize, Duration};

use super::NetworkError;
use super::namespace::{Namespace, on_thread};

/// The link as a scenario. Its rate is beyond what a core sends. The group is there because a scenario
/// needs one; nothing runs it.
fn scenario(delay: Duration, mtu: ByteSize) -> Result<Scenario, NetworkError> {
    let text = format!(
        r#"
        title = "A link"
        source = "make bench"
        duration = "1s"
        [hosts.client]
        [hosts.server]
        [switches.switch]
        [[links]]
        from = "client"
        to = "switch"
        rate = "100Gbps"
        delay = "{delay}ns"
        mtu = "{mtu}B"
        queue = "unlimited"
        [[links]]
        from = "switch"
        to = "server"
        rate = "100Gbps"
        delay = "{rest}ns"
        mtu = "{mtu}B"
        queue = "unlimited"
        [groups.calls]
        from = "client"
        to = "server"
        transport = "quic"
        workload = "bulk"
        "#,
        delay = delay.as_nanos() / 2,
        rest = delay.as_nanos() - delay.as_nanos() / 2,
        mtu = mtu.bytes(),
    );
    let parsed = Scenario::parse("link", &text, &[])
        .map_err(|error| NetworkError::Scenario(error.to_string()))?;
    Ok(parsed.scenario)
}

/// Connects two namespaces; returns the server's address and the switch, which carries the packets
/// until it is dropped. It runs on the second processor: client and server should share the first.
///
/// # Errors
/// No `/dev/net/tun`, or the kernel's error.
pub(super) fn connect(
    client: &Namespace,
    server: &Namespace,
    delay: Duration,
    mtu: ByteSize,
) -> Result<(IpAddr, SwitchHandle), NetworkError> {
    let scenario = scenario(delay, mtu)?;
    let plan = Plan::new(&scenario)?;
    let (mut sockets, mut addresses) = (Vec::new(), Vec::new());
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
    }
    let server = addresses.last().map(|(address, _)| *address);
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
    Ok((server, start(setup)?))
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

fn port(scenario: &Scenario, position: usize) -> Result<PortIndex, NetworkError> {
    let port = scenario.topology.port_indices().nth(position);
    port.ok_or_else(|| NetworkError::Scenario(format!("there is no port {position}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_has_the_delay_and_the_mtu() {
        let delay = Duration::from_nanos(25_001);
        let scenario = scenario(delay, ByteSize::from_bytes(9000)).unwrap();
        let topology = &scenario.topology;
        for host in ["client->switch", "server->switch"] {
            let there = topology.port_by_name(host).unwrap();
            let links = topology.ports.iter().map(|port| port.delay.as_nanos());
            assert_eq!(links.sum::<u64>(), 2 * 25_001);
            assert_eq!(topology.port(there).mtu.bytes(), 9000);
        }
        assert_eq!(Plan::new(&scenario).unwrap().hosts.len(), 2);
    }
}
