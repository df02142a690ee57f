//! Plain UDP datagrams without congestion control, in batches: GSO to send, GRO to receive.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use weir_units::ByteSize;

use crate::error::Error;

pub use quinn_udp::EcnCodepoint;

/// The maximum that one system call sends: the largest UDP payload.
const MOST: usize = 65_507;
/// The receive buffer, for datagrams that arrive while the process is busy.
const RECEIVE_BUFFER: usize = 8 << 20;
/// The number of messages that one system call receives, and the maximum size of each.
const BATCH: usize = 8;
const BUFFER: usize = 64 * 1024;
/// The payload of datagrams.
static ZEROS: [u8; MOST] = [0; MOST];

/// A bound UDP socket.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// A batch of received datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedBatch {
    /// The number of datagrams.
    pub datagrams: u64,
    /// The number of datagrams with a CE mark.
    pub marked: u64,
    /// Their payload.
    pub payload: ByteSize,
}

impl Udp {
    /// Binds a socket. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Setting`] if the address cannot be bound.
    pub fn bind(local: SocketAddr) -> Result<Self, Error> {
        Self::try_bind(local)
            .map_err(|error| Error::setting(format!("{local} cannot be bound: {error}")))
    }

    fn try_bind(local: SocketAddr) -> io::Result<Self> {
        let domain = Domain::for_address(local);
        let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        socket.bind(&local.into())?;
        // Without privileges the kernel may grant less.
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        let forced =
            rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER);
        if let Err(error) = forced {
            tracing::debug!(%error, "a UDP receive buffer stays small");
        }
        let socket = UdpSocket::from_std(socket.into())?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(Self { socket, state })
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        SockRef::from(&self.socket)
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Sends as many of `count` datagrams with `payload` bytes of zeros each as one system call
    /// accepts, and returns their number. If there is currently no route to `peer`, they are lost,
    /// as on a path.
    ///
    /// # Errors
    /// The error of the operating system.
    pub async fn send(
        &self,
        peer: SocketAddr,
        payload: ByteSize,
        count: u64,
        ecn: Option<EcnCodepoint>,
    ) -> io::Result<u64> {
        let payload = payload.as_usize().clamp(1, MOST);
        let most = (MOST / payload).clamp(1, self.state.max_gso_segments().max(1));
        let count = most.min(usize::try_from(count).unwrap_or(usize::MAX));
        let transmit = Transmit {
            destination: peer,
            ecn,
            contents: &ZEROS[..count * payload],
            segment_size: (count > 1).then_some(payload),
            src_ip: None,
        };
        let send = || {
            self.state
                .try_send(UdpSockRef::from(&self.socket), &transmit)
        };
        match self.socket.async_io(Interest::WRITABLE, send).await {
            Err(error) if !is_loss(&error) => Err(error),
            // Sent, or lost.
            _ => Ok(count as u64),
        }
    }

    /// Calls `arrived` for all received datagrams until the task is cancelled.
    ///
    /// # Errors
    /// The error of the operating system.
    pub async fn receive(
        &self,
        arrived: &mut (impl FnMut(ReceivedBatch) + Send),
    ) -> io::Result<()> {
        let mut bytes = vec![0; BATCH * BUFFER];
        let mut metas = [RecvMeta::default(); BATCH];
        loop {
            let receive = || {
                let mut chunks = bytes.chunks_exact_mut(BUFFER);
                let mut slices: [IoSliceMut<'_>; BATCH] =
                    std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
                self.state
                    .recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas)
            };
            match self.socket.async_io(Interest::READABLE, receive).await {
                Ok(count) => metas
                    .iter()
                    .take(count)
                    .for_each(|meta| arrived(ReceivedBatch::of(meta))),
                // An ICMP error for one of our datagrams.
                Err(error) if is_loss(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl ReceivedBatch {
    fn of(meta: &RecvMeta) -> Self {
        let datagrams = meta.len.div_ceil(meta.stride.max(1)) as u64;
        Self {
            datagrams,
            marked: if meta.ecn == Some(EcnCodepoint::Ce) {
                datagrams
            } else {
                0
            },
            payload: ByteSize::from_bytes(meta.len as u64),
        }
    }
}

fn is_loss(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
    ) || error.raw_os_error() == Some(libc::ENOBUFS)
}
