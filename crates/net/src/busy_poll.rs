//! Busy polling of the network interface's receive queue, instead of waiting for its interrupt.
//!
//! It takes a driver with NAPI queues of its own; the loopback interface has none. A read of an empty
//! socket, as the low-latency setting makes them, looks at the queue once. The runtime's wait for
//! events polls for a time before it sleeps: epoll's parameters are per descriptor, and tokio's is
//! found by the socket that it watches.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use weir_units::Duration;

use crate::socket::set_option;

/// `include/uapi/asm-generic/socket.h`; the `libc` crate has them for few architectures.
const SO_BUSY_POLL: libc::c_int = 46;
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
/// Packets of one poll: the kernel's `NAPI_POLL_WEIGHT`, beyond which a privilege is needed.
const BUDGET: u16 = 64;

/// Makes the reads of a socket poll its queue, and so the runtime with which it is registered.
pub(crate) fn enable(socket: &impl AsRawFd, span: Duration) -> io::Result<()> {
    let micros = span.as_nanos().div_ceil(1000);
    let micros = u32::try_from(micros).unwrap_or(u32::MAX);
    let for_socket = libc::c_int::try_from(micros).unwrap_or(libc::c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, SO_BUSY_POLL, for_socket)?;
    set_option(socket, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, 1)?;
    if let Err(error) = set_epoll_parameters(socket.as_raw_fd(), micros) {
        tracing::warn!(%error, "the runtime does not poll before it sleeps; it takes Linux 6.9");
    }
    Ok(())
}

/// Sets the busy-polling parameters of the epoll descriptors that watch this one.
fn set_epoll_parameters(watched: RawFd, micros: u32) -> io::Result<()> {
    let mut is_set = false;
    for epoll in epolls_watching(watched)? {
        let parameters = libc::epoll_params {
            busy_poll_usecs: micros,
            busy_poll_budget: BUDGET,
            prefer_busy_poll: 1,
            __pad: 0,
        };
        // SAFETY: the descriptor is one of this process's, and the kernel reads a value of this type
        // and writes none. Another descriptor of the same number fails with ENOTTY.
        let result = unsafe { libc::ioctl(epoll, libc::EPIOCSPARAMS, &raw const parameters) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        is_set = true;
    }
    if is_set {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Returns the epoll descriptors of this process that watch a descriptor (`man 5 proc_pid_fdinfo`).
fn epolls_watching(watched: RawFd) -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo")? {
        let entry = entry?;
        // Other threads close descriptors meanwhile.
        let Ok(information) = fs::read_to_string(entry.path()) else {
            continue;
        };
        let mut targets = information.lines().filter_map(|line| {
            let (_, rest) = line.split_once("tfd:")?;
            rest.split_whitespace().next()?.parse::<RawFd>().ok()
        });
        if targets.any(|target| target == watched)
            && let Some(epoll) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
        {
            found.push(epoll);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use tokio::net::UdpSocket;

    use super::*;

    #[tokio::test]
    async fn the_runtime_of_a_socket_polls() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let epolls = epolls_watching(socket.as_raw_fd()).unwrap();
        assert!(!epolls.is_empty());
        if let Err(error) = enable(&socket, Duration::from_micros(20)) {
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            eprintln!("SKIPPED: busy polling takes CAP_NET_ADMIN");
            return;
        }
        for epoll in epolls {
            let mut parameters = libc::epoll_params {
                busy_poll_usecs: 0,
                busy_poll_budget: 0,
                prefer_busy_poll: 0,
                __pad: 0,
            };
            // SAFETY: the kernel writes a value of this type.
            let result = unsafe { libc::ioctl(epoll, libc::EPIOCGPARAMS, &raw mut parameters) };
            assert!(result == 0, "{}", io::Error::last_os_error());
            assert_eq!(parameters.busy_poll_usecs, 20);
        }
    }
}
