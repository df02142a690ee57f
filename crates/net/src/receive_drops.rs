//! The datagrams that a socket's full receive buffer had no room for (`SO_MEMINFO`, `man 7 sock_diag`).

use std::io;
use std::os::fd::AsRawFd;

/// The values of `SO_MEMINFO`, and the place of the drops among them (`linux/sock_diag.h`).
const VALUES: usize = 9;
const DROPS: usize = 8;

/// Returns the number of datagrams since the socket was opened, modulo 2^32. A batch that the kernel holds
/// as one counts once.
///
/// # Errors
/// The kernel does not tell.
pub(crate) fn dropped(socket: &impl AsRawFd) -> io::Result<u32> {
    let mut values = [0_u32; VALUES];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most the length given.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(values[DROPS])
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_full_buffer_drops_datagrams() {
        let receiver = socket2::Socket::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        receiver.set_recv_buffer_size(4096).unwrap();
        let receiver = UdpSocket::from(receiver);
        let address = receiver.local_addr().unwrap();
        assert_eq!(dropped(&receiver).unwrap(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(&[0; 1000], address).unwrap();
        }
        assert!(dropped(&receiver).unwrap() > 50);
    }
}
