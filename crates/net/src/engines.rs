//! The engines of an endpoint, and the datagrams that reach the wrong one.
//!
//! Each engine has its own sockets, connections and driver. A packet's connection ID names its
//! engine, and the kernel delivers it there ([`crate::port_sharing`]). It may deliver another one's
//! datagram where GRO joined the packets of several connections, where a socket was bound again, or
//! where it refuses the filter; stateless resets name no engine at all. Such datagrams are copied to
//! the inbox of another engine.

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;

use quinn_udp::RecvMeta;

use crate::driver_queue::DriverQueue;
use crate::incoming::Incoming;

/// The most datagrams in an inbox: 1.5 MB of full packets. Further ones are lost.
const INBOX_LIMIT: usize = 1024;

/// An engine's view of all engines, with connections of type `L`.
pub(crate) struct Engines<L> {
    index: u8,
    inboxes: Arc<[DriverQueue<ForwardedDatagram>]>,
    /// New connections of all engines.
    pub(crate) incoming: Arc<Incoming<Arc<L>>>,
}

/// A datagram that another engine received.
pub(crate) struct ForwardedDatagram {
    /// The address of the socket that received it. The engine's own socket there answers it.
    pub(crate) socket: SocketAddr,
    pub(crate) meta: RecvMeta,
    pub(crate) contents: Vec<u8>,
    /// It may be a stateless reset, and is nothing else.
    pub(crate) is_reset: bool,
}

impl<L> Engines<L> {
    /// Returns the view of each of `count` engines.
    pub(crate) fn new(count: NonZeroU8) -> Vec<Self> {
        let inboxes = (0..count.get()).map(|_| DriverQueue::default());
        let inboxes: Arc<[_]> = inboxes.collect();
        let incoming = Arc::new(Incoming::default());
        let view = |index| Self {
            index,
            inboxes: inboxes.clone(),
            incoming: incoming.clone(),
        };
        (0..count.get()).map(view).collect()
    }

    /// Returns the view of the only engine.
    pub(crate) fn alone() -> Self {
        Self {
            index: 0,
            inboxes: Arc::new([DriverQueue::default()]),
            incoming: Arc::default(),
        }
    }

    /// Returns the index of this engine.
    pub(crate) fn index(&self) -> u8 {
        self.index
    }

    /// Returns the inbox of this engine, where there are others.
    pub(crate) fn inbox(&self) -> Option<&DriverQueue<ForwardedDatagram>> {
        let inbox = self.inboxes.get(usize::from(self.index));
        inbox.filter(|_| self.inboxes.len() > 1)
    }

    /// Copies a datagram to the engine with this index; returns whether its inbox had room.
    pub(crate) fn forward(
        &self,
        engine: usize,
        socket: SocketAddr,
        meta: &RecvMeta,
        contents: &[u8],
    ) -> bool {
        self.copy_to(engine, socket, meta, contents, false)
    }

    /// Copies a datagram that may be a stateless reset to all other engines.
    pub(crate) fn offer_reset(&self, socket: SocketAddr, meta: &RecvMeta, contents: &[u8]) {
        let own = usize::from(self.index);
        for engine in (0..self.inboxes.len()).filter(|engine| *engine != own) {
            self.copy_to(engine, socket, meta, contents, true);
        }
    }

