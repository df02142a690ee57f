//! How a UDP socket for DCUDP is set up.

use weir_dcudp::TransportConfig;
use weir_units::{ByteSize, Duration, Rate};

use crate::socket::SocketBuffers;

/// What a UDP socket and its connections are made with. Start from [`DcudpConfig::new`].
#[derive(Clone, Debug)]
pub struct DcudpConfig {
    /// The transport of the connections. Whether they carry a stream or messages is not taken from
    /// here but from their type. A receive window that the socket's buffer cannot hold is made
    /// smaller: what the kernel has no room for would be lost.
    pub transport: TransportConfig,
    /// The socket's buffers in the kernel.
    pub buffers: SocketBuffers,
    /// How many connections a listener has at the same time; clients beyond that are refused.
    pub max_connections: usize,
    /// The network interface to use, instead of what the routes say.
    pub interface: Option<String>,
}

/// What fits a link of 1500 bytes over IPv6 as over IPv4.
const PACKET_SIZE: ByteSize = ByteSize::from_bytes(1452);
/// Packets that the receive buffer holds: 3 MB, the way of 100 Gbit/s over 240 µs.
const WINDOW: u32 = 2048;
/// How long a sender may wait so that its packets leave together.
const QUANTUM: Duration = Duration::from_micros(100);

impl DcudpConfig {
    /// Settings for a line of this rate, packets for links of 1500 bytes.
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
