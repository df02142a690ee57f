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

impl DcudpConfig {
    /// Returns settings for a link of this rate, and packets for links with an MTU of 1500 bytes.
    pub fn new(rate: Rate) -> Self {
        Self {
            transport: TransportConfig {
                packet_size: PACKET_SIZE,
                receive_window: WINDOW,
                send_buffer: ByteSize::from_mib(4),
                pacing_quantum: QUANTUM,
                ..TransportConfig::new(rate)
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
