//! One port for the sockets of several engines: `SO_REUSEPORT`, and a filter in the kernel that
//! selects the socket by the connection ID.

use std::io;
use std::num::NonZeroU8;
use std::os::fd::AsRawFd;

use libc::{
    BPF_A, BPF_ABS, BPF_ALU, BPF_B, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_MOD, BPF_RET,
    sock_filter, sock_fprog,
};

/// How a socket shares its port with those of other engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortSharing {
    /// There is one engine. Nothing else can bind the port.
    Alone,
    /// Other engines' sockets will follow. The port must be free.
    First { engines: NonZeroU8 },
    /// Sockets of this number of engines share the port, and some may be bound already. The kernel
    /// numbers sockets in the order in which they are bound, which is that of the engines.
    Joins { engines: NonZeroU8 },
}

impl PortSharing {
    /// Returns how the socket of an engine shares its port.
    pub(crate) fn of_engine(engine: u8, engines: NonZeroU8) -> Self {
        match (engine, engines) {
            (_, NonZeroU8::MIN) => Self::Alone,
            (0, engines) => Self::First { engines },
            (_, engines) => Self::Joins { engines },
        }
    }

    /// Returns how a later socket of the same engine shares this port: others may have it already.
    pub(crate) fn at_port(self, port: u16) -> Self {
        match self {
            Self::First { engines } if port != 0 => Self::Joins { engines },
            sharing => sharing,
        }
    }

    /// Prepares a socket before it is bound.
    pub(crate) fn before_bind(self, socket: &socket2::Socket) -> io::Result<()> {
        match self {
            Self::Alone | Self::First { .. } => Ok(()),
            Self::Joins { .. } => socket.set_reuse_port(true),
        }
    }

    /// Sets up a socket after it is bound.
    pub(crate) fn after_bind(self, socket: &socket2::Socket) -> io::Result<()> {
        match self {
            Self::Alone => Ok(()),
            // From here on others can join. Had it been set before, the first socket would have
            // joined another program's instead of failing.
            Self::First { .. } => socket.set_reuse_port(true),
            Self::Joins { engines } => {
                if let Err(error) = select_by_connection_id(socket, engines) {
                    tracing::warn!(
                        %error,
                        "the kernel cannot select an engine by the connection ID: datagrams are copied"
                    );
                }
                Ok(())
            }
        }
    }
}

/// Sets the filter of a port: the first byte of the destination connection ID modulo the number of
/// engines is the socket's index. [`weir_quic::ConnectionIdLayout`] describes the IDs.
fn select_by_connection_id(socket: &impl AsRawFd, engines: NonZeroU8) -> io::Result<()> {
    let mut filter = filter(engines);
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the descriptor is open; the option's value is a `sock_fprog` of the length given,
    // whose pointer and length are those of `filter`. The kernel copies both.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of::<sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The filter sees a UDP payload. Where it reads beyond the end, the kernel takes socket 0.
fn filter(engines: NonZeroU8) -> [sock_filter; 7] {
    let statement = |code: u32, k: u32, jt: u8, jf: u8| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |offset| statement(BPF_LD | BPF_B | BPF_ABS, offset, 0, 0);
    [
        load(0),
        // The bit of long headers (RFC 8999, section 5.1).
        statement(BPF_JMP | BPF_JSET | BPF_K, 0x80, 2, 0),
        // A short header: the connection ID follows the first byte.
        load(1),
        statement(BPF_JMP | libc::BPF_JA | BPF_K, 1, 0, 0),
        // A long header: it follows the version and its own length.
        load(6),
        statement(BPF_ALU | BPF_MOD | BPF_K, u32::from(engines.get()), 0, 0),
        statement(BPF_RET | BPF_A, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use socket2::{Domain, Socket, Type};

    use super::*;

    fn bind(sharing: PortSharing, address: &str) -> UdpSocket {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let address: std::net::SocketAddr = address.parse().unwrap();
        sharing.before_bind(&socket).unwrap();
        socket.bind(&address.into()).unwrap();
        sharing.after_bind(&socket).unwrap();
        let patience = std::time::Duration::from_secs(20);
        socket.set_read_timeout(Some(patience)).unwrap();
        socket.into()
    }

    #[test]
    fn the_kernel_selects_the_engine_that_the_connection_id_names() {
        let engines = NonZeroU8::new(3).unwrap();
        let first = bind(PortSharing::of_engine(0, engines), "127.0.0.1:0");
        let address = first.local_addr().unwrap();
        let others = [1, 2].map(|engine| {
            let sharing = PortSharing::of_engine(engine, engines);
            bind(sharing, &address.to_string())
        });
        let [second, third] = &others;
        let sockets = [&first, second, third];
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut received = [0; 64];
        for id in 0..=u8::MAX {
            let socket = sockets[usize::from(id % 3)];
            // A short header, and a long one with the ID after the version and the length.
            for packet in [[0x40, id, 9, 9, 9, 9, 9], [0xc0, 0, 0, 0, 1, 8, id]] {
                sender.send_to(&packet, address).unwrap();
                let length = socket.recv(&mut received).unwrap();
                assert_eq!(received[..length], packet);
            }
        }
        // What has no ID reaches the first one.
        sender.send_to(&[0x40], address).unwrap();
        assert_eq!(first.recv(&mut received).unwrap(), 1);
    }

    #[test]
    fn one_engine_keeps_its_port_for_itself() {
        let engines = NonZeroU8::MIN;
        let sharing = PortSharing::of_engine(0, engines);
        assert_eq!(sharing, PortSharing::Alone);
        let socket = bind(sharing, "127.0.0.1:0");
        let error = UdpSocket::bind(socket.local_addr().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
