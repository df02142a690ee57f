//! Datagrams at a constant rate, without congestion control.
//!
//! Datagrams that are due within [`QUANTUM`] leave together, by one system call with segmentation
//! offload: a wake-up for each would leave no time for anything else. The host's link spreads them
//! again, as that of a real host would.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use weir_scenario::UdpEcn;
use weir_units::{ByteSize, Duration};

use super::meter::Meter;
use super::payload::BLOCK;
use super::ticks::Ticks;
use crate::clock::Alarm;
use crate::control::FlowFailure;

/// How far datagrams may be apart that leave together.
const QUANTUM: Duration = Duration::from_micros(100);
/// What one system call sends at most: the largest UDP payload.
const MOST: usize = 65_507;
/// What arrives waits here while the process does other things.
const RECEIVE_BUFFER: usize = 8 << 20;
/// How many messages one system call receives, and how long each is at most.
const BATCH: usize = 8;
const BUFFER: usize = 64 * 1024;
/// UDP's header and those of IPv4 and IPv6.
const HEADERS_V4: u64 = 28;
const HEADERS_V6: u64 = 48;

/// A socket at an address.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Datagrams {
    pub(super) fn bind(local: SocketAddr) -> Result<Self, FlowFailure> {
        Self::try_bind(local).map_err(|error| FlowFailure::Order {
            problem: format!("{local} cannot be bound: {error}"),
        })
    }

    fn try_bind(local: SocketAddr) -> io::Result<Self> {
        let domain = Domain::for_address(local);
        let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        socket.bind(&local.into())?;
        // What is not granted without privileges is done without.
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

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        SockRef::from(&self.socket)
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Sends datagrams of this IP length to `peer` as `ticks` says, from `start` on, until the task
    /// is ended.
    pub(super) async fn send(
        &self,
        peer: SocketAddr,
        packet: ByteSize,
        ecn: UdpEcn,
        ticks: &mut Ticks,
        alarm: &mut Alarm,
        meter: &Meter,
    ) -> io::Result<()> {
        let headers = if peer.is_ipv4() {
            HEADERS_V4
        } else {
            HEADERS_V6
        };
        let payload = packet.bytes().saturating_sub(headers).max(1) as usize;
        let most = (MOST / payload).clamp(1, self.state.max_gso_segments().max(1));
        loop {
            let due = ticks.wait(alarm, QUANTUM).await?;
            let mut left = usize::try_from(due).unwrap_or(usize::MAX);
            while left > 0 {
                let count = left.min(most);
                let transmit = Transmit {
                    destination: peer,
                    ecn: codepoint(ecn),
                    contents: &BLOCK[..count * payload],
                    segment_size: (count > 1).then_some(payload),
                    src_ip: None,
                };
                self.transmit(&transmit).await?;
                meter.count_datagrams(count as u64, 0);
                left -= count;
            }
        }
    }

    async fn transmit(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let send = || {
            self.state
                .try_send(UdpSockRef::from(&self.socket), transmit)
        };
        match self.socket.async_io(Interest::WRITABLE, send).await {
            Ok(()) => Ok(()),
            // No way there now, as while an interface is down: lost, as on the way.
            Err(error) if is_loss(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Counts what arrives until the task is ended.
    pub(super) async fn receive(&self, meter: &Meter) -> io::Result<()> {
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
                    .for_each(|meta| count_in(meta, meter)),
                // What an ICMP message says of a datagram of ours.
                Err(error) if is_loss(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn count_in(meta: &RecvMeta, meter: &Meter) {
    let datagrams = meta.len.div_ceil(meta.stride.max(1)) as u64;
    let marked = meta.ecn == Some(EcnCodepoint::Ce);
    meter.count_delivered(meta.len as u64);
    meter.count_datagrams(datagrams, if marked { datagrams } else { 0 });
}

fn codepoint(ecn: UdpEcn) -> Option<EcnCodepoint> {
    match ecn {
        UdpEcn::NotEct => None,
        UdpEcn::Ect0 => Some(EcnCodepoint::Ect0),
        UdpEcn::Ect1 => Some(EcnCodepoint::Ect1),
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
