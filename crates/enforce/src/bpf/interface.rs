//! The interfaces of this thread's network namespace.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::BpfError;

/// `ARPHRD_ETHER` of linux/if_arp.h.
const ETHERNET: u16 = 1;

/// From asm-generic/socket.h.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// An interface, by its name and its index.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Tied to the namespace, whichever thread uses it.
    socket: Arc<OwnedFd>,
}

impl Interface {
    /// Finds an interface that carries Ethernet frames.
    pub(crate) fn find(name: &str) -> Result<Self, BpfError> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(|errno| {
            BpfError::System {
                doing: "making a socket",
                source: errno.into(),
            }
        })?;
        let index = name_to_index(&socket, name).map_err(|_| BpfError::NoInterface {
            name: name.to_owned(),
            existing: names().join(", "),
        })?;
        match hardware_type(&socket, name) {
            Ok(ETHERNET) => Ok(Self {
                name: name.to_owned(),
                index,
                socket: Arc::new(socket),
            }),
            Ok(_) => Err(BpfError::NotEthernet {
                name: name.to_owned(),
            }),
            Err(source) => Err(BpfError::System {
                doing: "asking for an interface's hardware type",
                source,
            }),
        }
    }

    /// Returns whether it exists and is still the same interface.
    pub(crate) fn exists(&self) -> bool {
        name_to_index(&*self.socket, &self.name) == Ok(self.index)
    }
}

/// Returns the hardware type of an interface. Loopback is not Ethernet, although its frames have such
/// headers: it is excluded, because both ends of its flows are on this machine.
fn hardware_type(socket: &OwnedFd, name: &str) -> io::Result<u16> {
    // SAFETY: a structure of numbers and arrays, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let places = request.ifr_name.iter_mut();
    for (place, byte) in places.take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let descriptor = socket.as_raw_fd();
    // SAFETY: the request reads a zero-terminated name, and writes within the structure.
    if unsafe { libc::ioctl(descriptor, libc::SIOCGIFHWADDR, &mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the request has written this member.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    Ok(address.sa_family)
}

/// Returns the cookie of this thread's network namespace (Linux 5.14), which programs of sockets compare.
pub(crate) fn own_netns_cookie() -> Result<u64, BpfError> {
    let system = |doing| move |source| BpfError::System { doing, source };
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
        .map_err(|errno| system("making a socket")(errno.into()))?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the option is a number of this length, which the kernel writes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            std::ptr::from_mut(&mut cookie).cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        let doing = "asking for the network namespace's cookie (Linux 5.14)";
        return Err(system(doing)(io::Error::last_os_error()));
    }
    Ok(cookie)
}

/// Returns the names in /proc, which are those of this thread's namespace.
pub(crate) fn names() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, _)| name.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_reported_with_the_existing_ones() {
        let error = Interface::find("weir-no-such").unwrap_err().to_string();
        assert!(
            error.contains("`weir-no-such`") && error.contains("lo"),
            "{error}"
        );
        let error = Interface::find("lo").unwrap_err().to_string();
        assert!(error.contains("no Ethernet frames"), "{error}");
    }
}
