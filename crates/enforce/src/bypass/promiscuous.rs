//! The promiscuous mode that stays without a process (`ip link set … promisc on`).

use std::io;
use std::os::fd::AsRawFd as _;

use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType, socket};

/// Sets or clears the mode of an interface; returns whether that has changed it. This is the flag that an
/// operator sets, not the kernel's count of those who need the mode.
pub(super) fn set(interface: u32, is_wanted: bool) -> io::Result<bool> {
    const FLAG: libc::c_short = libc::IFF_PROMISC as libc::c_short;
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let name = index_to_name(&socket, interface)?;
    // SAFETY: a structure of numbers and arrays, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let places = request.ifr_name.iter_mut();
    for (place, byte) in places.take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let descriptor = socket.as_raw_fd();
    // SAFETY: the request reads a zero-terminated name, and writes within the structure.
    if unsafe { libc::ioctl(descriptor, libc::SIOCGIFFLAGS, &mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the request has written this member.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    if (flags & FLAG != 0) == is_wanted {
        return Ok(false);
    }
    request.ifr_ifru.ifru_flags = flags ^ FLAG;
    // SAFETY: the request reads a structure that lives until the call returns.
    if unsafe { libc::ioctl(descriptor, libc::SIOCSIFFLAGS, &request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(true)
}
