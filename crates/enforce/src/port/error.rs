//! The errors of creating a port.

use std::io;

use thiserror::Error;

/// A port cannot be created; the message names a remedy.
#[derive(Debug, Error)]
pub enum PortError {
    /// The calling thread lacks a capability.
    #[error(
        "{action} needs the capability {capability} in the network namespace: run as root, or with \
         `setcap {capability}=ep`"
    )]
    NotPermitted {
        /// The operation that failed.
        action: &'static str,
        /// The capability, as spelled by `setcap`.
        capability: &'static str,
    },
    /// The kernel has no TUN/TAP driver, or the container no device node.
    #[error(
        "there is no /dev/net/tun: the kernel needs TUN/TAP (CONFIG_TUN, `modprobe tun`), and a \
         container the device (`--device /dev/net/tun`)"
    )]
    NoTunDevice,
    /// Another interface has the name.
    #[error("there already is an interface called `{0}`")]
    NameTaken(String),
    /// The kernel does not accept the name.
    #[error(
        "`{0}` cannot be the name of an interface: 1 to 15 bytes without `/`, `:`, `%` and white space"
    )]
    BadName(String),
    /// There is no interface with the name.
    #[error("there is no interface called `{0}` in this network namespace")]
    NoInterface(String),
    /// The interface does not carry Ethernet frames.
    #[error("`{0}` carries no Ethernet frames")]
    NotEthernet(String),
    /// The kernel does not support virtio-net headers here.
    #[error("the kernel offers no segmentation offload at {0}: super-packets cannot pass")]
    NoOffload(&'static str),
    /// Another system error.
    #[error("{action}: {source}")]
    System {
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl PortError {
    /// Returns the error of an operation that needs a capability.
    pub(super) fn of(action: &'static str, capability: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { action, capability },
            _ => Self::System { action, source },
        }
    }
}
