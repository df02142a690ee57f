//! The error queue of a socket (`IP_RECVERR`, `man 7 ip`): the datagrams of which ICMP says that nobody
//! listens where they went.
//!
//! `quinn-udp` reads the queue too, but leaves out what an error is about: the destination's port, and the
//! datagram that ICMP quotes, without which anybody could claim anything.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::task::{Context, Poll};

use rustix::event::epoll;
use socket2::SockAddr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::socket::set_option;

/// The bytes of a quoted datagram that are kept: enough for a connection ID.
const QUOTED: usize = 32;
/// Room for the control messages of one error.
const CONTROL: usize = 256;
/// Errors that one call takes; the rest waits for the next one.
const AT_ONCE: usize = 64;

/// A datagram that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undelivered {
    /// Where nobody listens, in the notation of the socket's family.
    pub(crate) remote: SocketAddr,
    quoted: [u8; QUOTED],
    length: usize,
}

impl Undelivered {
    /// Returns the beginning of the datagram, as far as ICMP quotes it.
    pub(crate) fn quoted(&self) -> &[u8] {
        &self.quoted[..self.length]
    }
}

/// Tells when a socket's error queue has entries. The runtime's own registration of the socket does not
/// wake for errors alone, and one that does would wake for every datagram too; the epoll instance here
/// watches nothing else.
#[derive(Debug)]
pub(crate) struct ErrorQueue {
    errors: AsyncFd<OwnedFd>,
}

impl ErrorQueue {
    /// Switches the queue on; must be called within a tokio runtime.
    pub(crate) fn open(socket: &UdpSocket) -> io::Result<Self> {
        if socket.local_addr()?.is_ipv6() {
            set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
        }
        // Also of a socket for both families; one for IPv6 alone takes it without effect.
        set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Errors are reported always.
        let data = epoll::EventData::new_u64(0);
        epoll::add(&instance, socket, data, epoll::EventFlags::ET)?;
        // SAFETY: the descriptor is owned by the `AsyncFd`, so it stays open and the same as long as that.
        let errors = unsafe { AsyncFd::register_with_interest(instance, Interest::READABLE) }?;
        Ok(Self { errors })
    }

    /// Takes entries from the queue of `socket`, where there may be any.
    pub(crate) fn poll(
        &self,
        cx: &mut Context<'_>,
        socket: &UdpSocket,
        taken: &mut Vec<Undelivered>,
    ) {
        while let Poll::Ready(Ok(mut guard)) = self.errors.poll_read_ready(cx) {
            let mut events = [MaybeUninit::uninit(); 1];
            // Only takes the edge. Errors of reading are those of an empty queue.
            let _ = epoll::wait(
                self.errors.get_ref(),
                &mut events,
                Some(&Default::default()),
            );
            guard.clear_ready();
            for _ in 0..AT_ONCE {
                match receive(socket) {
                    Ok(Some(undelivered)) => taken.push(undelivered),
                    // Another error, such as a datagram too large for the interface.
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
            if taken.len() >= AT_ONCE {
                cx.waker().wake_by_ref();
                return;
            }
        }
    }
}

/// Control messages, aligned as the kernel wants them.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Takes an entry from the error queue; `None` if it is of another kind.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if the queue is empty.
fn receive(socket: &UdpSocket) -> io::Result<Option<Undelivered>> {
    let mut quoted = [0; QUOTED];
    let mut control = Control([0; CONTROL]);
    let mut part = libc::iovec {
        iov_base: quoted.as_mut_ptr().cast(),
        iov_len: quoted.len(),
    };
    // SAFETY: the kernel writes the address to the storage, of which it knows the length, and the other
    // parts of the message to buffers of this function, of the lengths given; an address of the length
    // that it returns is initialized.
    let ((length, is_refused), address) = unsafe {
        SockAddr::try_init(|storage, storage_length| {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_name = storage.cast();
            message.msg_namelen = *storage_length;
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = control.0.len();
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            let length = libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags);
            let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
            *storage_length = message.msg_namelen;
            Ok((length.min(QUOTED), is_port_unreachable(&message)))
        })
    }?;
    let remote = address.as_socket().filter(|_| is_refused);
    Ok(remote.map(|remote| Undelivered {
        remote,
        quoted,
        length,
    }))
}

/// Whether the control messages of a message say that nobody listens at a port.
///
/// # Safety
/// The kernel has filled the message's control buffer, which is still valid.
unsafe fn is_port_unreachable(message: &libc::msghdr) -> bool {
    // SAFETY: the caller's promise; the headers that these functions return lie in the buffer.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: as above.
    while let Some(header) = unsafe { next.as_ref() } {
        let is_error = matches!(
            (header.cmsg_level, header.cmsg_type),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        );
        // SAFETY: computes a length.
        let needed = unsafe { libc::CMSG_LEN(size_of::<libc::sock_extended_err>() as u32) };
        if is_error && header.cmsg_len >= needed as usize {
            // SAFETY: the message is long enough for the value, which may be unaligned.
            let error: libc::sock_extended_err =
                unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
            let is_icmp = [libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6];
            return is_icmp.contains(&error.ee_origin)
                && error.ee_errno == libc::ECONNREFUSED as u32;
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    false
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv6Addr;

    use super::*;

    /// Sends datagrams to a closed port, and returns what the queue has of them.
    async fn undelivered(bind: &str, closed: SocketAddr) -> Vec<Undelivered> {
        let socket = UdpSocket::bind(bind).unwrap();
        socket.set_nonblocking(true).unwrap();
        let queue = ErrorQueue::open(&socket).unwrap();
        let mut taken = Vec::new();
        for datagram in [&b"one"[..], &[7; 100]] {
            let before = taken.len();
            socket.send_to(datagram, closed).unwrap();
            poll_fn(|cx| {
                queue.poll(cx, &socket, &mut taken);
                if taken.len() > before {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        taken
    }

    #[tokio::test]
    async fn datagrams_to_a_closed_port_come_back() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
        let remote = closed.local_addr().unwrap();
        drop(closed);
        let taken = undelivered("127.0.0.1:0", remote).await;
        assert!(taken.iter().all(|error| error.remote == remote));
        assert_eq!(taken[0].quoted(), b"one");
        assert_eq!(taken[1].quoted(), [7; QUOTED]);
    }

    #[tokio::test]
    async fn a_socket_for_both_families_names_addresses_in_its_own() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        let mapped: Ipv6Addr = "::ffff:127.0.0.1".parse().unwrap();
        let remote = SocketAddr::from((mapped, port));
        let taken = undelivered("[::]:0", remote).await;
        assert!(!taken.is_empty() && taken.iter().all(|error| error.remote == remote));
    }

    #[tokio::test]
    async fn datagrams_that_are_too_large_are_not_undelivered() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let queue = ErrorQueue::open(&socket).unwrap();
        let open = UdpSocket::bind("127.0.0.1:0").unwrap();
        let remote = open.local_addr().unwrap();
        let error = socket.send_to(&vec![0; 65_508], remote).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        let mut taken = Vec::new();
        poll_fn(|cx| {
            queue.poll(cx, &socket, &mut taken);
            Poll::Ready(())
        })
        .await;
        assert!(taken.is_empty());
    }
}
