//! Packet sockets with virtio-net headers.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::interface::name_bytes;
use super::{PortError, write};
use crate::offload::VlanTag;

const CAPABILITY: &str = "cap_net_raw";

/// A socket at an Ethernet interface (packet(7)). It receives all frames that arrive there, and sends
/// frames out of it. At the outer end of a veth pair these are the frames of the namespace at its inner
/// end.
///
/// The interface's own stack receives the frames too; do not give it addresses. VLAN tags that the
/// interface has removed from frames are restored.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    /// The interface's index.
    index: libc::c_int,
}

impl PacketSocket {
    /// Opens a socket at the interface `name` of the calling thread's network namespace. Its buffers are
    /// 8 MB if the system allows that.
    ///
    /// # Errors
    /// No such interface, one without Ethernet frames, no permission, a kernel before 2.6.27.
    pub fn bind(name: &str) -> Result<Self, PortError> {
        let name_bytes = name_bytes(name)?;
        // SAFETY: the name ends in a zero and lives until the call returns.
        let index = unsafe { libc::if_nametoindex(name_bytes.as_ptr()) };
        let index = libc::c_int::try_from(index).unwrap_or(0);
        if index == 0 {
            return Err(PortError::NoInterface(name.to_owned()));
        }
        let failed = |action| move |error: io::Error| PortError::of(action, CAPABILITY, error);
        let socket = Self::open(index).map_err(failed("opening a packet socket"))?;
        socket
            .set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)
            .map_err(|_| PortError::NoOffload("packet sockets"))?;
        // The socket must not receive its own frames.
        socket
            .set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(failed("leaving out outgoing frames"))?;
        socket
            .set(libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)
            .map_err(failed("asking for VLAN tags"))?;
        socket.enlarge_buffers();
        socket
            .bind_to(index)
            .map_err(failed("binding a packet socket"))?;
        let bound = socket
            .bound()
            .map_err(failed("asking what a packet socket is bound to"))?;
        match bound.sll_hatype {
            libc::ARPHRD_ETHER => Ok(socket),
            _ => Err(PortError::NotEthernet(name.to_owned())),
        }
    }

    /// Returns the interface's index in its network namespace.
    pub fn interface(&self) -> u32 {
        self.index.unsigned_abs()
    }

    /// Makes the interface promiscuous as long as this value lives.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_promiscuous(&self) -> Result<(), PortError> {
        let membership = libc::packet_mreq {
            mr_ifindex: self.index,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)
            .map_err(|error| PortError::of("setting promiscuous mode", CAPABILITY, error))
    }

    /// Has a BPF program decide which frames it receives from now on.
    #[cfg(bpf_programs)]
    pub(crate) fn set_filter(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let program: libc::c_int = program.as_raw_fd();
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_BPF, program)
    }

    /// Discards the frames that have not been read; returns their number.
    pub(crate) fn discard(&self) -> u64 {
        let mut discarded = 0;
        loop {
            // A frame is removed whole, however little of it is read.
            match self.read(&mut [0; 64]) {
                Ok(_) => discarded += 1,
                Err(error) => match error.raw_os_error() {
                    // The second is an error of the past, returned once.
                    Some(libc::EINTR | libc::ENETDOWN) => {}
                    _ => return discarded,
                },
            }
        }
    }

    /// Returns whether the interface still exists.
    pub fn is_attached(&self) -> bool {
        self.bound()
            .is_ok_and(|bound| bound.sll_ifindex == self.index)
    }

    /// Returns the number of frames lost since the last call because they were not read in time.
    pub fn take_dropped(&self) -> u64 {
        let mut counts = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most the given length, into a structure that lives until the call
        // returns.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut counts).cast(),
                &mut length,
            )
        };
        match result {
            0 => u64::from(counts.tp_drops),
            _ => 0,
        }
    }

    /// Reads the next frame: see [`Tap::receive`](super::Tap::receive).
    ///
    /// # Errors
    /// The system's error: the interface is down, for instance.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let (length, tag) = loop {
            match self.read(buffer) {
                Ok(read) => break read,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        };
        let Some(tag) = tag else {
            return Ok(Some(length));
        };
        match tag.insert(buffer, length) {
            Some(length) => Ok(Some(length)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Reads a frame, and the VLAN tag that was removed from it.
    fn read(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<VlanTag>)> {
        let mut data = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        let mut control = [0_u64; CONTROL];
        // SAFETY: a structure of numbers and pointers, for which zeros are valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the message names `buffer` and `control` with their lengths; both live until the call
        // returns.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut message, 0) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        Ok((length, tag_in(&message)))
    }

    /// Writes a frame: see [`Tap::send`](super::Tap::send).
    ///
    /// # Errors
    /// The system's error: the interface is down, or the header does not fit the frame.
    pub fn send(&self, frame: &[IoSlice<'_>]) -> io::Result<bool> {
        write(self.socket.as_fd(), frame)
    }

    fn open(index: libc::c_int) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Protocol 0: no frame arrives before the socket is bound.
        // SAFETY: the call takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Self { socket, index })
    }

    /// Sets an option to a structure of numbers, as the kernel expects it.
    fn set<T: Copy>(&self, level: libc::c_int, option: libc::c_int, value: T) -> io::Result<()> {
        // SAFETY: the value is as long as its length says, and lives until the call returns.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(&value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Enlarges the buffers for a burst of super-packets, without privileges only to the system's limit.
    fn enlarge_buffers(&self) {
        const SIZE: libc::c_int = 8 << 20;
        for (forced, allowed) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if self.set(libc::SOL_SOCKET, forced, SIZE).is_err() {
                // It cannot fail: a size above the limit is set to the limit.
                let _ = self.set(libc::SOL_SOCKET, allowed, SIZE);
            }
        }
    }

    fn bind_to(&self, index: libc::c_int) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index,
            ..NO_ADDRESS
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

    /// Returns the address that it is bound to, without an interface if that has disappeared.
    fn bound(&self) -> io::Result<libc::sockaddr_ll> {
        let mut address = NO_ADDRESS;
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel writes at most the given length, into an address that lives until the call
        // returns.
        let result = unsafe {
            libc::getsockname(
                self.socket.as_raw_fd(),
                std::ptr::from_mut(&mut address).cast(),
                &mut length,
            )
        };
        match result {
            0 => Ok(address),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// An empty address.
const NO_ADDRESS: libc::sockaddr_ll = libc::sockaddr_ll {
    sll_family: 0,
    sll_protocol: 0,
    sll_ifindex: 0,
    sll_hatype: 0,
    sll_pkttype: 0,
    sll_halen: 0,
    sll_addr: [0; 8],
};

/// The words of a control message with a `tpacket_auxdata`, with a margin.
const CONTROL: usize = 16;

/// Returns the VLAN tag of a frame from the control message (packet(7), PACKET_AUXDATA).
fn tag_in(message: &libc::msghdr) -> Option<VlanTag> {
    // SAFETY: the kernel has filled the message; its control buffer is alive, and aligned for a header.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if header.cmsg_level != libc::SOL_PACKET || header.cmsg_type != libc::PACKET_AUXDATA {
        return None;
    }
    // SAFETY: this kind of message has a `tpacket_auxdata` of numbers after its header, at any alignment.
    let data: libc::tpacket_auxdata =
        unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = match data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => VlanTag::CUSTOMER,
        _ => data.tp_vlan_tpid,
    };
    Some(VlanTag {
        kind,
        control: data.tp_vlan_tci,
    })
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
