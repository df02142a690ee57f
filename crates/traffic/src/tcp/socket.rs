//! Kernel TCP sockets that are opened, listening or accepted, with options set.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use weir_units::{ByteSize, Duration};

use super::TcpSettings;
use crate::error::Error;

/// The maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Options of `linux/tcp.h` that libc does not have yet.
const TCP_RTO_MAX_MS: libc::c_int = 44;
const TCP_RTO_MIN_US: libc::c_int = 45;
const TCP_DELACK_MAX_US: libc::c_int = 46;
/// Servers of TCP Fast Open whose first data wait to be accepted.
const FAST_OPEN_BACKLOG: libc::c_int = 256;
/// With any pacing rate but "none" (`~0`) the kernel paces by the window.
const PACED: u64 = u64::MAX - 1;

/// Opens a connection. If the local address is gone, the kernel chooses one.
pub(super) async fn connect(
    settings: &TcpSettings,
    local: Option<SocketAddr>,
    peer: SocketAddr,
    limit: Option<Duration>,
) -> Result<TcpStream, Error> {
    let socket = prepare(settings, peer)?;
    match local.map_or(Ok(()), |local| socket.bind(&local.into())) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            tracing::debug!(?local, "an address is gone; the kernel chooses another one");
        }
        bound => bound.map_err(|error| match local {
            Some(local) => Error::setting(format!("{local} cannot be bound: {error}")),
            None => Error::setting(error),
        })?,
    }
    if settings.fast_open {
        set_option(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)
            .map_err(Error::setting)?;
    }
    let socket = tokio::net::TcpSocket::from_std_stream(socket.into());
    let connecting = socket.connect(peer);
    let connected = match limit {
        None => connecting.await,
        Some(limit) => match tokio::time::timeout(limit.into(), connecting).await {
            Ok(connected) => connected,
            Err(_) => return Err(Error::NoAnswer { peer }),
        },
    };
    connected.map_err(|error| unreachable(error, peer))
}

/// Listens on an address.
pub(super) fn listen(settings: &TcpSettings, local: SocketAddr) -> Result<TcpListener, Error> {
    let socket = prepare(settings, local)?;
    let listening = (|| {
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
        socket.listen(BACKLOG)?;
        if settings.fast_open {
            let (level, option) = (libc::IPPROTO_TCP, libc::TCP_FASTOPEN);
            set_option(&socket, level, option, FAST_OPEN_BACKLOG)?;
        }
        TcpListener::from_std(socket.into())
    })();
    listening.map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => Error::AddressInUse(local),
        _ => Error::setting(format!("cannot listen at {local}: {error}")),
    })
}

/// Sets the options that a socket does not inherit from the listening socket.
pub(super) fn adopt(settings: &TcpSettings, stream: &TcpStream) -> Result<(), Error> {
    set_timers(settings, stream).map_err(Error::setting)
}

/// Checks that this machine's kernel has this congestion control.
///
/// # Errors
/// [`Error::Setting`] lists the available ones.
pub fn check_congestion(name: &str) -> Result<(), Error> {
    let settings = TcpSettings {
        congestion: Some(name.to_owned()),
        ..TcpSettings::default()
    };
    prepare(&settings, SocketAddr::from(([127, 0, 0, 1], 0))).map(drop)
}

/// Checks that this machine's kernel allows TCP Fast Open on both sides.
///
/// # Errors
/// [`Error::Setting`] names the remedy.
pub fn check_fast_open() -> Result<(), Error> {
    const SWITCH: &str = "/proc/sys/net/ipv4/tcp_fastopen";
    /// A bit for clients and one for servers.
    const BOTH: u32 = 3;
    let text = std::fs::read_to_string(SWITCH).map_err(Error::setting)?;
    match text.trim().parse::<u32>() {
        Ok(bits) if bits & BOTH == BOTH => Ok(()),
        _ => Err(Error::setting(format!(
            "TCP Fast Open takes `sysctl -w net.ipv4.tcp_fastopen=3`; it is {}",
            text.trim()
        ))),
    }
}

/// Returns a socket with all possible options set.
fn prepare(settings: &TcpSettings, address: SocketAddr) -> Result<Socket, Error> {
    let domain = Domain::for_address(address);
    let prepared = (|| {
        let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(!settings.nagle)?;
        if domain == Domain::IPV6 {
            socket.set_only_v6(true)?;
        }
        // The kernel announces the MSS to the peer, so that both sides use it.
        if let Some(mss) = settings.mss {
            socket.set_tcp_mss(u32::try_from(mss.bytes()).unwrap_or(u32::MAX))?;
        }
        set_buffers(settings, &socket)?;
        set_timers(settings, &socket)?;
        if settings.paced {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, PACED)?;
        }
        Ok(socket)
    })();
    let socket = prepared.map_err(|error: io::Error| Error::setting(error))?;
    set_congestion(settings, &socket)?;
    Ok(socket)
}

