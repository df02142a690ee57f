//! Statistics of an endpoint.

use std::iter::Sum;
use std::sync::atomic::Ordering;

use weir_quic::{EndpointCounters, KnownClientsCounters};
use weir_units::Duration;

use crate::dcquic::Shared;
use crate::tls::ReloadCounters;

/// Statistics of an endpoint, all connections together. Each connection has its own:
/// [`Connection::stats`](crate::Connection::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Connections that are open, or closed but not yet removed.
    pub connections: usize,
    /// Datagrams that were received.
    pub datagrams_received: u64,
    /// Receive batches, each of one system call.
    pub receive_batches: u64,
    /// Datagrams for which the receive buffers of the open sockets had no room
    /// ([`crate::EndpointBuilder::receive_buffer`]). A batch that the kernel holds as one counts once.
    pub datagrams_dropped: u64,
    /// Datagrams that belong to no connection and begin none.
    pub datagrams_unroutable: u64,
    /// Datagrams that an engine received for another one ([`crate::EndpointBuilder::threads`]): few,
    /// where the kernel selects engines.
    pub datagrams_forwarded: u64,
    /// Calls whose handler panicked ([`Connection::serve`](crate::Connection::serve)).
    pub calls_failed: u64,
    /// Datagrams lost as the endpoint had no socket to send them by: its last address of their family
    /// is gone.
    pub datagrams_without_socket: u64,
    /// Replies sent without a connection.
    pub replies: EndpointCounters,
    /// Clients that share a secret with this server, and their connections without a handshake.
    pub known_clients: KnownClientsCounters,
    /// Certificates, keys and lists that were read from their files again, of server and client.
    pub tls_reloads: ReloadCounters,
    /// Events missing from qlog files: the disk is slow or full.
    pub qlog_events_lost: u64,
    /// Time spent polling for replies instead of sleeping, with the low-latency setting.
    pub spinning: Duration,
}

impl EndpointStats {
    pub(crate) fn of(shared: &Shared) -> Self {
        let counters = &shared.counters;
        let routing = shared.routing();
        let (connections, replies) = (routing.open, routing.engine.counters());
        drop(routing);
        Self {
            connections,
            replies,
            known_clients: (shared.settings.known_clients.as_ref())
                .map_or_else(KnownClientsCounters::default, |clients| clients.counters()),
            tls_reloads: shared.settings.tls_reloads(),
            qlog_events_lost: (shared.settings.lost_events.as_ref()).map_or(0, |lost| lost.count()),
            datagrams_received: counters.datagrams.load(Ordering::Relaxed),
            receive_batches: counters.batches.load(Ordering::Relaxed),
            datagrams_dropped: shared.sockets.dropped(),
            datagrams_unroutable: counters.unroutable.load(Ordering::Relaxed),
            calls_failed: counters.failed_calls.load(Ordering::Relaxed),
            datagrams_without_socket: shared.sockets.without_socket(),
            datagrams_forwarded: counters.forwarded.load(Ordering::Relaxed),
            spinning: shared
                .spin
                .as_ref()
                .map_or(Duration::ZERO, |spin| spin.spent()),
        }
    }
}

impl Sum for EndpointStats {
    /// Adds the statistics of an endpoint's engines.
    fn sum<I: Iterator<Item = Self>>(engines: I) -> Self {
        engines.fold(Self::default(), |sum, engine| Self {
            connections: sum.connections + engine.connections,
            datagrams_received: sum.datagrams_received + engine.datagrams_received,
            receive_batches: sum.receive_batches + engine.receive_batches,
            datagrams_dropped: sum.datagrams_dropped + engine.datagrams_dropped,
            datagrams_unroutable: sum.datagrams_unroutable + engine.datagrams_unroutable,
            datagrams_without_socket: sum.datagrams_without_socket
                + engine.datagrams_without_socket,
            datagrams_forwarded: sum.datagrams_forwarded + engine.datagrams_forwarded,
            calls_failed: sum.calls_failed + engine.calls_failed,
            known_clients: KnownClientsCounters {
                held: sum.known_clients.held + engine.known_clients.held,
                accepted: sum.known_clients.accepted + engine.known_clients.accepted,
                replays: sum.known_clients.replays + engine.known_clients.replays,
                evicted: sum.known_clients.evicted + engine.known_clients.evicted,
            },
            replies: EndpointCounters {
                retries: sum.replies.retries + engine.replies.retries,
                known_peer_refusals: sum.replies.known_peer_refusals
                    + engine.replies.known_peer_refusals,
                version_negotiations: sum.replies.version_negotiations
                    + engine.replies.version_negotiations,
                stateless_resets: sum.replies.stateless_resets + engine.replies.stateless_resets,
                refusals: sum.replies.refusals + engine.replies.refusals,
                client_limit_refusals: sum.replies.client_limit_refusals
                    + engine.replies.client_limit_refusals,
            },
            tls_reloads: sum.tls_reloads + engine.tls_reloads,
            qlog_events_lost: sum.qlog_events_lost + engine.qlog_events_lost,
            spinning: sum.spinning + engine.spinning,
        })
    }
}
