//! What keeps a scenario from being run on this machine.

use std::net::IpAddr;

use thiserror::Error;
use weir_scenario::Network;
use weir_units::ByteSize;

/// A scenario that cannot be run live as it is, or not on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No root.
    #[error(
        "`weir run --live` makes network namespaces and interfaces, which takes root (or CAP_NET_ADMIN and \
         CAP_SYS_ADMIN); without, `weir run` simulates the same scenario"
    )]
    NotRoot,
    /// No TAP devices.
    #[error(
        "there is no /dev/net/tun, by which the lab's switch reaches its hosts: load the module `tun`, or give \
         the container the device (`--device /dev/net/tun`); without, `weir run` simulates the same scenario"
    )]
    NoTun,
    /// An address of the machine's own.
    #[error(
        "this machine has the address {address}, which lies in the lab's network {network}: set another one, \
         such as `live.network = \"10.214.0.0/16\"`"
    )]
    AddressClash {
        /// The machine's.
        address: IpAddr,
        /// The lab's.
        network: Network,
    },
    /// More interfaces than addresses.
    #[error(
        "the network {network} has too few addresses for {needed} interfaces: set a larger `live.network`"
    )]
    TooFewAddresses {
        /// The lab's network.
        network: Network,
        /// How many it takes.
        needed: u64,
    },
    /// An MTU that no interface takes.
    #[error("the port `{port}` has an MTU of {mtu}; an interface takes 68 to 65521 bytes")]
    Mtu {
        /// The port's name.
        port: String,
        /// The scenario's.
        mtu: ByteSize,
    },
    /// More than there is.
    #[error(
        "the scenario is too large for this machine: {needed} {what} are needed, and there are {available}; \
         fewer hosts or flows would do, and `weir run` simulates it as it is"
    )]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// What it takes.
        needed: u64,
        /// What there is.
        available: u64,
    },
    /// Something that the lab cannot do.
    #[error("`{key}`: the live lab does not do this; `weir run` simulates it")]
    OnlySimulated {
        /// The scenario's key.
        key: String,
    },
    /// The kernel has one value per host.
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
