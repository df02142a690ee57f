//! The errors of a plan.

use std::net::IpAddr;

use thiserror::Error;
use weir_scenario::Network;
use weir_units::ByteSize;

/// A scenario cannot be run live as it is, or not on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The process does not run as root.
    #[error(
        "`weir run --live` makes network namespaces and interfaces, which takes root (or CAP_NET_ADMIN and \
         CAP_SYS_ADMIN); without, `weir run` simulates the same scenario"
    )]
    NotRoot,
    /// There are no TAP devices.
    #[error(
        "there is no /dev/net/tun, by which the lab's switch reaches its hosts: load the module `tun`, or give \
         the container the device (`--device /dev/net/tun`); without, `weir run` simulates the same scenario"
    )]
    NoTun,
    /// An address of the machine lies in the lab's network.
    #[error(
        "this machine has the address {address}, which lies in the lab's network {network}: set another one, \
         such as `live.network = \"10.214.0.0/16\"`"
    )]
    AddressClash {
        /// The machine's address.
        address: IpAddr,
        /// The lab's network.
        network: Network,
    },
    /// The network has fewer addresses than there are interfaces.
    #[error(
        "the network {network} has too few addresses for {needed} interfaces: set a larger `live.network`"
    )]
    TooFewAddresses {
        /// The lab's network.
        network: Network,
        /// The number of addresses needed.
        needed: u64,
    },
    /// An interface does not support the MTU.
    #[error("the port `{port}` has an MTU of {mtu}; an interface takes 68 to 65521 bytes")]
    Mtu {
        /// The port's name.
        port: String,
        /// The scenario's MTU.
        mtu: ByteSize,
    },
    /// The scenario needs more resources than the machine has.
    #[error(
        "the scenario is too large for this machine: {needed} {what} are needed, and there are {available}; \
         fewer hosts or flows would do, and `weir run` simulates it as it is"
    )]
    TooLarge {
        /// The resource.
        what: &'static str,
        /// The amount needed.
        needed: u64,
        /// The amount available.
        available: u64,
    },
    /// The lab does not support this key.
    #[error("`{key}`: the live lab does not do this; `weir run` simulates it")]
    OnlySimulated {
        /// The scenario's key.
        key: String,
    },
    /// The kernel has one value per host, and two groups want different ones.
    #[error(
        "host `{host}`: the kernel has one value of `{key}` for all connections of a host, and the groups \
         `{one}` and `{other}` want different ones: give them hosts of their own, or equal values"
    )]
    OneValuePerHost {
        /// The host's name.
        host: String,
        /// The scenario's key.
        key: &'static str,
        /// A group.
        one: String,
        /// Another group.
        other: String,
    },
}
