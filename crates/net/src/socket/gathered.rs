//! Batches of datagrams whose contents lie in several places; `quinn-udp` sends from one.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::{MsgHdr, SockAddr, SockRef};
use weir_wire::Ecn;

/// A batch of datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct GatheredBatch<'b> {
    /// The destination, in the notation of the socket's family.
    pub(super) destination: SocketAddr,
    /// The source address, where the socket has more than one.
    pub(super) source: Option<IpAddr>,
    pub(super) ecn: Ecn,
    /// The size of each datagram but the last, where there are several.
    pub(super) segment_size: Option<u16>,
    /// The contents, in the order in which they are to be sent.
    pub(super) parts: &'b [IoSlice<'b>],
}

impl GatheredBatch<'_> {
    /// Sends the batch with one system call.
    ///
    /// # Errors
    /// That of `sendmsg` (man 7 udp).
    pub(super) fn send(&self, socket: &UdpSocket) -> io::Result<()> {
        let destination = SockAddr::from(self.destination);
        let control = self.control_messages();
        let message = MsgHdr::new()
            .with_addr(&destination)
            .with_buffers(self.parts)
            .with_control(&control.0);
        SockRef::from(socket).sendmsg(&message, 0)?;
        Ok(())
    }

    fn control_messages(&self) -> ControlMessages {
        let mut control = ControlMessages::default();
        let ecn = libc::c_int::from(self.ecn.bits()).to_ne_bytes();
        if self.destination.ip().to_canonical().is_ipv4() {
            control.push(libc::IPPROTO_IP, libc::IP_TOS, &ecn);
        } else {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &ecn);
        }
        if let Some(size) = self.segment_size {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &size.to_ne_bytes());
        }
        match self.source {
            // `in_pktinfo`: no interface, the source address, and one that only the kernel writes.
            Some(IpAddr::V4(ip)) => {
                let mut information = [0; 12];
                information[4..8].copy_from_slice(&ip.octets());
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &information);
            }
            // `in6_pktinfo`: the source address, and no interface.
            Some(IpAddr::V6(ip)) => {
                let mut information = [0; 20];
                information[..16].copy_from_slice(&ip.octets());
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &information);
            }
            None => {}
        }
        control
    }
}

/// Control messages as in man 3 cmsg: each a `cmsghdr` and its data, padded to the size of a word.
#[derive(Default)]
struct ControlMessages(Vec<u8>);

impl ControlMessages {
    fn push(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        const HEADER: usize = size_of::<libc::cmsghdr>();
        self.0.extend((HEADER + data.len()).to_ne_bytes());
        self.0.extend(level.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(data);
        let padded = self.0.len().next_multiple_of(size_of::<usize>());
        self.0.resize(padded, 0);
    }
}
