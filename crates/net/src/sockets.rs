//! The endpoint's sockets, one for each of its addresses, and the choice of a socket for a packet.
//!
//! Mostly there is one. Where there are several, a connection caches the socket of its path
//! ([`SendSocket`]) and looks it up again only when the path's local address or the sockets change.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_units::ByteSize;
use weir_wire::{BatchContents, Transmit};

use crate::error::EndpointError;
use crate::socket::{BindAddress, SendError, Socket, SocketBuffers, SocketOptions};

/// What a socket's receive buffer holds for each of its connections, in bytes: answers to ten calls, say. All
/// connections share the socket, where those of TCP have buffers of their own.
const SHARE: u64 = 128 * 1024;
/// The most connections for which receive buffers grow.
const MOST_SHARES: usize = 2048;

/// All sockets of an endpoint. Its lock is a leaf: nothing else is locked under it.
pub(crate) struct Sockets {
    options: SocketOptions,
    /// How many datagrams one send may hold, before a connection has a socket.
    max_datagrams: usize,
    state: Mutex<SocketTable>,
    /// Cloned by each connection that cannot leave a replaced socket yet.
    held: SocketGuard,
    /// Counts the changes of `state`.
    generation: AtomicU64,
    /// For how many connections the receive buffers have room.
    has_room_for: AtomicUsize,
    /// Datagrams for which there was no socket.
    without_socket: AtomicU64,
    /// The generation in which the last of them was logged.
    logged_in: AtomicU64,
}

struct SocketTable {
    bound_sockets: Vec<BoundSocket>,
    retired: Option<RetiredSocket>,
}

/// An address to bind and its socket: `None` while the address is gone.
struct BoundSocket {
    address: BindAddress,
    socket: Option<Arc<Socket>>,
}

/// A socket that was replaced. It receives packets in flight to its address until the first
/// datagram reaches the new one, and connections whose handshake is not confirmed use it until it
/// is.
#[derive(Clone)]
pub(crate) struct RetiredSocket {
    pub(crate) socket: Arc<Socket>,
    pub(crate) replacement: Arc<Socket>,
}

/// Keeps a replaced socket open while any clone exists.
pub(crate) type SocketGuard = Arc<()>;

/// The sockets that the driver receives from.
#[derive(Default)]
pub(crate) struct OpenSockets {
    pub(crate) generation: u64,
    pub(crate) sockets: Vec<Arc<Socket>>,
    pub(crate) leaving: Option<RetiredSocket>,
}

impl OpenSockets {
    /// Returns whether this socket replaced one that is still open.
    pub(crate) fn is_replacement(&self, socket: &Arc<Socket>) -> bool {
        let leaving = self.leaving.as_ref();
        leaving.is_some_and(|leaving| Arc::ptr_eq(&leaving.replacement, socket))
    }
}

impl Sockets {
    /// Binds all `bind_addresses`, of which there is at least one; must be called within a tokio runtime.
    pub(crate) fn bind(
        bind_addresses: Vec<BindAddress>,
        options: SocketOptions,
    ) -> Result<Self, EndpointError> {
        let mut bound_sockets = Vec::with_capacity(bind_addresses.len());
        let mut max_datagrams = 1;
        for mut bind_address in bind_addresses {
            let socket = Socket::bind(&bind_address, options)?;
            // Peers know the socket by its port: bind the same one again.
            bind_address.address = socket.local;
            max_datagrams = socket.max_datagrams();
            let socket = Some(Arc::new(socket));
            bound_sockets.push(BoundSocket {
                address: bind_address,
                socket,
            });
        }
        let state = SocketTable {
            bound_sockets,
            retired: None,
        };
        Ok(Self {
            options,
            max_datagrams,
            state: Mutex::new(state),
            held: SocketGuard::default(),
            generation: AtomicU64::new(1),
            has_room_for: AtomicUsize::new((options.buffers.receive.bytes() / SHARE) as usize),
            without_socket: AtomicU64::new(0),
            logged_in: AtomicU64::new(0),
        })
    }

    /// Returns the number of datagrams that were lost as there was no socket to send them by.
    pub(crate) fn without_socket(&self) -> u64 {
        self.without_socket.load(Ordering::Relaxed)
    }

    /// Returns a number that changes whenever a socket is opened or closed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns all sockets on which datagrams may arrive.
    pub(crate) fn open(&self) -> OpenSockets {
        let state = self.lock();
        let open = state
            .bound_sockets
            .iter()
            .filter_map(|bound_socket| bound_socket.socket.clone());
        let leaving = state.retired.clone();
        let left = leaving.iter().map(|leaving| leaving.socket.clone());
        OpenSockets {
            generation: self.generation(),
            sockets: open.chain(left).collect(),
            leaving,
        }
    }

