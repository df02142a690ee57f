//! What keeps a port from being there.

use std::io;

use thiserror::Error;

/// Why a port cannot be made, and what would help.
#[derive(Debug, Error)]
pub enum PortError {
    /// The calling thread may not.
    #[error(
        "{action} needs the capability {capability} in the network namespace: run as root, or with \
         `setcap {capability}=ep`"
    )]
    NotPermitted {
        /// What was tried.
        action: &'static str,
        /// The capability, as `setcap` spells it.
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
    /// The kernel takes no such name.
    #[error(
        "`{0}` cannot be the name of an interface: 1 to 15 bytes without `/`, `:`, `%` and white space"
    )]
    BadName(String),
    /// There is no interface with the name.
    #[error("there is no interface called `{0}` in this network namespace")]
    NoInterface(String),
    /// Its frames are of another kind.
    #[error("`{0}` carries no Ethernet frames")]
    NotEthernet(String),
    /// The kernel does not know virtio-net headers here.
    #[error("the kernel offers no segmentation offload at {0}: super-packets cannot pass")]
    NoOffload(&'static str),
    /// Something else.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

impl PortError {
    /// The error of something that needs a capability.
    pub(super) fn of(action: &'static str, capability: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { action, capability },
            _ => Self::System { action, source },
        }
    }
}
