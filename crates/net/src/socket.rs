//! A UDP socket of the endpoint: GSO, GRO, ECN and packet information by `quinn-udp`, readiness by
//! tokio, and buffers of the requested size.

mod gathered;

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::task::{Context, Poll, ready};

use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir_units::{ByteSize, Duration};
use weir_wire::{BatchContents, Ecn, Transmit};

use crate::buffers::{BATCH, RecvBuffers};
use crate::busy_poll;
use crate::error::EndpointError;
use crate::error_queue::{ErrorQueue, Undelivered};
use crate::port_sharing::{PortFilter, PortSharing};
use crate::receive_drops;
use crate::succession;
use gathered::GatheredBatch;

/// A local address to bind, and the interface that its packets must take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BindAddress {
    pub(crate) address: SocketAddr,
    pub(crate) interface: Option<String>,
}

/// The sizes that the kernel granted for the socket's buffers, its own overhead included: half of
/// what `SO_RCVBUF` and `SO_SNDBUF` report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffers {
    /// For received packets that were not read yet.
    pub receive: ByteSize,
    /// For sent packets that did not leave yet.
    pub send: ByteSize,
}

impl SocketBuffers {
    /// Returns how many bytes of UDP payload the receive buffer takes while nothing is read. The kernel
    /// counts the memory of packets, against twice the granted size; a packet of 1,452 bytes may take up
    /// to 4,352 (a page and its own description).
    pub(crate) fn burst(&self) -> ByteSize {
        ByteSize::from_bytes(self.receive.bytes() * 2 / 3)
    }
}

/// Settings of all sockets of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketOptions {
    /// The requested buffer sizes.
    pub(crate) buffers: SocketBuffers,
    /// Whether the receive buffer grows with the number of connections.
    pub(crate) receive_buffer_grows: bool,
    pub(crate) sharing: PortSharing,
    /// How long to poll the interface's queue.
    pub(crate) busy_poll: Option<Duration>,
    /// Whether ICMP's messages are read.
    pub(crate) reads_errors: bool,
}

impl SocketOptions {
    /// Buffers of these sizes for the only engine.
    pub(crate) const fn new(buffers: SocketBuffers) -> Self {
        Self {
            buffers,
            receive_buffer_grows: false,
            sharing: PortSharing::Alone,
            busy_poll: None,
            reads_errors: false,
        }
    }
}

/// A UDP socket, registered with tokio for reading only: every packet that leaves makes it
/// "writable" anew, and the runtime would be woken for each. [`Writable`] is for when that matters.
#[derive(Debug)]
pub(crate) struct Socket {
    io: AsyncFd<UdpSocket>,
    udp: UdpSocketState,
    errors: Option<ErrorQueue>,
    pub(crate) local: SocketAddr,
    /// The sizes that were granted first.
    granted: SocketBuffers,
}

impl Socket {
    /// Binds the address; must be called within a tokio runtime.
    pub(crate) fn bind(
        bind_address: &BindAddress,
        options: SocketOptions,
    ) -> Result<Self, EndpointError> {
        let address = canonical(bind_address.address);
        let failed = |source| EndpointError::bind(address, source);
        let socket = socket2::Socket::new(
            Domain::for_address(address),
            Type::DGRAM.nonblocking(),
            Some(Protocol::UDP),
        )
        .map_err(failed)?;
        if let Some(interface) = &bind_address.interface {
            socket
                .bind_device(Some(interface.as_bytes()))
                .map_err(|source| EndpointError::interface(interface, source))?;
        }
        let granted = set_buffers(&socket, options.buffers).map_err(failed)?;
        if options.sharing == PortSharing::Followed {
            succession::check_free(&socket, &address.into()).map_err(failed)?;
        }
        options.sharing.before_bind(&socket).map_err(failed)?;
        socket.bind(&address.into()).map_err(failed)?;
        options.sharing.after_bind(&socket).map_err(failed)?;
        let socket = UdpSocket::from(socket);
        let udp = UdpSocketState::new((&socket).into()).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?;
        without_unused_messages(&socket, local);
        let errors = options.reads_errors.then(|| ErrorQueue::open(&socket));
        let errors = errors.transpose().map_err(failed)?;
        let io = register(socket, Interest::READABLE).map_err(failed)?;
        if let Some(span) = options.busy_poll {
            busy_poll::enable(&io, span).map_err(EndpointError::BusyPoll)?;
        }
        Ok(Self {
            io,
            udp,
            errors,
            local,
            granted,
        })
    }

