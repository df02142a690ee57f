//! The network between the client and the server of a plan: where the workers of each side run, and
//! the address of the servers. Who makes a network other than loopback keeps it while the plan runs.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::calls::error::Error;

/// The name of the loopback interface's network in reports.
pub const LOOPBACK: &str = "loopback";

/// A network between client and server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its name in reports. Rows are compared within one network only.
    pub name: String,
    /// The address that local servers bind.
    pub server: IpAddr,
    /// The network namespaces of both sides; those of this process if absent.
    pub namespaces: Option<Namespaces>,
}

/// The network namespaces of both sides, as files such as `/proc/1234/fd/5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// The client's.
    pub client: PathBuf,
    /// The servers'.
    pub server: PathBuf,
}

impl Network {
    /// Returns the loopback interface of this process's namespace.
    #[must_use]
    pub fn loopback() -> Self {
        Self {
            name: LOOPBACK.to_owned(),
            server: Ipv4Addr::LOCALHOST.into(),
            namespaces: None,
        }
    }

    /// Returns the network to servers on another machine, which this process does not start.
    #[must_use]
    pub fn between_machines() -> Self {
        Self {
            name: "between machines".to_owned(),
            ..Self::loopback()
        }
    }
}

/// The name of loopback, for reports that name no network.
pub(crate) fn loopback_name() -> String {
    LOOPBACK.to_owned()
}

/// Returns the text that follows a title or a situation: nothing for loopback, `, veth` for `veth`.
pub(crate) fn suffix(network: &str) -> String {
    match network {
        LOOPBACK => String::new(),
        name => format!(", {name}"),
    }
}

/// Moves the calling thread, and threads that it starts later, into a network namespace.
///
/// # Errors
/// [`Error::Io`] if the namespace is gone or this process lacks the privilege.
pub(crate) fn enter(namespace: &Path) -> Result<(), Error> {
    let file = File::open(namespace).map_err(Error::io("opening a network namespace"))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|errno| Error::io("entering a network namespace")(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_networks_than_loopback_are_named() {
        assert_eq!(suffix(&Network::loopback().name), "");
        assert_eq!(suffix("veth"), ", veth");
    }

    #[test]
    fn what_is_no_namespace_cannot_be_entered() {
        assert!(enter(Path::new("/proc/self/no-such-file")).is_err());
        assert!(enter(Path::new("/dev/null")).is_err());
    }
}
