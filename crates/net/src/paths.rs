//! The API for paths: their state, their events, and migration from one to another.

use std::fmt;
use std::net::SocketAddr;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use weir_quic::{MoveCause, PathId, PathSnapshot};

use crate::connection::Connection;
use crate::error::MoveError;
use crate::path_updates::PathUpdate;

/// The role of a path in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Data are sent on it.
    InUse,
    /// Validated standby path: it carries only probes.
    Ready,
    /// The peer has not answered on it yet, or no longer does.
    NotValidated,
}

impl fmt::Display for PathState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InUse => "in use",
            Self::Ready => "ready",
            Self::NotValidated => "not validated",
        })
    }
}

/// A path of a connection.
#[derive(Clone, Debug)]
pub struct PathInfo {
    /// Its role in the connection.
    pub state: PathState,
    /// Its addresses, RTT, losses, bytes, packet size, ECN and congestion control.
    pub snapshot: PathSnapshot,
}

impl Connection {
    /// Returns the connection's paths, the one in use first.
    pub fn paths(&self) -> Vec<PathInfo> {
        let snapshots = self.stats().paths.into_iter().enumerate();
        snapshots
            .map(|(index, mut snapshot)| {
                snapshot.remote = canonical(snapshot.remote);
                snapshot.local = snapshot.local.map(canonical);
                let state = match (index, snapshot.validated) {
                    (0, _) => PathState::InUse,
                    (_, true) => PathState::Ready,
                    (_, false) => PathState::NotValidated,
                };
                PathInfo { state, snapshot }
            })
            .collect()
    }

    /// Subscribes to the connection's path events from now on. There may be any number of
    /// subscribers.
    pub fn path_events(&self) -> PathEvents {
        let mut state = self.handle.connection.lock();
        let is_over = state.error.is_some();
        PathEvents {
            receiver: state.path_events.subscribe(is_over),
            missed: 0,
        }
    }

    /// Migrates to another of the connection's paths (clients only). Data in flight on the old path
    /// are retransmitted at once.
    ///
    /// # Errors
    /// [`MoveError::Path`] where there is no such path or the peer did not answer on it, where the
    /// peer forbids migration, and before the handshake is confirmed; [`MoveError::Connection`]
    /// where the connection is over.
    pub fn move_to(&self, path: PathId) -> Result<(), MoveError> {
        let mut state = self.handle.connection.lock();
        state.check_open()?;
        let now = state.now();
        let moved = state.engine.move_to(now, path, MoveCause::Requested);
        state.send();
        Ok(moved?)
    }

    /// As [`Connection::move_to`], to the path that begins at a local address.
    ///
    /// # Errors
    /// [`MoveError::NoPathFrom`], and as [`Connection::move_to`].
    pub fn move_to_address(&self, local: SocketAddr) -> Result<(), MoveError> {
        let paths = self.paths();
        let from = |path: &&PathInfo| path.snapshot.local == Some(canonical(local));
        let path = paths.iter().find(from);
        self.move_to(path.ok_or(MoveError::NoPathFrom { local })?.snapshot.id)
    }

    /// Keeps a standby path from another address of the endpoint (clients only). All of the
    /// endpoint's specific addresses are used from the beginning; this reverts
    /// [`Connection::remove_local_address`].
    ///
    /// # Errors
    /// [`MoveError::NoSocketAt`] where the endpoint does not have the address;
    /// [`MoveError::Connection`] where the connection is over.
    pub fn add_local_address(&self, local: SocketAddr) -> Result<(), MoveError> {
        let connection = &self.handle.connection;
        let mut state = connection.lock();
        state.check_open()?;
        let known = connection
            .shared
            .sockets
            .addresses_towards(state.engine.remote());
        if !known.contains(&local) {
            return Err(MoveError::NoSocketAt { local });
        }
        let now = state.now();
        state.engine.add_local_address(now, local);
        state.send();
        Ok(())
    }

    /// Stops using an address of the endpoint on this connection (clients only). Where the path in
    /// use begins there, the best of the others replaces it; without any, packets still leave from
    /// there.
    pub fn remove_local_address(&self, local: SocketAddr) {
        let mut state = self.handle.connection.lock();
        if state.error.is_none() && state.engine.side().is_client() {
            let now = state.now();
            state.engine.remove_local_address(now, local);
            state.send();
        }
    }
}

/// A subscription to a connection's path events: [`Connection::path_events`].
#[derive(Debug)]
pub struct PathEvents {
    receiver: broadcast::Receiver<PathUpdate>,
    missed: u64,
}

impl PathEvents {
    /// Returns the next event; `None` once the connection is over. A subscriber that falls 64
    /// events behind loses the oldest: [`PathEvents::missed`] counts them.
    pub async fn next(&mut self) -> Option<PathUpdate> {
        loop {
            match self.receiver.recv().await {
                Ok(update) => return Some(update),
                Err(RecvError::Lagged(count)) => self.missed += count,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Returns the number of events lost because the subscriber was too slow.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Converts an IPv4-mapped address to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use weir_quic::PathEvent;

    use super::*;
    use crate::path_updates::{KEPT, PathEventSender};

    #[tokio::test]
    async fn a_slow_subscriber_loses_and_counts_the_oldest_events() {
        let mut announcer = PathEventSender::default();
        let mut events = PathEvents {
            receiver: announcer.subscribe(false),
            missed: 0,
        };
        let failed = |_| PathEvent::Failed {
            path: PathId::FIRST,
        };
        (0..KEPT + 3)
            .map(failed)
            .for_each(|event| announcer.send(PathUpdate::Event(event)));
        announcer.end();
        let mut heard = 0;
        while events.next().await.is_some() {
            heard += 1;
        }
        assert_eq!((heard, events.missed()), (KEPT, 3));
        assert!(announcer.subscribe(true).recv().await.is_err());
    }
}
