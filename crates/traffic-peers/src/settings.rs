//! Settings shared by all UDP transports of this crate: sockets, windows, batches.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use weir_traffic::calls::{Error, SOCKET_BUFFER};

/// Flow-control window of a stream in bytes, large enough never to limit on loopback.
pub(crate) const STREAM_WINDOW: u64 = 16 * 1024 * 1024;

/// Flow-control window of a connection in bytes.
pub(crate) const CONNECTION_WINDOW: u64 = 24 * 1024 * 1024;

/// Largest payload of a UDP datagram over IPv4, and so of a GSO batch.
pub(crate) const LARGEST_BATCH: usize = 65_507;

/// The kernel's limit on segments per GSO batch (`UDP_MAX_SEGMENTS` of older kernels).
const MOST_SEGMENTS: usize = 64;

/// Default UDP payload per packet for stacks without their own default.
pub(crate) const DEFAULT_PACKET: u16 = 1452;

/// Returns a bound, non-blocking UDP socket with large buffers.
pub(crate) fn udp_socket(bind: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER.as_usize())?;
    socket.set_send_buffer_size(SOCKET_BUFFER.as_usize())?;
    socket.set_nonblocking(true)?;
    socket.bind(&bind.into())?;
    Ok(socket)
}

/// Returns the address that an endpoint binds to: the first of `local`.
pub(crate) fn bound_to(local: &[SocketAddr]) -> Result<SocketAddr, weir_traffic::Error> {
    let first = local.first().copied();
    first.ok_or_else(|| weir_traffic::Error::setting("a local address is needed"))
}

/// Returns a note for the report if the kernel grants smaller UDP receive buffers than requested;
/// otherwise nothing.
pub(crate) fn udp_notes() -> Result<Vec<String>, Error> {
    let socket = udp_socket((Ipv4Addr::LOCALHOST, 0).into());
    let socket = socket.map_err(Error::io("opening a UDP socket"))?;
    // The kernel reports twice the size that it grants for data.
    let granted = socket
        .recv_buffer_size()
        .map_err(Error::io("reading a socket's buffer size"))?
        / 2;
    let wanted = SOCKET_BUFFER.as_usize();
    if granted >= wanted {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "the kernel grants UDP receive buffers of {granted} B instead of {wanted} B"
    )])
}

/// Returns the number of packets of one size in a GSO batch.
pub(crate) fn gso_batch(packet_size: Option<u16>) -> usize {
    let size = usize::from(packet_size.unwrap_or(DEFAULT_PACKET).max(1));
    (LARGEST_BATCH / size).clamp(1, MOST_SEGMENTS)
}

/// Returns the initial window of RFC 9002, section 7.2, in bytes.
pub(crate) fn initial_window(packet_size: Option<u16>) -> u64 {
    let size = u64::from(packet_size.unwrap_or(DEFAULT_PACKET));
    (10 * size).min(14_720.max(2 * size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fit_a_datagram() {
        for size in [1200, 1452, 8972, 32_000, 65_000, 65_507] {
            let packets = gso_batch(Some(size));
            assert!(
                packets >= 1 && packets * usize::from(size) <= LARGEST_BATCH,
                "{size}"
            );
        }
        assert_eq!(gso_batch(Some(1452)), 45);
        assert_eq!(gso_batch(Some(8972)), 7);
    }

    #[test]
    fn a_jumbo_connection_starts_with_two_packets() {
        assert_eq!(initial_window(Some(1452)), 14_520);
        assert_eq!(initial_window(Some(8972)), 17_944);
        assert_eq!(initial_window(Some(65_000)), 130_000);
    }
}
