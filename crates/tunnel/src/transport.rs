//! The settings of the DCQUIC connections of a tunnel.

use weir_net::{AlgorithmSpec, Congestion, DatagramConfig, Side, TransportConfig};
use weir_units::{ByteSize, Duration};

/// The application protocol (RFC 7301).
pub const APPLICATION_PROTOCOL: &[u8] = b"weir-tunnel";

/// The most streams, so TCP connections, of one DCQUIC connection.
pub(crate) const STREAMS: u64 = 1024;
/// The most that one stream may have sent and the peer not yet read.
const STREAM_WINDOW: ByteSize = ByteSize::from_mib(1);

/// Returns the settings of a tunnel's connections.
///
/// The window of a connection is that of all its streams together: streams whose readers stall leave the
/// others theirs, whatever their number. Windows are limits, not memory.
pub(crate) fn transport(side: Side, congestion: Option<AlgorithmSpec>) -> TransportConfig {
    let usual = TransportConfig::data_center();
    TransportConfig {
        congestion: congestion.map_or(usual.congestion.clone(), Congestion::Named),
        stream_window: STREAM_WINDOW,
        connection_window: ByteSize::from_bytes(STREAM_WINDOW.bytes() * STREAMS),
        max_bidirectional_streams: STREAMS,
        // Nothing uses them.
        max_unidirectional_streams: 0,
        // Connections are kept open, so that a new stream finds one. The kernel of a client that was killed
        // tells the server that nobody is there.
        keep_alive: match side {
            Side::Client => Duration::from_secs(3),
            Side::Server => Duration::from_millis(700),
        },
        // A peer whose kernel tells nothing.
        idle_timeout: Duration::from_secs(10),
        // A server that is gone is noticed within a second, with what the probe timeouts take.
        stream_keep_alive: Duration::from_millis(250),
        max_probe_timeouts: 12,
        datagrams: Some(DatagramConfig::default()),
        ..usual
    }
}