    /// Lets other sockets of this user have the port too, or no others any more.
    pub(crate) fn share_port(&self, shared: bool) -> io::Result<()> {
        SockRef::from(self.io.get_ref()).set_reuse_port(shared)
    }

    /// Sets the filter of all sockets at the port.
    pub(crate) fn filter(&self, filter: &PortFilter) -> io::Result<()> {
        filter.set(self.io.get_ref())
    }

    /// Returns the sizes of its buffers.
    pub(crate) fn buffers(&self) -> SocketBuffers {
        let receive = SockRef::from(self.io.get_ref()).recv_buffer_size();
        SocketBuffers {
            receive: receive.map_or(self.granted.receive, granted),
            ..self.granted
        }
    }

    /// Enlarges the receive buffer, if the kernel allows that.
    pub(crate) fn grow_receive_buffer(&self, wanted: ByteSize) {
        let forced = rustix::net::sockopt::set_socket_recv_buffer_size_force(
            self.io.get_ref(),
            wanted.as_usize(),
        );
        // Without CAP_NET_ADMIN, the system's limit might be less than an earlier size.
        if forced.is_err() && self.may_have(wanted) {
            let _ = SockRef::from(self.io.get_ref()).set_recv_buffer_size(wanted.as_usize());
        }
        let receive = self.buffers().receive;
        if receive < wanted {
            tracing::debug!(%receive, %wanted, "the kernel does not enlarge a receive buffer");
        }
    }

