//! Packet sockets with virtio-net headers.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::interface::name_bytes;
use super::{PortError, write};
use crate::offload::VlanTag;

const CAPABILITY: &str = "cap_net_raw";

/// A socket at an Ethernet interface (packet(7)): it takes all frames that come in there, and sends
/// frames out of it. At the outer end of a veth pair these are the frames of the namespace at its inner
/// end.
///
/// The interface's own stack sees what comes in too; have it without addresses. VLAN tags that the interface
/// has taken out of frames are in them again.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    /// The interface's number.
    index: libc::c_int,
}

impl PacketSocket {
    /// A socket at the interface `name` of the calling thread's network namespace. Its buffers are 8 MB
    /// where the system allows that.
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
        // What the socket itself sends need not come back to it.
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

    /// The interface's number in its network namespace.
    pub fn interface(&self) -> u32 {
        self.index.unsigned_abs()
    }

    /// Has the interface take frames for all addresses, and not for its own alone, as long as this value
    /// lives.
    ///
    /// # Errors
    /// What the system says.
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

    /// Whether the interface is still there.
    pub fn is_attached(&self) -> bool {
        self.bound()
            .is_ok_and(|bound| bound.sll_ifindex == self.index)
    }

    /// How many frames were lost since the last call, because they were not read in time.
    pub fn take_dropped(&self) -> u64 {
        let mut counts = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes no more than the length says, into a structure that lives until the
        // call returns.
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

    /// Takes the next frame that has come in: see [`Tap::receive`](super::Tap::receive).
    ///
    /// # Errors
    /// What the system says: the interface is down, for instance.
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

    /// Reads a frame, and the VLAN tag that is not in it any more.
    fn read(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<VlanTag>)> {
        let mut data = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        let mut control = [0_u64; CONTROL];
        // SAFETY: a structure of numbers and pointers, of which zeros make one.
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

    /// Sends a frame: see [`Tap::send`](super::Tap::send).
    ///
    /// # Errors
    /// What the system says: the interface is down, the header fits no frame.
    pub fn send(&self, frame: &[IoSlice<'_>]) -> io::Result<bool> {
        write(self.socket.as_fd(), frame)
    }

    fn open(index: libc::c_int) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Protocol 0: nothing comes in before the socket is bound.
        // SAFETY: the call takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Self { socket, index })
    }

    /// Sets an option, whose value is the structure of numbers that the kernel expects.
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

    /// What it is bound to: no interface any more where that has disappeared.
    fn bound(&self) -> io::Result<libc::sockaddr_ll> {
        let mut address = NO_ADDRESS;
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel writes no more than the length says, into an address that lives until the call
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

/// The address of nothing.
const NO_ADDRESS: libc::sockaddr_ll = libc::sockaddr_ll {
    sll_family: 0,
    sll_protocol: 0,
    sll_ifindex: 0,
    sll_hatype: 0,
    sll_pkttype: 0,
    sll_halen: 0,
    sll_addr: [0; 8],
};

/// Words of a control message with a `tpacket_auxdata`, and some more.
const CONTROL: usize = 16;

/// The tag of a frame that the kernel tells of beside it (packet(7), PACKET_AUXDATA).
fn tag_in(message: &libc::msghdr) -> Option<VlanTag> {
    // SAFETY: the kernel has filled the message; its control buffer is alive, and aligned for a header.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if header.cmsg_level != libc::SOL_PACKET || header.cmsg_type != libc::PACKET_AUXDATA {
        return None;
    }
    // SAFETY: this kind of message has a `tpacket_auxdata` behind its header, of numbers, at any alignment.
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