    fn copy_to(
        &self,
        engine: usize,
        socket: SocketAddr,
        meta: &RecvMeta,
        contents: &[u8],
        is_reset: bool,
    ) -> bool {
        let mut meta = *meta;
        meta.len = contents.len();
        meta.stride = contents.len();
        let datagram = ForwardedDatagram {
            socket,
            meta,
            contents: contents.to_vec(),
            is_reset,
        };
        let inbox = self.inboxes.get(engine);
        inbox.is_some_and(|inbox| inbox.push_within(INBOX_LIMIT, datagram))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::tls::{ClientTls, Identity, ServerTls};
    use crate::{Connection, Endpoint, EndpointStats, Request, ServeOptions};

    fn meta() -> RecvMeta {
        RecvMeta::default()
    }

    #[test]
    fn a_datagram_is_copied_to_one_inbox_and_a_reset_to_all_others() {
        let engines = Engines::<()>::new(NonZeroU8::new(3).unwrap());
        let socket = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(engines[0].forward(2, socket, &meta(), b"packet"));
        engines[1].offer_reset(socket, &meta(), b"reset");
        let received = |engine: &Engines<()>| {
            let mut datagrams = Vec::new();
            engine.inbox().unwrap().take(&mut datagrams);
            let contents = datagrams.into_iter();
            contents
                .map(|datagram| {
                    assert_eq!(datagram.meta.len, datagram.contents.len());
                    (datagram.contents, datagram.is_reset)
                })
                .collect::<Vec<_>>()
        };
        let packet = (b"packet".to_vec(), false);
        let reset = (b"reset".to_vec(), true);
        assert_eq!(received(&engines[0]), std::slice::from_ref(&reset));
        assert_eq!(received(&engines[1]), []);
        assert_eq!(received(&engines[2]), [packet, reset]);
    }

    #[test]
    fn a_full_inbox_takes_no_more() {
        let engines = Engines::<()>::new(NonZeroU8::new(2).unwrap());
        let socket = SocketAddr::from(([127, 0, 0, 1], 1));
        let forwarded = (0..INBOX_LIMIT + 10)
            .filter(|_| engines[0].forward(1, socket, &meta(), b"packet"))
            .count();
        assert_eq!(forwarded, INBOX_LIMIT);
        assert!(!engines[0].forward(7, socket, &meta(), b"packet"));
        assert!(Engines::<()>::alone().inbox().is_none());
    }

    /// Echoes calls on the runtime of each connection.
    async fn serve(server: Endpoint) {
        while let Some(connecting) = server.accept().await {
            let runtime = connecting.runtime().clone();
            runtime.spawn(async move {
                let connection = connecting.await.unwrap();
                let echo = |request: Request| async { Ok(request.body) };
                connection.serve(ServeOptions::default(), echo).await;
            });
        }
    }

    async fn connect(client: &Endpoint, server: SocketAddr) -> Connection {
        let connecting = client.connect(server, "localhost");
        connecting.unwrap().await.unwrap()
    }

    /// Returns the statistics once the engines have handled what they forwarded: the last ACK may
    /// still be in an inbox when the last answer has arrived. Waits for some seconds at most.
    async fn once_all_are_handled(server: &Endpoint) -> EndpointStats {
        for _ in 0..1000 {
            let stats = server.stats();
            if stats.datagrams_forwarded == stats.datagrams_received {
                return stats;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.stats()
    }

    #[tokio::test]
    async fn packets_that_reach_the_wrong_engine_are_forwarded() {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let tls = ClientTls::pinned(identity.fingerprint()).build().unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let client = Endpoint::builder().client(tls).bind(local).unwrap();
        let server = Endpoint::builder()
            .server(ServerTls::new(identity).build().unwrap())
            .threads(NonZeroU8::new(2).unwrap())
            .bind(local)
            .unwrap();
        tokio::spawn(serve(server.clone()));
        let address = server.local_address();
        // The kernel numbers the sockets anew: each engine gets the packets of the other one.
        let first = server.engines().next().unwrap();
        let socket = first.sockets.open().sockets[0].clone();
        first.close_socket_at(0);
        while Arc::strong_count(&socket) > 1 {
            tokio::task::yield_now().await;
        }
        drop(socket);
        first.reopen_socket_at(0);
        let request = Bytes::from(vec![7; 100_000]);
        for _ in 0..4 {
            let connection = connect(&client, address).await;
            assert_eq!(connection.call(request.clone()).await.unwrap(), request);
        }
        let stats = once_all_are_handled(&server).await;
        assert!(stats.datagrams_received > 0, "{stats:?}");
        assert_eq!(stats.datagrams_forwarded, stats.datagrams_received);
        assert_eq!(stats.datagrams_unroutable, 0, "{stats:?}");
    }
}
