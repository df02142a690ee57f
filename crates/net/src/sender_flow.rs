//! A connection with deadlines as an allocator's flow.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_quic::StreamId;
use weir_sed::{Allocator, SenderFlow};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::FlowKey;

use crate::dcquic::{ConnectionState, Locked, SharedDcquicConnection};

/// IANA protocol number of UDP.
const UDP: u8 = 17;

impl Locked<'_> {
    /// Sets or removes a stream's deadline; without an allocator this does nothing.
    pub(crate) fn set_deadline(&mut self, id: StreamId, deadline: Option<(ByteSize, Duration)>) {
        let connection = self.connection;
        let Some(allocator) = &connection.shared.settings.allocator else {
            return;
        };
        let now = self.now();
        let ConnectionState {
            allocation, engine, ..
        } = &mut **self;
        let Some((size, within)) = deadline else {
            return allocation.remove(now, engine, id);
        };
        let local = engine.local().unwrap_or(connection.shared.sockets.local());
        let (ends, packet) = ((local, engine.remote()), engine.packet_size());
        let at = now.checked_add(within).unwrap_or(Time::MAX);
        allocation.add(now, engine, id, (size, at), || {
            open(allocator.as_ref(), connection, ends, packet)
        });
    }
}

/// Opens the allocator's flow for the connection; `None` where the local address is not known.
fn open(
    allocator: &dyn Allocator,
    connection: &Arc<SharedDcquicConnection>,
    (local, remote): (SocketAddr, SocketAddr),
    packet: ByteSize,
) -> Option<Box<dyn SenderFlow>> {
    if local.ip().is_unspecified() {
        tracing::warn!(%local, "a deadline is nobody's: the connection's own address is not known");
        return None;
    }
    let flow = FlowKey {
        source: local.ip().to_canonical(),
        destination: remote.ip().to_canonical(),
        source_port: local.port(),
        destination_port: remote.port(),
        protocol: UDP,
    };
    let connection = Arc::downgrade(connection);
    let hear = Arc::new(move |allowance| {
        if let Some(connection) = connection.upgrade() {
            let mut state = connection.lock();
            let now = state.now();
            let ConnectionState {
                allocation, engine, ..
            } = &mut *state;
            allocation.allow(now, engine, allowance);
            state.send();
        }
    });
    let segment = u32::try_from(packet.bytes()).unwrap_or(u32::MAX);
    Some(allocator.open(flow, segment, hear))
}
