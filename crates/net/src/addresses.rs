//! Local addresses that appear, disappear and change, and the effect on the endpoint's sockets and
//! client connections. The interface watch and the application both call these methods.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_quic::Interfaces;
use weir_units::Time;

use crate::dcquic::{ConnectionState, Shared};
use crate::error::EndpointError;
use crate::socket::{Socket, reaches};
use crate::sockets::source_address_for;

impl Shared {
    /// Returns the local address of a connection to `remote` by this socket, where it is certain. A
    /// wildcard socket leaves the choice to the kernel, unless the endpoint watches the machine's
    /// addresses: then the kernel is asked once for the address that it chooses.
    pub(crate) fn local_towards(&self, socket: &Socket, remote: SocketAddr) -> Option<SocketAddr> {
        let local = socket.local;
        if !local.ip().is_unspecified() {
            return Some(local);
        }
        let source = self
            .settings
            .is_watched
            .then(|| source_address_for(remote))
            .flatten()?;
        Some(SocketAddr::new(source, local.port()))
    }

    /// Returns the addresses from which a connection to `remote` keeps standby paths: all of them
    /// where there are several. The one in use is included, so that it is used again after it was
    /// gone.
    pub(crate) fn standby_addresses(&self, remote: SocketAddr) -> Vec<SocketAddr> {
        let addresses = self.sockets.addresses_towards(remote);
        match addresses[..] {
            [_, _, ..] => addresses,
            _ => Vec::new(),
        }
    }

    /// Sets new packet sizes of the machine's interfaces for existing and future connections, at
    /// once.
    pub(crate) fn set_interfaces(&self, interfaces: &Arc<Interfaces>) {
        self.routing().engine.set_interfaces(interfaces.clone());
        let connections: Vec<Arc<_>> = self.routing().connections().cloned().collect();
        for connection in connections {
            let mut state = connection.lock();
            if state.error.is_none() {
                let now = state.now();
                state.engine.set_interfaces(now, interfaces.clone());
                state.send();
            }
        }
    }

    /// Closes the socket at index `index`, whose address is gone, and moves its connections away.
    pub(crate) fn close_socket_at(&self, index: usize) {
        let Some(gone) = self.sockets.close(index) else {
            return;
        };
        tracing::info!(%gone, "an address of the endpoint's is gone");
        self.queue.wake();
        self.change_clients(|state, now| self.leave(state, now, gone));
    }

    /// Binds the socket at index `index` again, as its address is back.
    pub(crate) fn reopen_socket_at(&self, index: usize) {
        match self.sockets.reopen(index) {
            Ok(Some(address)) => {
                tracing::info!(%address, "an address of the endpoint's is there again");
                self.queue.wake();
                self.change_clients(|state, now| state.engine.add_local_address(now, address));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "an address that is there again cannot be used"),
        }
    }

    /// Checks that every client connection can go on where the socket at index `index` gets another
    /// address.
    pub(crate) fn check_rebind(
        &self,
        index: usize,
        address: SocketAddr,
    ) -> Result<(), EndpointError> {
        let connections: Vec<Arc<_>> = self.routing().connections().cloned().collect();
        for connection in connections {
            let state = connection.peek();
            let peer = state.engine.remote();
            let goes_on = state.error.is_some()
                || !state.engine.side().is_client()
                || reaches(address, peer)
                || self.sockets.others_reach(index, peer);
            if !goes_on {
                return Err(EndpointError::OtherFamily { address, peer });
            }
        }
        Ok(())
    }

    /// Gives the socket at index `index` another address and moves its connections there. Returns
    /// the new address.
    pub(crate) fn rebind_socket_at(
        &self,
        index: usize,
        address: SocketAddr,
    ) -> Result<SocketAddr, EndpointError> {
        let Some((before, now_at)) = self.sockets.replace(index, address)? else {
            return Ok(address);
        };
        tracing::info!(%before, now = %now_at, "the endpoint takes another address");
        self.queue.wake();
        let is_specific = !now_at.ip().is_unspecified();
        self.change_clients(|state, now| {
            let from_all = before.ip().is_unspecified();
            let from_there = state.engine.local().map_or(from_all, |local| {
                local == before || (from_all && local.port() == before.port())
            });
            if from_there && reaches(now_at, state.engine.remote()) {
                state.rebind(now, now_at, self.sockets.hold());
            } else {
                state.engine.remove_local_address(now, before);
            }
            if is_specific {
                state.engine.add_local_address(now, now_at);
            }
        });
        Ok(now_at)
    }

    /// Moves connections of a wildcard socket off source addresses that are gone, to the addresses
    /// that the kernel chooses now. Returns the addresses that some connection cannot leave yet, as
    /// no other route to its peer is known.
    pub(crate) fn follow_source(&self, gone: &[IpAddr]) -> Vec<IpAddr> {
        let mut stuck = Vec::new();
        self.change_clients(|state, now| {
            let engine = &mut state.engine;
            let Some(local) = engine.local() else {
                return;
            };
            let ip = local.ip().to_canonical();
            if !gone.contains(&ip) {
                return;
            }
            let Some(socket) = self.sockets.socket_for(Some(local), engine.remote()) else {
                return;
            };
            if !socket.local.ip().is_unspecified() {
                return;
            }
            engine.remove_local_address(now, local);
            if engine.local() != Some(local) {
                return;
            }
            match source_address_for(engine.remote()).filter(|source| !gone.contains(source)) {
                Some(source) => {
                    let source = SocketAddr::new(source, local.port());
                    tracing::info!(%local, now = %source, "a connection's source address changed");
                    state.rebind(now, source, self.sockets.hold());
                }
                None if stuck.contains(&ip) => {}
                None => stuck.push(ip),
            }
        });
        stuck
    }