    /// Whether a new socket gets a receive buffer of that size.
    fn may_have(&self, wanted: ByteSize) -> bool {
        let domain = Domain::for_address(self.local);
        let Ok(other) = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)) else {
            return false;
        };
        other.set_recv_buffer_size(wanted.as_usize()).is_ok()
            && (other.recv_buffer_size()).is_ok_and(|size| granted(size) >= wanted)
    }

    /// Returns how many datagrams its full receive buffer had no room for.
    pub(crate) fn dropped(&self) -> u64 {
        receive_drops::dropped(self.io.get_ref()).map_or(0, u64::from)
    }

    /// Returns how many datagrams one send may hold.
    pub(crate) fn max_datagrams(&self) -> usize {
        self.udp.max_gso_segments()
    }

    /// Returns whether packets from this socket can get to `remote`, by their address families.
    pub(crate) fn reaches(&self, remote: SocketAddr) -> bool {
        reaches(self.local, remote)
    }

    /// Returns whether packets from `local` leave by this socket.
    pub(crate) fn carries(&self, local: SocketAddr) -> bool {
        let all = self.local.ip().is_unspecified()
            && self.local.port() == local.port()
            && (self.local.is_ipv6() || local.is_ipv4());
        all || self.local == local
    }

    /// Converts an address to the notation that the kernel takes for this socket.
    fn in_family(&self, ip: IpAddr) -> IpAddr {
        match (self.local, ip) {
            (SocketAddr::V6(_), IpAddr::V4(ip)) => ip.to_ipv6_mapped().into(),
            (_, ip) => ip,
        }
    }

    /// Sends a batch of datagrams. Failures that [`SendError`] does not name count as losses, which
    /// the engine repairs.
    pub(crate) fn send(
        &self,
        transmit: &Transmit,
        contents: &BatchContents<'_>,
    ) -> Result<(), SendError> {
        // Packets can come from port 0, but none can go there: EINVAL, after which `quinn-udp`
        // would send without GSO and ECN for good. One peer must not cause that for the others.
        if transmit.remote.port() == 0 {
            return Ok(());
        }
        match contents {
            BatchContents::Whole(bytes) => self.send_whole(transmit, bytes),
            BatchContents::Parts(parts) => match self.send_parts(transmit, parts) {
                // The kernel refuses to segment the batch.
                Err(error) if is_refusal_to_segment(&error) => {
                    self.send_whole(transmit, &contents.to_vec())
                }
                Err(error) => not_sent(&error, transmit.remote),
                Ok(()) => Ok(()),
            },
        }
    }

    /// Returns the destination of a batch, in the notation that the kernel takes for this socket.
    fn destination(&self, transmit: &Transmit) -> SocketAddr {
        let ip = self.in_family(transmit.remote.ip());
        SocketAddr::new(ip, transmit.remote.port())
    }

    fn send_whole(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), SendError> {
        let message = quinn_udp::Transmit {
            destination: self.destination(transmit),
            ecn: EcnCodepoint::from_bits(transmit.ecn.bits()),
            contents,
            segment_size: transmit.segment_size,
            // A socket with one address sends from it anyway.
            src_ip: self.sends_from(transmit.local),
        };
        match self.try_send(&message) {
            Ok(()) => Ok(()),
            Err(error) => match transmit.segment_size {
                Some(size) if is_refusal_to_segment(&error) => self.send_singly(&message, size),
                _ => not_sent(&error, transmit.remote),
            },
        }
    }

    fn send_parts(&self, transmit: &Transmit, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let batch = GatheredBatch {
            destination: self.destination(transmit),
            source: self.sends_from(transmit.local),
            ecn: transmit.ecn,
            // A datagram has at most 65,507 bytes.
            segment_size: transmit.segment_size.map(|size| size as u16),
            parts,
        };
        let send = || batch.send(self.io.get_ref());
        match send() {
            Err(error) if is_of_earlier(&error) => send(),
            sent => sent,
        }
    }

    /// Sends the datagrams of a batch one by one, as the kernel refuses to segment it. Older kernels
    /// return EINVAL also where they are too large for the interface; the first datagram then gets that
    /// error itself. Where the socket fills up after the first, the rest counts as lost.
    fn send_singly(
        &self,
        batch: &quinn_udp::Transmit<'_>,
        segment_size: usize,
    ) -> Result<(), SendError> {
        for (index, contents) in batch.contents.chunks(segment_size).enumerate() {
            let single = quinn_udp::Transmit {
                contents,
                segment_size: None,
                ..*batch
            };
            match self.try_send(&single) {
                Ok(()) => {}
                Err(error) if index > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return not_sent(&error, batch.destination),
            }
        }
        Ok(())
    }

    /// Sends a message. Where the kernel reports the fate of an earlier one instead, that is for the error
    /// queue, and the message is sent after all.
    fn try_send(&self, message: &quinn_udp::Transmit<'_>) -> io::Result<()> {
        let send = || self.udp.try_send(self.io.get_ref().into(), message);
        match send() {
            Err(error) if is_of_earlier(&error) => send(),
            sent => sent,
        }
    }

    /// Takes datagrams that came back, where the socket reads errors.
    pub(crate) fn poll_undelivered(&self, cx: &mut Context<'_>, taken: &mut Vec<Undelivered>) {
        if let Some(errors) = &self.errors {
            errors.poll(cx, self.io.get_ref(), taken);
        }
    }

    /// Receives a batch; returns the number of messages.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut impl RecvBuffers,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.io.poll_read_ready(cx))?;
            let received = self.receive(buffers);
            match &received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                Err(error) if is_of_earlier(error) => {}
                Ok(count) => {
                    // The socket is drained: the next arrival is a new edge. Clearing readiness now
                    // saves a call that would only return EAGAIN.
                    if *count < BATCH {
                        guard.clear_ready();
                    }
                    return Poll::Ready(received);
                }
                Err(_) => return Poll::Ready(received),
            }
        }
    }

    /// Receives a batch without asking tokio, for busy polling.
    pub(crate) fn receive_now(&self, buffers: &mut impl RecvBuffers) -> usize {
        self.receive(buffers).unwrap_or(0)
    }

    fn receive(&self, buffers: &mut impl RecvBuffers) -> io::Result<usize> {
        let (mut slices, metas) = buffers.parts();
        self.udp
            .recv(self.io.get_ref().into(), &mut slices, metas.as_mut_slice())
    }

    /// Returns the local address that the peer sent to.
    pub(crate) fn local_of(&self, meta: &RecvMeta) -> Option<SocketAddr> {
        if self.local.ip().is_unspecified() {
            let ip = meta.dst_ip?;
            Some(SocketAddr::new(ip.to_canonical(), self.local.port()))
        } else {
            Some(self.local)
        }
    }

    /// Returns the source address to request from the kernel, where the socket has more than one.
    fn sends_from(&self, local: Option<SocketAddr>) -> Option<IpAddr> {
        let ip = local.filter(|_| self.local.ip().is_unspecified())?.ip();
        (!ip.is_unspecified()).then(|| self.in_family(ip))
    }
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// The socket's send buffer is full; [`Writable`] is ready when to try again.
    Full,
    /// The interface carries no datagrams of that size.
    TooLarge,
    /// The endpoint has no socket for these addresses: it gave up the last one of the family.
    NoSocket,
}

