//! Networks between client and server other than loopback: two network namespaces with a veth pair or a
//! link with a delay between them.
//!
//! The namespaces have no names. They and their interfaces live only as long as this process holds their
//! descriptors and workers run in them, so nothing is left behind when it is killed. All of it takes
//! root.

mod error;
mod link;
mod namespace;
mod veth;

use std::fmt;

use weir_lab::switch::SwitchHandle;
use weir_traffic::calls::Network;
use weir_traffic::calls::network::Namespaces;
use weir_units::{ByteSize, Duration};

pub use error::NetworkError;
use namespace::Namespace;

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// A veth pair with this MTU.
    Veth {
        /// The largest IP packet.
        mtu: ByteSize,
    },
    /// The lab's link, which delays each packet and does not limit the rate.
    Link {
        /// The delay in each direction.
        delay: Duration,
        /// The largest IP packet.
        mtu: ByteSize,
    },
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Veth { mtu } => write!(f, "veth with MTU {}", mtu.bytes()),
            Self::Link { delay, mtu } => write!(
                f,
                "link of {} µs each way with MTU {}",
                delay.as_micros(),
                mtu.bytes()
            ),
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
        let (address, switch) = match self {
            Self::Veth { mtu } => (veth::connect(&client, &server, mtu)?, None),
            Self::Link { delay, mtu } => {
                let (address, switch) = link::connect(&client, &server, delay, mtu)?;
                (address, Some(switch))
            }
        };
        Ok(PrivateNetwork {
            network: Network {
                name: self.to_string(),
                server: address,
                namespaces: Some(Namespaces {
                    client: client.path(),
                    server: server.path(),
                }),
            },
            _switch: switch,
            _namespaces: [client, server],
        })
    }
}

/// A network that this process has made. Dropping it removes it, as soon as no worker runs in it.
#[derive(Debug)]
pub struct PrivateNetwork {
    network: Network,
    /// Carries the packets of a link.
    _switch: Option<SwitchHandle>,
    _namespaces: [Namespace; 2],
}

impl PrivateNetwork {
    /// Returns the network for a plan.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_names() {
        let mtu = ByteSize::from_bytes(9000);
        assert_eq!(NetworkKind::Veth { mtu }.to_string(), "veth with MTU 9000");
        let delay = Duration::from_micros(25);
        let link = NetworkKind::Link { delay, mtu };
        assert_eq!(link.to_string(), "link of 25 µs each way with MTU 9000");
    }

    #[test]
    fn a_veth_pair_lives_in_its_namespaces_only() {
        let mtu = ByteSize::from_bytes(1500);
        match (NetworkKind::Veth { mtu }).create() {
            Ok(made) => {
                let names = made.network().namespaces.clone().unwrap();
                assert_ne!(names.client, names.server);
                let inside = made._namespaces[0].run(|| weir_netlink::interface_index("calls0"));
                assert!(inside.unwrap().is_ok());
                assert!(weir_netlink::interface_index("calls0").is_err());
            }
            Err(error) => println!("SKIPPED: a veth pair: {error}"),
        }
    }
}
