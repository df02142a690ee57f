//! A UDP socket that works in batches: GSO to send, GRO and `recvmmsg` to receive. It sleeps in
//! tokio, optionally after a spin with `sched_yield`.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::thread::sched_yield;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use weir_traffic::calls::Error;

use crate::settings::udp_socket;

/// Super-packets per receive call.
const BATCH: usize = 4;

/// Buffer size of a super-packet.
const SUPER_PACKET: usize = 64 * 1024;

/// Spin time before sleeping.
const SPIN: Duration = Duration::from_micros(50);

/// A bound UDP socket.
pub struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
    spin: bool,
}

impl Udp {
    /// Opens a socket. With `spin`, it polls for datagrams for a while before it sleeps. Must be called
    /// within a tokio runtime.
    ///
    /// # Errors
    /// Fails if the address cannot be bound.
    pub fn bind(address: SocketAddr, spin: bool) -> Result<Self, Error> {
        let doing = "opening a UDP socket";
        let socket = udp_socket(address).and_then(|socket| UdpSocket::from_std(socket.into()));
        let socket = socket.map_err(Error::io(doing))?;
        let state = UdpSocketState::new((&socket).into()).map_err(Error::io(doing))?;
        let address = socket.local_addr().map_err(Error::io(doing))?;
        Ok(Self {
            socket,
            state,
            address,
            spin,
        })
    }

    /// Returns the local address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends one batch of datagrams of `segment` bytes each; the last one may be shorter.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub async fn send(
        &self,
        destination: SocketAddr,
        contents: &[u8],
        segment: usize,
        ecn: Option<EcnCodepoint>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination,
            ecn,
            contents,
            segment_size: (segment < contents.len()).then_some(segment),
            src_ip: None,
        };
        let send = || self.state.try_send((&self.socket).into(), &transmit);
        match send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        loop {
            self.socket.writable().await?;
            match self.socket.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    /// Fills the batch with the datagrams available; false if there are none.
    pub(crate) fn try_receive(&self, batch: &mut Batch) -> io::Result<bool> {
        match self.receive_now(batch) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn receive_now(&self, batch: &mut Batch) -> io::Result<()> {
        batch.count = 0;
        let (chunks, _) = batch.memory.as_chunks_mut::<SUPER_PACKET>();
        let mut chunks = chunks.iter_mut();
        let mut slices: [IoSliceMut<'_>; BATCH] = std::array::from_fn(|_| {
            let chunk = chunks.next();
            IoSliceMut::new(chunk.map_or(&mut [][..], |chunk| chunk.as_mut_slice()))
        });
        batch.count = self
            .state
            .recv((&self.socket).into(), &mut slices, &mut batch.meta)?;
        Ok(())
    }

    /// Waits for datagrams and fills the batch with them. Cancel safe: no received datagram is lost.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub async fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        // A short batch has emptied the socket: another receive call would return nothing.
        let may_have_more = batch.count == BATCH || self.spin;
        if may_have_more && self.try_receive(batch)? {
            return Ok(());
        }
        if self.spin {
            let begin = Instant::now();
            while begin.elapsed() < SPIN {
                sched_yield();
                if self.try_receive(batch)? {
                    return Ok(());
                }
            }
        }
        batch.count = 0;
        loop {
            self.socket.readable().await?;
            // After a short batch tokio must see "would block" to wait for the next edge. An edge in
            // between is not lost: it sets the readiness again.
            let received = self.socket.try_io(Interest::READABLE, || {
                self.receive_now(batch)?;
                match batch.count {
                    BATCH => Ok(()),
                    _ => Err(io::ErrorKind::WouldBlock.into()),
                }
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && batch.count == 0 => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => return Ok(()),
            }
        }
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The buffers of one receive call.
pub struct Batch {
    memory: Vec<u8>,
    meta: [RecvMeta; BATCH],
    count: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            memory: vec![0; BATCH * SUPER_PACKET],
            meta: [RecvMeta::default(); BATCH],
            count: 0,
        }
    }
}

impl Batch {
    /// Returns the datagrams received, each with its sender.
    pub(crate) fn datagrams(&mut self) -> impl Iterator<Item = (SocketAddr, &mut [u8])> {
        let marked = self.marked_datagrams();
        marked.map(|(from, _, datagram)| (from, datagram))
    }

    /// Returns the datagrams received, each with its sender and its ECN codepoint.
    pub fn marked_datagrams(
        &mut self,
    ) -> impl Iterator<Item = (SocketAddr, Option<EcnCodepoint>, &mut [u8])> {
        let (chunks, _) = self.memory.as_chunks_mut::<SUPER_PACKET>();
        chunks
            .iter_mut()
            .zip(&self.meta)
            .take(self.count)
            .flat_map(|(chunk, meta)| {
                let data = chunk.get_mut(..meta.len).unwrap_or_default();
                let datagrams = data.chunks_mut(meta.stride.max(1));
                datagrams.map(|datagram| (meta.addr, meta.ecn, datagram))
            })
    }
}
