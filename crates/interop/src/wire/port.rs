//! A socket of the forwarder's: datagram by datagram, with their ECN codepoints.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use bytes::Bytes;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use weir_traffic_peers::udp_socket;

/// GRO joins at most so much.
const LARGEST: usize = 64 * 1024;

/// Where a receive call puts its bytes.
pub(super) fn buffer() -> Box<[u8]> {
    vec![0; LARGEST].into_boxed_slice()
}

/// A datagram as it was received.
pub(super) struct Message {
    pub(super) from: SocketAddr,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) bytes: Bytes,
}

pub(super) struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Port {
    pub(super) fn bind(address: IpAddr) -> io::Result<Self> {
        // Its buffers hold what arrives while the stacks, on the same thread, are busy.
        let socket = udp_socket(SocketAddr::new(address, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        without_timestamps(&socket)?;
        let socket = UdpSocket::from_std(socket.into())?;
        Ok(Self { socket, state })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<Vec<Message>> {
        let mut meta = [RecvMeta::default()];
        let receive = || {
            let mut slices = [IoSliceMut::new(buffer)];
            self.state
                .recv((&self.socket).into(), &mut slices, &mut meta)
        };
        self.socket.async_io(Interest::READABLE, receive).await?;
        let [meta] = meta;
        let bytes = Bytes::copy_from_slice(buffer.get(..meta.len).unwrap_or_default());
        // An empty datagram has no stride.
        let stride = meta.stride.max(1);
        let starts = (0..meta.len).step_by(stride);
        let messages = starts.map(|start| Message {
            from: meta.addr,
            ecn: meta.ecn,
            bytes: bytes.slice(start..(start + stride).min(meta.len)),
        });
        Ok(messages.collect())
    }

    pub(super) async fn send(
        &self,
        to: SocketAddr,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn,
            contents: bytes,
            segment_size: None,
            src_ip: None,
        };
        let send = || self.state.try_send((&self.socket).into(), &transmit);
        self.socket.async_io(Interest::WRITABLE, send).await
    }
}

/// `quinn-udp` has 96 bytes for control messages. With a time stamp, the local address and the size
/// of a GRO batch there is no room left for the ECN codepoint, and it is lost without a word.
fn without_timestamps(socket: &socket2::Socket) -> io::Result<()> {
    let off: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the option's value is a C int of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const off).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
