//! Plain UDP: batches by segmentation offload, received as the kernel coalesces them.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

use super::{PACKET, SPAN};

const BATCH: usize = 8;
const BUFFER: usize = 64 * 1024;
/// After this silence the sender has ended.
const SILENCE: Duration = Duration::from_millis(300);

fn socket(address: &str) -> (UdpSocket, UdpSocketState) {
    let socket = UdpSocket::bind(address).unwrap();
    let size = 8 << 20;
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, size);
    let state = UdpSocketState::new((&socket).into()).unwrap();
    socket.set_nonblocking(false).unwrap();
    (socket, state)
}

/// Sends until the time is over.
pub(super) fn send(address: SocketAddr) {
    let (socket, state) = socket("127.0.0.1:0");
    let contents = vec![7; PACKET * (65_507 / PACKET).min(state.max_gso_segments())];
    let transmit = Transmit {
        destination: address,
        ecn: None,
        contents: &contents,
        segment_size: Some(PACKET),
        src_ip: None,
    };
    let begun = Instant::now();
    while begun.elapsed() < SPAN {
        state.try_send((&socket).into(), &transmit).unwrap();
    }
}

/// Receives until silence; returns the bytes, and the time between the first and the last.
pub(super) fn receive(announce: impl FnOnce(SocketAddr)) -> (u64, Duration) {
    let (socket, state) = socket("127.0.0.1:0");
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    announce(socket.local_addr().unwrap());
    let mut memory = vec![0; BATCH * BUFFER];
    let mut metas = [RecvMeta::default(); BATCH];
    let (mut bytes, mut first, mut last) = (0, None, Instant::now());
    loop {
        let mut chunks = memory.chunks_exact_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap()));
        match state.recv((&socket).into(), &mut slices, &mut metas) {
            Ok(count) => {
                last = Instant::now();
                first.get_or_insert(last);
                bytes += metas[..count]
                    .iter()
                    .map(|meta| meta.len as u64)
                    .sum::<u64>();
            }
            Err(_) if first.is_none() => {}
            Err(_) => return (bytes, last - first.unwrap_or(last)),
        }
    }
}
