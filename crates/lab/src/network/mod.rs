//! A client's and a server's network namespace, with a veth pair or a link through the switch between
//! them: for measurements and tests of programs that know nothing of the lab.
//!
//! The namespaces have no names. They and their interfaces live only as long as this process holds their
//! descriptors and workers run in them, so nothing is left behind when it is killed. All of it takes
//! root.

mod error;
mod link;
mod namespace;
mod veth;

use std::fmt;
use std::net::IpAddr;

use weir_fabric::{PortChange, Probability};
use weir_scenario::PortIndex;
use weir_traffic::calls::Network;
use weir_traffic::calls::network::Namespaces;
use weir_units::ByteSize;

use crate::switch::SwitchHandle;

pub use error::NetworkError;
pub use link::LinkSettings;
use namespace::Namespace;

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NetworkKind {
    /// A veth pair with this MTU.
    Veth {
        /// The largest IP packet.
        mtu: ByteSize,
    },
    /// A link through the lab's switch.
    Link(LinkSettings),
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Veth { mtu } => write!(f, "veth with MTU {}", mtu.bytes()),
            Self::Link(link) => {
                let (delay, mtu) = (link.delay.as_micros(), link.mtu.bytes());
                write!(f, "link of {delay} µs each way with MTU {mtu}")?;
                if link.loss > Probability::NEVER {
                    write!(f, " and {} % loss", link.loss.value() * 100.0)?;
                }
                Ok(())
            }
        }
    }
}

impl NetworkKind {
    /// Makes the network.
    ///
    /// # Errors
    /// This process lacks the privilege, or the kernel lacks namespaces, veth pairs or TAP devices.
    pub fn create(self) -> Result<PrivateNetwork, NetworkError> {
        let client = Namespace::new()?;
        let server = Namespace::new()?;
        let (server_address, client_addresses, link) = match self {
            Self::Veth { mtu } => {
                let (server_address, client_address) = veth::connect(&client, &server, mtu)?;
                (server_address, vec![client_address], None)
            }
            Self::Link(settings) => {
                let connected = link::connect(&client, &server, settings)?;
                let link = (connected.switch, connected.first);
                (connected.server, connected.client, Some(link))
            }
        };
        Ok(PrivateNetwork {
            network: Network {
                name: self.to_string(),
                server: server_address,
                namespaces: Some(Namespaces {
                    client: client.path(),
                    server: server.path(),
                }),
            },
            client_addresses,
            client,
            server,
            link,
        })
    }
}

/// A network that this process has made. Dropping it removes it, as soon as no worker runs in it.
#[derive(Debug)]
pub struct PrivateNetwork {
    network: Network,
    client_addresses: Vec<IpAddr>,
    client: Namespace,
    server: Namespace,
    /// The switch, which carries the packets of a link, and the client's first link.
    link: Option<(SwitchHandle, [PortIndex; 2])>,
}

impl PrivateNetwork {
    /// Returns the network for a plan.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the client's addresses, one for each of its links.
    #[must_use]
    pub fn client_addresses(&self) -> &[IpAddr] {
        &self.client_addresses
    }

    /// Returns the server's address.
    #[must_use]
    pub fn server_address(&self) -> IpAddr {
        self.network.server
    }

    /// Lets the client's first link fail: it loses all packets, in both directions, and says nothing.
    ///
    /// # Errors
    /// The switch has stopped. A veth pair cannot fail so.
    pub fn fail_first_link(&self) -> Result<(), NetworkError> {
        let Some((switch, ports)) = &self.link else {
            return Err(NetworkError::Scenario(
                "a veth pair has no switch".to_owned(),
            ));
        };
        for port in ports {
            switch.apply(*port, PortChange::Down(true))?;
        }
        Ok(())
    }

    /// Runs `work` on a thread of its own in the client's namespace. Sockets and processes that it makes
    /// stay there.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn in_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetworkError> {
        self.client.run(work)
    }

    /// Runs `work` on a thread of its own in the server's namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn in_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetworkError> {
        self.server.run(work)
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Duration;

    use super::*;

    #[test]
    fn networks_have_names() {
        let mtu = ByteSize::from_bytes(9000);
        assert_eq!(NetworkKind::Veth { mtu }.to_string(), "veth with MTU 9000");
        let link = NetworkKind::Link(LinkSettings {
            delay: Duration::from_micros(25),
            mtu,
            loss: Probability::new(0.01).unwrap(),
            ..LinkSettings::default()
        });
        let name = "link of 25 µs each way with MTU 9000 and 1 % loss";
        assert_eq!(link.to_string(), name);
    }

    #[test]
    fn a_veth_pair_lives_in_its_namespaces_only() {
        let mtu = ByteSize::from_bytes(1500);
        match (NetworkKind::Veth { mtu }).create() {
            Ok(made) => {
                let names = made.network().namespaces.clone().unwrap();
                assert_ne!(names.client, names.server);
                let inside = made.in_client(|| weir_netlink::interface_index("calls0"));
                assert!(inside.unwrap().is_ok());
                assert!(weir_netlink::interface_index("calls0").is_err());
            }
            Err(error) => println!("SKIPPED: a veth pair: {error}"),
        }
    }
}
