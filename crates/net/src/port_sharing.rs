//! One port for the sockets of several engines: `SO_REUSEPORT`, and a filter in the kernel that
//! selects the socket by the connection ID.

use std::io;
use std::num::NonZeroU8;
use std::os::fd::AsRawFd;

use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_B, BPF_H, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD,
    BPF_MOD, BPF_RET, sock_filter, sock_fprog,
};

use crate::succession::Predecessor;

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
    /// There is one engine, and an endpoint may follow later: until then nothing else can bind the port. The
    /// port must be free.
    Followed,
    /// The sockets of the endpoint before this one come first. `is_last` is the socket after which all
    /// engines have theirs.
    Follows {
        predecessor: Predecessor,
        engines: NonZeroU8,
        is_last: bool,
    },
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
            // The kernel forms a group of one socket, which a filter can be set for.
            Self::Followed | Self::Joins { .. } | Self::Follows { .. } => {
                socket.set_reuse_port(true)
            }
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
                if let Err(error) = PortFilter::of_engines(engines).set(socket) {
                    tracing::warn!(
                        %error,
                        "the kernel cannot select an engine by the connection ID: datagrams are copied"
                    );
                }
                Ok(())
            }
            Self::Followed => {
                PortFilter::of_engines(NonZeroU8::MIN).set(socket)?;
                socket.set_reuse_port(false)
            }
            // Until then the predecessor's filter names its own sockets only.
            Self::Follows { is_last: false, .. } => Ok(()),
            Self::Follows {
                predecessor,
                engines,
                ..
            } => PortFilter::after(predecessor, engines).set(socket),
        }
    }
}

/// A filter of a port: it sees a UDP payload, and returns the index of a socket. Where it reads beyond the end,
/// the kernel takes socket 0. [`weir_quic::ConnectionIdLayout`] describes the IDs.
#[derive(Debug)]
pub(crate) struct PortFilter(Vec<sock_filter>);

impl PortFilter {
    /// The first byte of the destination connection ID modulo the number of engines.
    pub(crate) fn of_engines(engines: NonZeroU8) -> Self {
        let first = |offset| [load(offset), modulo(engines), answer()];
        Self([&[load(0), if_long(3)][..], &first(1), &first(6)].concat())
    }

    /// The same among the predecessor's sockets where the second and third byte are its generation, or else among
    /// those that follow them.
    pub(crate) fn after(predecessor: Predecessor, engines: NonZeroU8) -> Self {
        let generation = u32::from(predecessor.generation);
        let of = |offset| {
            [
                statement(BPF_LD | BPF_H | BPF_ABS, offset + 1, 0, 0),
                statement(BPF_JMP | BPF_JEQ | BPF_K, generation, 0, 3),
                load(offset),
                modulo(predecessor.engines),
                answer(),
                load(offset),
                modulo(engines),
                statement(
                    BPF_ALU | BPF_ADD | BPF_K,
                    predecessor.engines.get().into(),
                    0,
                    0,
                ),
                answer(),
            ]
        };
        Self([&[load(0), if_long(9)][..], &of(1), &of(6)].concat())
    }

    /// Sets it for all sockets that share the port of one of them.
    pub(crate) fn set(&self, socket: &impl AsRawFd) -> io::Result<()> {
        let program = sock_fprog {
            len: self.0.len() as u16,
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: the descriptor is open; the option's value is a `sock_fprog` of the length given,
        // whose pointer and length are those of the filter. The kernel copies both, and writes to neither.
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
}

fn statement(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Loads a byte: the connection ID of a short header begins at 1, that of a long header at 6, after the version
/// and its own length (RFC 8999, section 5).
fn load(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_B | BPF_ABS, offset, 0, 0)
}

/// Skips statements where the bit of long headers is set.
fn if_long(skipped: u8) -> sock_filter {
    statement(BPF_JMP | BPF_JSET | BPF_K, 0x80, skipped, 0)
}

fn modulo(engines: NonZeroU8) -> sock_filter {
    statement(BPF_ALU | BPF_MOD | BPF_K, engines.get().into(), 0, 0)
}

fn answer() -> sock_filter {
    statement(BPF_RET | BPF_A, 0, 0, 0)
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
    fn a_successor_gets_all_but_its_predecessors_packets() {
        let engines = NonZeroU8::new(2).unwrap();
        let first = bind(PortSharing::Followed, "127.0.0.1:0");
        let address = first.local_addr().unwrap();
        // Nobody else has the port, until it is shared.
        let reusing = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        reusing.set_reuse_port(true).unwrap();
        assert!(reusing.bind(&address.into()).is_err());
        socket2::SockRef::from(&first).set_reuse_port(true).unwrap();
        let predecessor = Predecessor {
            generation: 0x0107,
            engines: NonZeroU8::MIN,
        };
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut received = [0; 64];
        let mut reaches = |socket: &UdpSocket, id: u8, generation: u16| {
            let [high, low] = generation.to_be_bytes();
            let long = [0xc0, 0, 0, 0, 1, 8, id, high, low];
            for packet in [[0x40, id, high, low, 9, 9, 9, 9, 9], long] {
                sender.send_to(&packet, address).unwrap();
                let length = socket.recv(&mut received).unwrap();
                assert_eq!(received[..length], packet);
            }
        };
        let successors = [false, true].map(|is_last| {
            let sharing = PortSharing::Follows {
                predecessor,
                engines,
                is_last,
            };
            let socket = bind(sharing, &address.to_string());
            if !is_last {
                (0..=u8::MAX).for_each(|id| reaches(&first, id, 0x0207));
            }
            socket
        });
        for id in 0..=u8::MAX {
            reaches(&first, id, 0x0107);
            reaches(&successors[usize::from(id % 2)], id, 0x0108);
        }
        // The kernel puts the last socket in the place of the first one.
        drop(first);
        PortFilter::of_engines(engines).set(&successors[0]).unwrap();
        let [one, other] = &successors;
        for id in 0..=u8::MAX {
            reaches([other, one][usize::from(id % 2)], id, 0x0107);
        }
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