/// Returns an IPv4 address for one that is mapped into IPv6. Connections know only this notation, so
/// that they go on where their socket is replaced by one of another family.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), v6.port()),
            None => address,
        },
    }
}

/// Whether packets from a socket at `local` can get to `remote`, by their address families.
pub(crate) fn reaches(local: SocketAddr, remote: SocketAddr) -> bool {
    let is_dual = local.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    is_dual || local.is_ipv4() == remote.is_ipv4()
}

/// Whether the kernel does not segment a batch: there are too many datagrams (EINVAL), or the interface or
/// IPsec on it cannot (EIO).
fn is_refusal_to_segment(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO))
}

/// Whether an error is about a datagram that was sent earlier. The kernel reports it once.
fn is_of_earlier(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// Translates a send error of the kernel. Those that [`SendError`] does not name are losses.
fn not_sent(error: &io::Error, remote: SocketAddr) -> Result<(), SendError> {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Err(SendError::Full),
        Some(libc::EMSGSIZE) => Err(SendError::TooLarge),
        _ => {
            tracing::debug!(%error, %remote, "a datagram could not be sent");
            Ok(())
        }
    }
}

/// Waits until a full socket accepts packets again: a second descriptor of the socket, registered
/// for writing for as long as that takes.
pub(crate) struct Writable(AsyncFd<UdpSocket>);

impl Writable {
    pub(crate) fn new(socket: &Socket) -> io::Result<Self> {
        register(socket.io.get_ref().try_clone()?, Interest::WRITABLE).map(Self)
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_write_ready(cx).map(|_| ())
    }
}

fn register(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
    // SAFETY: the socket is owned by the `AsyncFd` from here on, so its descriptor stays open and
    // the same for as long as that lives.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}

/// Returns the ECN codepoint of a received message.
pub(crate) fn ecn_of(meta: &RecvMeta) -> Ecn {
    match meta.ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

fn set_buffers(socket: &socket2::Socket, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
    let receive = wanted.receive.as_usize();
    socket.set_recv_buffer_size(receive)?;
    if granted(socket.recv_buffer_size()?) < wanted.receive {
        // Takes CAP_NET_ADMIN; without it the granted size below shows the failure.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, receive);
    }
    let send = wanted.send.as_usize();
    socket.set_send_buffer_size(send)?;
    if granted(socket.send_buffer_size()?) < wanted.send {
        let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(socket, send);
    }
    let buffers = SocketBuffers {
        receive: granted(socket.recv_buffer_size()?),
        send: granted(socket.send_buffer_size()?),
    };
    if buffers.receive < wanted.receive || buffers.send < wanted.send {
        tracing::warn!(
            "the kernel granted socket buffers of {} (receive) and {} (send) instead of {} and {}: \
             raise net.core.rmem_max and net.core.wmem_max",
            buffers.receive,
            buffers.send,
            wanted.receive,
            wanted.send,
        );
    }
    Ok(buffers)
}

/// The kernel doubles the requested size, to make room for its own overhead.
fn granted(reported: usize) -> ByteSize {
    ByteSize::from_bytes(reported as u64 / 2)
}

/// Disables metadata that `quinn-udp` requests per batch and that is not read here: timestamps, and
/// the local address where there is only one.
fn without_unused_messages(socket: &UdpSocket, local: SocketAddr) {
    turn_off(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
    if !local.ip().is_unspecified() {
        match local {
            SocketAddr::V4(_) => turn_off(socket, libc::IPPROTO_IP, libc::IP_PKTINFO),
            SocketAddr::V6(_) => turn_off(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        }
    }
}

fn turn_off(socket: &UdpSocket, level: libc::c_int, option: libc::c_int) {
    if let Err(error) = set_option(socket, level, option, 0) {
        tracing::debug!(%error, level, option, "a socket option stays on");
    }
}

/// Sets a socket option whose value is a C int.
pub(crate) fn set_option(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the option's value is a C int of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests;