    /// Returns the first address.
    pub(crate) fn local(&self) -> SocketAddr {
        let state = self.lock();
        let first = state
            .bound_sockets
            .first()
            .map(|bound_socket| bound_socket.address.address);
        first.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Returns the addresses, and whether each has its socket.
    pub(crate) fn bound_addresses(&self) -> Vec<(BindAddress, bool)> {
        let state = self.lock();
        let bind_addresses = state.bound_sockets.iter();
        bind_addresses
            .map(|bound_socket| (bound_socket.address.clone(), bound_socket.socket.is_some()))
            .collect()
    }

    /// Grows the receive buffers where so many connections share them, if the kernel allows that.
    pub(crate) fn make_room(&self, connections: usize) {
        let connections = connections.min(MOST_SHARES);
        let before = self.has_room_for.load(Ordering::Relaxed);
        if connections <= before || !self.options.receive_buffer_grows {
            return;
        }
        let room = connections.next_power_of_two();
        if self.has_room_for.fetch_max(room, Ordering::Relaxed) == before {
            let open = self.open();
            let sockets = open.sockets.iter();
            sockets.for_each(|socket| socket.grow_receive_buffer(room_for(room)));
        }
    }

    /// Returns the buffer sizes that the kernel granted the first socket.
    pub(crate) fn buffers(&self) -> SocketBuffers {
        let state = self.lock();
        let mut open = state
            .bound_sockets
            .iter()
            .filter_map(|bound_socket| bound_socket.socket.as_ref());
        open.next()
            .map_or(self.options.buffers, |socket| socket.buffers())
    }

    /// Returns how many datagrams the open sockets had no room for.
    pub(crate) fn dropped(&self) -> u64 {
        let open = self.open();
        open.sockets.iter().map(|socket| socket.dropped()).sum()
    }

    /// Returns the first socket that reaches `remote`.
    pub(crate) fn reaching(&self, remote: SocketAddr) -> Option<Arc<Socket>> {
        let state = self.lock();
        let mut open = state
            .bound_sockets
            .iter()
            .filter_map(|bound_socket| bound_socket.socket.as_ref());
        open.find(|socket| socket.reaches(remote)).cloned()
    }

    /// Counts a batch for which there is no socket, and logs it once per change of the sockets.
    fn note_without_socket(&self, transmit: &Transmit) {
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let datagrams = transmit.size.div_ceil(segment) as u64;
        self.without_socket.fetch_add(datagrams, Ordering::Relaxed);
        let generation = self.generation();
        if self.logged_in.swap(generation, Ordering::Relaxed) != generation {
            let (local, remote) = (transmit.local, transmit.remote);
            tracing::warn!(?local, %remote, "there is no socket to send by: packets are lost");
        }
    }

    /// Returns whether an open socket other than the one at `index` reaches `remote`.
    pub(crate) fn others_reach(&self, index: usize, remote: SocketAddr) -> bool {
        let state = self.lock();
        let others = state.bound_sockets.iter().enumerate();
        others
            .filter(|(other, _)| *other != index)
            .filter_map(|(_, bound_socket)| bound_socket.socket.as_ref())
            .any(|socket| socket.reaches(remote))
    }

    /// Returns the addresses from which `remote` can be reached, where it is certain that packets
    /// leave from them: not those of wildcard sockets.
    pub(crate) fn addresses_towards(&self, remote: SocketAddr) -> Vec<SocketAddr> {
        let state = self.lock();
        let open = state
            .bound_sockets
            .iter()
            .filter_map(|bound_socket| bound_socket.socket.as_ref());
        open.map(|socket| socket.local)
            .filter(|local| !local.ip().is_unspecified() && local.is_ipv4() == remote.is_ipv4())
            .collect()
    }

    /// Returns the socket for packets from `local` to `remote`. Where that address is gone and the
    /// engine cannot leave it, as the peer forbids that, packets leave from another one, as after a
    /// NAT rebinding.
    pub(crate) fn socket_for(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Option<Arc<Socket>> {
        let state = self.lock();
        let mut open = state
            .bound_sockets
            .iter()
            .filter_map(|bound_socket| bound_socket.socket.as_ref());
        let leaving = state.retired.iter().map(|leaving| &leaving.socket);
        let exact = open
            .clone()
            .chain(leaving)
            .find(|socket| local.is_some_and(|local| socket.carries(local)));
        let any = || open.find(|socket| socket.reaches(remote));
        exact.or_else(any).cloned()
    }

    /// Closes the socket at an index; returns its address.
    pub(crate) fn close(&self, index: usize) -> Option<SocketAddr> {
        let mut state = self.lock();
        let gone = state.bound_sockets.get_mut(index)?.socket.take()?;
        self.generation.fetch_add(1, Ordering::Release);
        Some(gone.local)
    }

    /// Binds the address at an index again.
    pub(crate) fn reopen(&self, index: usize) -> Result<Option<SocketAddr>, EndpointError> {
        let bind_address = {
            let state = self.lock();
            let closed = state
                .bound_sockets
                .get(index)
                .filter(|bound_socket| bound_socket.socket.is_none());
            closed.map(|bound_socket| bound_socket.address.clone())
        };
        let Some(bind_address) = bind_address else {
            return Ok(None);
        };
        let address = self.occupy(index, bind_address)?.map(|(_, now)| now);
        Ok(address)
    }

    /// Replaces the address at an index; returns the old one and the new one. Port 0 takes any free
    /// port.
    pub(crate) fn replace(
        &self,
        index: usize,
        address: SocketAddr,
    ) -> Result<Option<(SocketAddr, SocketAddr)>, EndpointError> {
        let interface = {
            let state = self.lock();
            let Some(bound_socket) = state.bound_sockets.get(index) else {
                return Ok(None);
            };
            bound_socket.address.interface.clone()
        };
        self.occupy(index, BindAddress { address, interface })
    }

    fn occupy(
        &self,
        index: usize,
        mut bind_address: BindAddress,
    ) -> Result<Option<(SocketAddr, SocketAddr)>, EndpointError> {
        let options = SocketOptions {
            sharing: (self.options.sharing).at_port(bind_address.address.port()),
            ..self.options
        };
        let socket = Arc::new(Socket::bind(&bind_address, options)?);
        let room = room_for(self.has_room_for.load(Ordering::Relaxed));
        if options.receive_buffer_grows && room > options.buffers.receive {
            socket.grow_receive_buffer(room);
        }
        bind_address.address = socket.local;
        let mut state = self.lock();
        let Some(bound_socket) = state.bound_sockets.get_mut(index) else {
            return Ok(None);
        };
        let before = bound_socket.address.address;
        let now = bind_address.address;
        let left = bound_socket.socket.replace(socket.clone());
        bound_socket.address = bind_address;
        if let Some(left) = left {
            state.retired = Some(RetiredSocket {
                socket: left,
                replacement: socket,
            });
        }
        self.generation.fetch_add(1, Ordering::Release);
        Ok(Some((before, now)))
    }

    /// Returns a hold that keeps the last replaced socket open.
    pub(crate) fn hold(&self) -> SocketGuard {
        self.held.clone()
    }

    /// Closes the replaced socket, unless it is held.
    pub(crate) fn close_retired(&self) {
        if Arc::strong_count(&self.held) > 1 {
            return;
        }
        self.lock().retired = None;
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, SocketTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the size of a receive buffer for this number of connections.
fn room_for(connections: usize) -> ByteSize {
    ByteSize::from_bytes(connections as u64 * SHARE)
}

/// The socket by which a connection's packets leave, cached.
#[derive(Default)]
pub(crate) struct SendSocket {
    local: Option<SocketAddr>,
    generation: u64,
    socket: Option<Arc<Socket>>,
}

impl SendSocket {
    /// Sends a batch by the socket of its local address. Without one, [`SendError::NoSocket`] is
    /// returned, and the loss counted.
    pub(crate) fn send(
        &mut self,
        sockets: &Sockets,
        transmit: &Transmit,
        contents: &BatchContents<'_>,
    ) -> Result<(), SendError> {
        let generation = sockets.generation();
        if self.generation != generation || self.local != transmit.local {
            *self = Self {
                local: transmit.local,
                generation,
                socket: sockets.socket_for(transmit.local, transmit.remote),
            };
        }
        match &self.socket {
            Some(socket) => socket.send(transmit, contents),
            None => {
                sockets.note_without_socket(transmit);
                Err(SendError::NoSocket)
            }
        }
    }

    /// Returns how many datagrams one send may hold.
    pub(crate) fn max_datagrams(&self, sockets: &Sockets) -> usize {
        let socket = self.socket.as_ref();
        socket.map_or(sockets.max_datagrams, |socket| socket.max_datagrams())
    }

    /// Returns the socket of the last send.
    pub(crate) fn socket(&self) -> Option<&Arc<Socket>> {
        self.socket.as_ref()
    }

    /// Drops the reference to the socket, so that a closed one really closes.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Returns the local address from which the kernel would send to `remote` now; `None` without a
/// route. No packet is sent.
pub(crate) fn source_address_for(remote: SocketAddr) -> Option<IpAddr> {
    let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
    let any: SocketAddr = match remote {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let asking = UdpSocket::bind(any).ok()?;
    asking.connect(remote).ok()?;
    let source = asking.local_addr().ok()?.ip();
    (!source.is_unspecified()).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn receive_buffers_grow_with_the_connections_unless_their_size_was_chosen() {
        let small = ByteSize::from_kib(64);
        for receive_buffer_grows in [true, false] {
            let buffers = SocketBuffers {
                receive: small,
                send: small,
            };
            let address = BindAddress {
                address: SocketAddr::from(([127, 0, 0, 1], 0)),
                interface: None,
            };
            let options = SocketOptions {
                receive_buffer_grows,
                ..SocketOptions::new(buffers)
            };
            let sockets = Sockets::bind(vec![address], options).unwrap();
            // As much as Linux grants everyone by default.
            sockets.make_room(1);
            let size = sockets.buffers().receive;
            let expected = if receive_buffer_grows {
                room_for(1)
            } else {
                small
            };
            assert_eq!(size, expected);
            // Perhaps more than it grants here.
            sockets.make_room(1 << 20);
            assert!(sockets.buffers().receive >= size);
        }
    }
}