/// Sets the congestion control.
pub(super) fn set_congestion(settings: &TcpSettings, socket: &impl AsFd) -> Result<(), Error> {
    let Some(name) = &settings.congestion else {
        return Ok(());
    };
    SockRef::from(socket)
        .set_tcp_congestion(name.as_bytes())
        .map_err(|error| Error::setting(no_congestion(name, &error)))
}

fn set_buffers(settings: &TcpSettings, socket: &Socket) -> io::Result<()> {
    if let Some(size) = settings.send_buffer {
        socket.set_send_buffer_size(size.as_usize())?;
        if granted(socket.send_buffer_size()?) < size {
            rustix::net::sockopt::set_socket_send_buffer_size_force(socket, size.as_usize())?;
        }
    }
    if let Some(size) = settings.receive_buffer {
        socket.set_recv_buffer_size(size.as_usize())?;
        if granted(socket.recv_buffer_size()?) < size {
            rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, size.as_usize())?;
        }
    }
    Ok(())
}

/// The kernel doubles the requested size to allow for its overhead.
fn granted(reported: usize) -> ByteSize {
    ByteSize::from_bytes(reported as u64 / 2)
}

fn set_timers(settings: &TcpSettings, socket: &impl AsFd) -> io::Result<()> {
    let timers = [
        (TCP_RTO_MIN_US, "min_rto", settings.min_rto, 1_000),
        (TCP_RTO_MAX_MS, "max_rto", settings.max_rto, 1_000_000),
        (
            TCP_DELACK_MAX_US,
            "delayed_ack_timeout",
            settings.delayed_ack_timeout,
            1_000,
        ),
    ];
    for (option, name, value, nanos) in timers {
        let Some(value) = value else { continue };
        let units = libc::c_int::try_from(value.as_nanos() / nanos).unwrap_or(libc::c_int::MAX);
        set_option(socket, libc::IPPROTO_TCP, option, units).map_err(|error| {
            let problem = format!("`{name}` of {value} (Linux 6.15 and later): {error}");
            io::Error::new(error.kind(), problem)
        })?;
    }
    Ok(())
}

fn set_option<Value: Copy>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: Value,
) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed and so stays open; the kernel reads `size_of::<Value>()`
    // bytes of a value that lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<Value>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn no_congestion(name: &str, error: &io::Error) -> String {
    const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    match error.kind() {
        io::ErrorKind::NotFound => {
            let available = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
            let available: Vec<_> = available.split_whitespace().collect();
            format!(
                "this kernel has no congestion control `{name}`; it has {}",
                available.join(", ")
            )
        }
        _ => format!("this kernel does not set congestion control `{name}`: {error}"),
    }
}

/// Converts the error of a failed connection attempt.
fn unreachable(error: io::Error, peer: SocketAddr) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::Refused { peer },
        io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown => Error::NoAnswer { peer },
        _ => Error::failed("connecting")(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_stream::Carrier;

    const LOCAL: &str = "127.0.0.1:0";

    #[tokio::test]
    async fn sockets_have_the_requested_settings() {
        let settings = TcpSettings {
            congestion: Some("reno".to_owned()),
            mss: Some(ByteSize::from_bytes(1000)),
            send_buffer: Some(ByteSize::from_kib(64)),
            receive_buffer: Some(ByteSize::from_kib(96)),
            paced: true,
            ..TcpSettings::default()
        };
        let local = LOCAL.parse().unwrap();
        let listener = listen(&settings, local).unwrap();
        let peer = listener.local_addr().unwrap();
        let stream = connect(&settings, Some(local), peer, None).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        adopt(&settings, &accepted).unwrap();
        for stream in [&stream, &accepted] {
            let congestion = stream.congestion();
            assert_eq!(congestion.as_deref(), Some("reno"));
            let socket = SockRef::from(stream);
            assert_eq!(socket.send_buffer_size().unwrap(), 128 * 1024);
            assert_eq!(socket.recv_buffer_size().unwrap(), 192 * 1024);
            assert!(socket.tcp_mss().unwrap() <= 1000);
            assert!(socket.tcp_nodelay().unwrap());
        }
    }

    #[tokio::test]
    async fn an_unavailable_congestion_control_is_an_error() {
        let settings = TcpSettings {
            congestion: Some("nosuch".to_owned()),
            ..TcpSettings::default()
        };
        let failure = listen(&settings, LOCAL.parse().unwrap()).unwrap_err();
        assert!(failure.to_string().contains("it has"), "{failure}");
    }

    #[tokio::test]
    async fn connecting_to_a_closed_port_is_refused() {
        let local = LOCAL.parse().unwrap();
        let settings = TcpSettings::default();
        let peer = {
            let listener = listen(&settings, local).unwrap();
            listener.local_addr().unwrap()
        };
        let refused = connect(&settings, Some(local), peer, None)
            .await
            .unwrap_err();
        assert!(matches!(refused, Error::Refused { peer: at } if at == peer));
    }
}
