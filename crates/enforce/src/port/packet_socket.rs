//! Packet sockets with virtio-net headers.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::interface::name_bytes;
use super::{PortError, read, write};

const CAPABILITY: &str = "cap_net_raw";

/// A socket at an Ethernet interface (packet(7)): it takes all frames that come in there, and sends
/// frames out of it. At the outer end of a veth pair these are the frames of the namespace at its inner
/// end.
///
/// The interface's own stack sees what comes in too; have it without addresses.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
}

impl PacketSocket {
    /// A socket at the interface `name` of the calling thread's network namespace. Its buffers are 8 MB
    /// where the system allows that.
    ///
    /// # Errors
    /// No such interface, no permission, a kernel before 2.6.27.
    pub fn bind(name: &str) -> Result<Self, PortError> {
        let name_bytes = name_bytes(name)?;
        // SAFETY: the name ends in a zero and lives until the call returns.
        let index = unsafe { libc::if_nametoindex(name_bytes.as_ptr()) };
        let index = libc::c_int::try_from(index).unwrap_or(0);
        if index == 0 {
            return Err(PortError::NoInterface(name.to_owned()));
        }
        let failed = |action| move |error: io::Error| PortError::of(action, CAPABILITY, error);
        let socket = Self::open().map_err(failed("opening a packet socket"))?;
        socket
            .set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)
            .map_err(|_| PortError::NoOffload("packet sockets"))?;
        // What the socket itself sends need not come back to it.
        socket
            .set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(failed("leaving out outgoing frames"))?;
        socket.enlarge_buffers();
        socket
            .bind_to(index)
            .map_err(failed("binding a packet socket"))?;
        Ok(socket)
    }

    /// Takes the next frame that has come in: see [`Tap::receive`](super::Tap::receive).
    ///
    /// # Errors
    /// What the system says: the interface is down, for instance.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        read(self.socket.as_fd(), buffer)
    }

    /// Sends a frame: see [`Tap::send`](super::Tap::send).
    ///
    /// # Errors
    /// What the system says: the interface is down, the header fits no frame.
    pub fn send(&self, frame: &[IoSlice<'_>]) -> io::Result<bool> {
        write(self.socket.as_fd(), frame)
    }

    fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Protocol 0: nothing comes in before the socket is bound.
        // SAFETY: the call takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Self { socket })
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        // SAFETY: the value is an int, as its length says, and lives until the call returns.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(&value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Large enough for a burst of super-packets; whoever may not exceed the system's limit has that.
    fn enlarge_buffers(&self) {
        const SIZE: libc::c_int = 8 << 20;
        for (forced, allowed) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if self.set(libc::SOL_SOCKET, forced, SIZE).is_err() {
                // It cannot fail: a size above the limit counts as the limit.
                let _ = self.set(libc::SOL_SOCKET, allowed, SIZE);
            }
        }
    }

    fn bind_to(&self, index: libc::c_int) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the address is a `sockaddr_ll`, as its length says, and lives until the call returns.
        let result = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