    /// Takes `gone` away from a connection. Without a ready path the connection goes on from
    /// another, untested address: better than from none.
    fn leave(&self, state: &mut ConnectionState, now: Time, gone: SocketAddr) {
        let engine = &mut state.engine;
        engine.remove_local_address(now, gone);
        if engine.local() != Some(gone) {
            return;
        }
        let others = self.sockets.addresses_towards(engine.remote());
        if let Some(other) = others.first() {
            state.rebind(now, *other, self.sockets.hold());
        }
    }

    /// Changes every client connection of this endpoint, and sends the resulting packets.
    fn change_clients(&self, mut change: impl FnMut(&mut ConnectionState, Time)) {
        let connections: Vec<Arc<_>> = self.routing().connections().cloned().collect();
        for connection in connections {
            let mut state = connection.lock();
            // A closed connection needs no change, but must not keep the socket open.
            state.forget_socket();
            if state.error.is_some() || !state.engine.side().is_client() {
                continue;
            }
            let now = state.now();
            change(&mut state, now);
            state.send();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{ClientTls, Identity, ServerTls};
    use crate::{Connection, Endpoint, PathState};

    /// A client at two loopback addresses and its server.
    struct Pair {
        client: Connection,
        server: Connection,
        _endpoints: [Endpoint; 2],
    }

    async fn pair() -> Pair {
        let any = "127.0.0.1:0".parse().unwrap();
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let tls = ClientTls::pinned(identity.fingerprint()).build().unwrap();
        let builder = Endpoint::builder().client(tls);
        let client = builder
            .also_at("127.0.0.3:0".parse().unwrap())
            .bind("127.0.0.2:0".parse().unwrap())
            .unwrap();
        let tls = ServerTls::new(identity).build().unwrap();
        let server = Endpoint::builder().server(tls).bind(any).unwrap();
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        let accepted = server.accept().await.unwrap();
        let (ours, theirs) = tokio::join!(connecting, accepted);
        Pair {
            client: ours.unwrap(),
            server: theirs.unwrap(),
            _endpoints: [client, server],
        }
    }

    impl Pair {
        fn shared(&self) -> Arc<Shared> {
            self.client.handle.connection.shared.clone()
        }

        async fn ready(&self) {
            let mut events = self.client.path_events();
            let is_ready = |connection: &Connection| {
                let paths = connection.paths();
                paths.iter().any(|path| path.state == PathState::Ready)
            };
            while !is_ready(&self.client) {
                events.next().await.unwrap();
            }
        }

        /// Moves 4 MB from the client to the server; calls `disturb` halfway.
        async fn transfer(&self, disturb: impl FnOnce()) {
            let half = vec![7; 2_000_000];
            let sending = async {
                let mut send = self.client.open_uni().await.unwrap();
                send.write_all(&half).await.unwrap();
                disturb();
                send.write_all(&half).await.unwrap();
                send.finish().unwrap();
                send.acknowledged().await.unwrap();
            };
            let receiving = async {
                let mut recv = self.server.accept_uni().await.unwrap();
                recv.read_to_end(2 * half.len()).await.unwrap()
            };
            let ((), received) = tokio::join!(sending, receiving);
            assert_eq!(received.len(), 2 * half.len());
        }

        fn local(&self) -> Option<SocketAddr> {
            self.client.paths()[0].snapshot.local
        }
    }

    #[tokio::test]
    async fn a_connection_migrates_away_from_a_closed_socket() {
        let pair = pair().await;
        pair.ready().await;
        let shared = pair.shared();
        let first = shared.sockets.local();
        pair.transfer(|| shared.close_socket_at(0)).await;
        assert_ne!(pair.local(), Some(first));
        // The socket really is closed: it can be bound again.
        drop(std::net::UdpSocket::bind(first).unwrap());
        shared.reopen_socket_at(0);
        pair.ready().await;
        pair.transfer(|| shared.close_socket_at(1)).await;
        assert_eq!(pair.local(), Some(first));
    }

    #[tokio::test]
    async fn another_address_is_tried_without_a_standby_path() {
        let pair = pair().await;
        pair.ready().await;
        let shared = pair.shared();
        let bind_addresses = shared.sockets.bound_addresses();
        pair.client
            .remove_local_address(bind_addresses[1].0.address);
        assert_eq!(pair.client.paths().len(), 1);
        pair.transfer(|| shared.close_socket_at(0)).await;
        assert_eq!(pair.local(), Some(bind_addresses[1].0.address));
    }

    #[tokio::test]
    async fn datagrams_without_a_socket_are_counted_and_repaired() {
        let pair = pair().await;
        pair.ready().await;
        let shared = pair.shared();
        let lost = || shared.sockets.without_socket();
        shared.close_socket_at(1);
        assert_eq!(lost(), 0);
        let reopening = async {
            while lost() == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            shared.reopen_socket_at(0);
        };
        tokio::join!(pair.transfer(|| shared.close_socket_at(0)), reopening);
    }

    #[tokio::test]
    async fn an_address_bound_by_another_socket_stays_closed() {
        let pair = pair().await;
        pair.ready().await;
        let shared = pair.shared();
        let first = shared.sockets.local();
        shared.close_socket_at(0);
        // The driver closes its descriptor with a delay.
        let _taken = loop {
            match std::net::UdpSocket::bind(first) {
                Ok(taken) => break taken,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        shared.reopen_socket_at(0);
        assert!(!shared.sockets.bound_addresses()[0].1);
        pair.transfer(|| ()).await;
    }
}
