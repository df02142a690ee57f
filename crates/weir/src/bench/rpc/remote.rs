//! Measurements between two machines: runs the server, and locates it from the client.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};

use tokio::task::LocalSet;
use weir_traffic::calls::identity::new_identity;
use weir_traffic::calls::run::{RemoteServer, Servers};
use weir_traffic::calls::{TransportSpecification, standing};
use weir_traffic::throughput::DEFAULT_PORT;
use weir_traffic::tls::{Fingerprint, Trust};
use weir_units::Duration;

use crate::failure::Failure;
use crate::output;

/// Parses the address to listen on; the port is optional.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>();
    let without = || {
        text.parse::<IpAddr>()
            .map(|ip| SocketAddr::new(ip, DEFAULT_PORT))
    };
    match with_port.or_else(|_| without()) {
        Ok(address) if (1..u16::MAX).contains(&address.port()) => Ok(address),
        Ok(_) => {
            Err("the port and the one after it are used: it must be from 1 to 65534".to_owned())
        }
        Err(_) => Err("an IP address is expected, with a port if wanted: 0.0.0.0:9347".to_owned()),
    }
}

/// Serves clients on other machines until the process ends.
pub(super) fn serve(
    transports: &[TransportSpecification],
    bind: SocketAddr,
) -> Result<(), Failure> {
    check_ports(transports)?;
    let identity = new_identity().map_err(Failure::of)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::of)?;
    LocalSet::new().block_on(&runtime, async {
        let drivers = weir_traffic::calls::standard_drivers();
        let servers = standing::listen(&drivers, transports, bind, &identity)
            .map_err(Failure::of)?;
        let mut out = String::new();
        for (transport, early_data, address) in servers.addresses() {
            let early_data = if early_data { ", accepting early data" } else { "" };
            let _ = writeln!(out, "{transport} listens on {address}{early_data}");
        }
        let fingerprint = identity.fingerprint();
        let host = if bind.ip().is_unspecified() {
            format!("HOST:{}", bind.port())
        } else {
            bind.to_string()
        };
        let names: Vec<String> = transports.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            out,
            "fingerprint {fingerprint}\n\nweir bench rpc --transports {} --connect {host} --pin {fingerprint}\n",
            names.join(",")
        );
        output::print(&out)?;
        servers.serve().await.map_err(Failure::of)
    })
}

/// Checks that at most one server over TCP and one over UDP use a port number.
fn check_ports(transports: &[TransportSpecification]) -> Result<(), Failure> {
    let mut taken: BTreeMap<bool, &TransportSpecification> = BTreeMap::new();
    for transport in transports {
        if let Some(other) = taken.insert(is_over_tcp(transport), transport) {
            return Err(Failure::option(
                "transports",
                format!("a server cannot have both {other} and {transport}, as both need its port"),
            ));
        }
    }
    Ok(())
}

fn is_over_tcp(transport: &TransportSpecification) -> bool {
    transport.driver.starts_with("tcp")
}

/// Returns the servers that `weir bench rpc --server` started at `host`.
pub(super) fn servers(
    host: &str,
    pin: Fingerprint,
    transports: &[TransportSpecification],
    limit: Duration,
) -> Result<Servers, Failure> {
    let address = reach(host, transports, limit)?;
    let addresses: BTreeMap<String, RemoteServer> = transports
        .iter()
        .map(|transport| (transport.to_string(), RemoteServer::at(address)))
        .collect();
    Ok(Servers::Remote {
        addresses,
        trust: Trust::Fingerprint(pin),
    })
}

/// Returns the first of the host's addresses at which the server answers; only TCP can check that
/// at once.
fn reach(
    host: &str,
    transports: &[TransportSpecification],
    limit: Duration,
) -> Result<SocketAddr, Failure> {
    let addresses = host.to_socket_addrs().map_err(|error| {
        Failure::option("connect", format!("{host}: {error}; HOST:PORT is expected"))
    })?;
    let over_tcp = transports.iter().any(is_over_tcp);
    let mut problem = "it has no address".to_owned();
    for address in addresses {
        if !over_tcp {
            return Ok(address);
        }
        match TcpStream::connect_timeout(&address, limit.into()) {
            Ok(_) => return Ok(address),
            Err(error) => problem = error.to_string(),
        }
    }
    Err(Failure::Failed(format!(
        "cannot connect to {host}: {problem}; is `weir bench rpc --server` running there?"
    )))
}
