//! Configuration of a UDP socket for DCUDP.

use weir_dcudp::TransportConfig;
use weir_units::{ByteSize, Duration, Rate};

use crate::socket::SocketBuffers;

/// The settings of a UDP socket and its connections. Start from [`DcudpConfig::new`].
#[derive(Clone, Debug)]
pub struct DcudpConfig {
    /// The transport of the connections. Its data kind is ignored: a connection's type decides
    /// whether it carries a stream or messages. A receive window larger than the socket's buffer is
    /// reduced: the kernel would drop the excess.
    pub transport: TransportConfig,
    /// The socket's buffers in the kernel.
    pub buffers: SocketBuffers,
    /// The limit of concurrent connections of a listener; further clients are refused.
    pub max_connections: usize,
    /// The network interface to use, instead of the routing table's choice.
    pub interface: Option<String>,
}

/// Fits a link with an MTU of 1500 bytes over IPv6 and IPv4.
const PACKET_SIZE: ByteSize = ByteSize::from_bytes(1452);
/// Packets that the receive buffer holds: 3 MB, the bandwidth-delay product of 100 Gbit/s over 240
/// µs.
const WINDOW: u32 = 2048;
/// How long a sender may wait so that packets leave in one batch.
const QUANTUM: Duration = Duration::from_micros(100);

/// The limit of a sender that finds its rate itself, where nothing is known of the interface.
const HIGHEST_RATE: Rate = Rate::from_gbps(400);

impl DcudpConfig {
    /// Returns settings for any network, whose switches need not mark: a sender finds its rate by
    /// CUBIC, as TCP does. See [`TransportConfig::shared`]; [`interface_rate()`](super::interface_rate())
    /// returns the highest rate that makes sense for a peer.
    pub fn shared() -> Self {
        Self::of(TransportConfig::shared(HIGHEST_RATE))
    }

    /// Returns the paper's settings, for a data center whose switches mark and a link of this rate: a
    /// sender starts at this rate, and only marks slow it down.
    pub fn new(rate: Rate) -> Self {
        Self::of(TransportConfig::new(rate))
    }

    /// Returns settings for packets that fit links with an MTU of 1500 bytes.
    fn of(transport: TransportConfig) -> Self {
        Self {
            transport: TransportConfig {
                packet_size: PACKET_SIZE,
                receive_window: WINDOW,
                send_buffer: ByteSize::from_mib(4),
                pacing_quantum: QUANTUM,
                ..transport
            },
            buffers: SocketBuffers {
                receive: ByteSize::from_mib(4),
                send: ByteSize::from_mib(1),
            },
            max_connections: 1000,
            interface: None,
        }
    }
}
