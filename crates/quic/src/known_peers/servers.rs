//! A client's path secrets, by server (`docs/known-peers.md`, section 2).

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use weir_units::{Duration, Time};

use super::secret::tags_are_equal;
use super::{KeyId, MOST_KEY_IDS, PathSecret, Refusal, RefusalKind};
use crate::crypto::Identity;

/// A client's path secrets, shared by connections with the same credentials.
///
/// A server can link the connections of one secret, as it can link those of one session. To
/// prevent that, give the connections no store, or different ones.
pub struct KnownServers {
    capacity: usize,
    renewal_interval: Duration,
    handshakes: AtomicUsize,
    servers: Mutex<FxHashMap<Name, Arc<KnownServer>>>,
    begun: AtomicU64,
    proved_refusals: AtomicU64,
    hints: AtomicU64,
}

/// How long a connection may take to renew a secret before another one looks again.
const CLAIMED: Duration = Duration::from_secs(60);

/// How long an answer shows that the network carries connections without a handshake.
const RECENTLY: Duration = Duration::from_secs(60);

/// A server that was not heard of for this time may have been replaced by one without known peers. The
/// next First packet is so large that such a server answers it.
const FRESH: Duration = Duration::from_secs(1);

/// The most full handshakes at once of connections whose secret was refused. A client with many calls
/// under way to a server that restarts would otherwise begin as many.
const HANDSHAKES: usize = 32;
/// The most of them for one secret.
const HANDSHAKES_OF_ONE: usize = 2;

/// The right of a connection whose secret was refused to a full handshake.
pub(crate) struct HandshakePermit(Arc<KnownServer>, Arc<KnownServers>);

impl HandshakePermit {
    /// Takes one; `None` while too many are taken.
    pub(crate) fn take(server: &Arc<KnownServer>, servers: &Arc<KnownServers>) -> Option<Self> {
        if !take_one(&server.handshakes, HANDSHAKES_OF_ONE) {
            return None;
        }
        if !take_one(&servers.handshakes, HANDSHAKES) {
            server.handshakes.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(server.clone(), servers.clone()))
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        self.0.handshakes.fetch_sub(1, Ordering::Relaxed);
        self.1.handshakes.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take_one(taken: &AtomicUsize, most: usize) -> bool {
    let free = |taken| (taken < most).then_some(taken + 1);
    taken
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, free)
        .is_ok()
}

/// Counters of a client's known servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownServersCounters {
    /// Secrets that are held.
    pub held: usize,
    /// Connections that began without a handshake.
    pub begun: u64,
    /// Of these, connections that the server has refused, by its own proof: each became a full
    /// handshake.
    pub proved_refusals: u64,
    /// Of these, connections that became a full handshake without a proof: a server that has
    /// restarted, one that is silent or has no known peers, or a forged packet.
    pub hints: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    name: Arc<str>,
    address: SocketAddr,
}

impl Name {
    fn new(name: &Arc<str>, address: SocketAddr) -> Self {
        Self {
            name: name.clone(),
            address,
        }
    }
}

/// A server with which the client shares a secret.
pub(crate) struct KnownServer {
    pub(crate) secret: PathSecret,
    pub(crate) identity: Identity,
    /// The server's transport parameters, without those of one connection, encoded.
    pub(crate) peer_parameters: Box<[u8]>,
    /// Ours, in the same form.
    pub(crate) own_parameters: Box<[u8]>,
    /// With it the server proves that it has lost the secret.
    pub(crate) refusal_token: [u8; 16],
    /// Until when connections begin with it.
    usable_until: Time,
    /// When an open connection is to renew it; `None` for never.
    pub(crate) renewal_due: Option<Time>,
    /// Whether a connection renews it now.
    is_being_renewed: AtomicBool,
    /// Handshakes under way because it was refused.
    handshakes: AtomicUsize,
    /// Since when the server has not known it, in nanoseconds since 1970, as the server has said in a
    /// handshake.
    lost_since: AtomicU64,
    /// When the server last answered a connection without a handshake, with this secret or an earlier one, in
    /// nanoseconds since 1970; zero for never.
    last_answer: AtomicU64,
    /// When the server last gave the secret or answered, or was last asked, in nanoseconds since 1970.
    last_heard: AtomicU64,
    next_key_id: AtomicU64,
    last_used: AtomicU64,
}

impl KnownServer {
    pub(crate) fn new(
        secret: PathSecret,
        identity: Identity,
        (peer_parameters, own_parameters): (Box<[u8]>, Box<[u8]>),
        refusal_token: [u8; 16],
        (usable_until, renewal_due): (Time, Option<Time>),
    ) -> Self {
        Self {
            secret,
            identity,
            peer_parameters,
            own_parameters,
            refusal_token,
            usable_until,
            renewal_due,
            is_being_renewed: AtomicBool::new(false),
            handshakes: AtomicUsize::new(0),
            lost_since: AtomicU64::new(u64::MAX),
            last_answer: AtomicU64::new(0),
            last_heard: AtomicU64::new(0),
            next_key_id: AtomicU64::new(0),
            last_used: AtomicU64::new(0),
        }
    }

    /// Records that the server has answered a connection without a handshake.
    pub(crate) fn note_answer(&self, now: Time) {
        self.last_answer
            .fetch_max(now.as_nanos(), Ordering::Relaxed);
        self.note_heard(now);
    }

    fn note_heard(&self, now: Time) {
        self.last_heard.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    /// Whether a connection is to find out if the server still has known peers: one at a time, where it
    /// was not heard of lately.
    pub(crate) fn is_to_be_asked(&self, now: Time) -> bool {
        let last = self.last_heard.load(Ordering::Relaxed);
        let is_due = now.since(Time::from_nanos(last)) >= FRESH;
        if is_due {
            self.note_heard(now);
        }
        is_due
    }

    /// Whether the server has lately answered a connection without a handshake: the network carries them.
    pub(crate) fn has_answered(&self, now: Time) -> bool {
        let last = self.last_answer.load(Ordering::Relaxed);
        last > 0 && now.since(Time::from_nanos(last)) < RECENTLY
    }

    /// Records that the server has not known the secret since this time.
    pub(crate) fn note_lost(&self, since: Time) {
        self.lost_since
            .fetch_min(since.as_nanos(), Ordering::Relaxed);
    }

    /// Whether the server cannot have accepted a packet that was first sent at this time.
    pub(crate) fn was_lost_at(&self, time: Time) -> bool {
        time.as_nanos() > self.lost_since.load(Ordering::Relaxed)
    }

    /// Draws the key ID of a connection. Call it when its first datagram is sent, never before.
    pub(crate) fn draw_key_id(&self) -> KeyId {
        self.next_key_id.fetch_add(1, Ordering::Relaxed)
    }

    fn is_usable(&self, now: Time) -> bool {
        now < self.usable_until && self.next_key_id.load(Ordering::Relaxed) < MOST_KEY_IDS
    }

    /// Whether the server's tag proves a refusal of this key ID.
    pub(crate) fn is_proved(&self, refusal: &Refusal, key_id: KeyId) -> bool {
        let expected = match refusal.kind {
            RefusalKind::Unknown => self.refusal_token,
            kind => self.secret.refusal_tag(kind, key_id),
        };
        tags_are_equal(&expected, &refusal.tag)
    }
}

impl KnownServers {
    /// Creates a store for this many servers.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            renewal_interval: Duration::from_secs(600),
            handshakes: AtomicUsize::new(0),
            servers: Mutex::default(),
            begun: AtomicU64::new(0),
            proved_refusals: AtomicU64::new(0),
            hints: AtomicU64::new(0),
        }
    }

    /// Sets after which time an open connection renews the secret; 10 minutes by default, zero for
    /// never.
    pub fn with_renewal_interval(self, renewal_interval: Duration) -> Self {
        Self {
            renewal_interval,
            ..self
        }
    }

    pub(crate) fn renewal_interval(&self) -> Duration {
        self.renewal_interval
    }

    /// Returns the counters.
    pub fn counters(&self) -> KnownServersCounters {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        KnownServersCounters {
            held: self.servers().len(),
            begun: count(&self.begun),
            proved_refusals: count(&self.proved_refusals),
            hints: count(&self.hints),
        }
    }

    /// Forgets all secrets: the next connection to each server has a full handshake.
    pub fn clear(&self) {
        self.servers().clear();
    }

    fn servers(&self) -> MutexGuard<'_, FxHashMap<Name, Arc<KnownServer>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the secret for a connection to this server now, since 1970.
    pub(crate) fn find(
        &self,
        now: Time,
        name: &Arc<str>,
        address: SocketAddr,
    ) -> Option<Arc<KnownServer>> {
        let key = Name::new(name, address);
        let mut servers = self.servers();
        let server = servers.get(&key)?;
        if !server.is_usable(now) {
            servers.remove(&key);
            return None;
        }
        server.last_used.store(now.as_nanos(), Ordering::Relaxed);
        let server = server.clone();
        drop(servers);
        self.begun.fetch_add(1, Ordering::Relaxed);
        Some(server)
    }

    /// Returns the secret of a server that has replaced this one.
    pub(crate) fn newer(
        &self,
        name: &Arc<str>,
        address: SocketAddr,
        old: &Arc<KnownServer>,
    ) -> Option<Arc<KnownServer>> {
        let key = Name::new(name, address);
        let current = self.servers().get(&key).cloned();
        current.filter(|current| !Arc::ptr_eq(current, old))
    }

    /// Stores the secret that a handshake has established, instead of an earlier one.
    pub(crate) fn put(&self, now: Time, name: &Arc<str>, address: SocketAddr, server: KnownServer) {
        if self.capacity == 0 {
            return;
        }
        server.last_used.store(now.as_nanos(), Ordering::Relaxed);
        server.note_heard(now);
        let key = Name::new(name, address);
        let mut servers = self.servers();
        if servers.len() >= self.capacity && !servers.contains_key(&key) {
            let used = |server: &KnownServer| server.last_used.load(Ordering::Relaxed);
            let oldest = servers.iter().min_by_key(|(_, server)| used(server));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                servers.remove(&oldest);
            }
        }
        if let Some(earlier) = servers.get(&key) {
            let last = earlier.last_answer.load(Ordering::Relaxed);
            server.last_answer.fetch_max(last, Ordering::Relaxed);
        }
        servers.insert(key, Arc::new(server));
    }

    /// Forgets this secret of a server, if it is still the one in use.
    pub(crate) fn forget(&self, name: &Arc<str>, address: SocketAddr, server: &Arc<KnownServer>) {
        let key = Name::new(name, address);
        let mut servers = self.servers();
        if servers
            .get(&key)
            .is_some_and(|held| Arc::ptr_eq(held, server))
        {
            servers.remove(&key);
        }
    }

    /// Claims the renewal of a server's secret for one connection.
    ///
    /// # Errors
    /// When to try again, if it is not due, or another connection renews it; `None` for never.
    pub(crate) fn claim_renewal(
        &self,
        now: Time,
        name: &Arc<str>,
        address: SocketAddr,
    ) -> Result<(), Option<Time>> {
        let Some(server) = self.servers().get(&Name::new(name, address)).cloned() else {
            return Ok(());
        };
        if server.renewal_due.is_none_or(|due| now < due) {
            return Err(server.renewal_due);
        }
        if server.is_being_renewed.swap(true, Ordering::Relaxed) {
            return Err(Some(now + CLAIMED));
        }
        Ok(())
    }

    /// Counts a connection that becomes a full handshake.
    pub(crate) fn note_refusal(&self, is_proved: bool) {
        let counter = if is_proved {
            &self.proved_refusals
        } else {
            &self.hints
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a time up to a tenth of `span` before its end, `random` of 2^32, so that clients that met a
/// server together do not return together.
pub(crate) fn spread_end(now: Time, span: Duration, random: u32) -> Time {
    let tenth = span.as_nanos() / 10;
    let early = (u128::from(tenth) * u128::from(random)) >> 32;
    now + Duration::from_nanos(span.as_nanos() - early as u64)
}

impl fmt::Debug for KnownServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownServers")
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1_700_000_000_000_000_000);

    fn server(number: u8, usable_until: Time) -> KnownServer {
        let secret = PathSecret::from_exported(&[number]);
        let parameters = (Box::default(), Box::default());
        KnownServer::new(
            secret,
            Identity::default(),
            parameters,
            [number; 16],
            (usable_until, None),
        )
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn a_secret_is_usable_until_its_time_and_its_last_key_id() {
        let servers = KnownServers::new(4);
        let until = NOW + Duration::from_secs(10);
        servers.put(NOW, &"a".into(), address(1), server(1, until));
        let found = servers.find(NOW, &"a".into(), address(1)).unwrap();
        assert!(servers.find(NOW, &"b".into(), address(1)).is_none());
        assert!(servers.find(NOW, &"a".into(), address(2)).is_none());
        found.next_key_id.store(MOST_KEY_IDS, Ordering::Relaxed);
        assert!(servers.find(NOW, &"a".into(), address(1)).is_none());
        servers.put(NOW, &"a".into(), address(1), server(2, until));
        assert!(servers.find(until, &"a".into(), address(1)).is_none());
        assert_eq!(servers.counters().held, 0);
    }

    #[test]
    fn the_least_recently_used_secret_makes_room() {
        let servers = KnownServers::new(2);
        let until = NOW + Duration::from_secs(10);
        let at = |seconds| NOW + Duration::from_secs(seconds);
        servers.put(at(0), &"a".into(), address(1), server(1, until));
        servers.put(at(1), &"a".into(), address(2), server(2, until));
        assert!(servers.find(at(2), &"a".into(), address(1)).is_some());
        servers.put(at(3), &"a".into(), address(3), server(3, until));
        assert!(servers.find(at(3), &"a".into(), address(2)).is_none());
        assert!(servers.find(at(3), &"a".into(), address(1)).is_some());
    }

    #[test]
    fn only_the_secret_that_was_refused_is_forgotten() {
        let servers = KnownServers::new(2);
        let until = NOW + Duration::from_secs(10);
        servers.put(NOW, &"a".into(), address(1), server(1, until));
        let old = servers.find(NOW, &"a".into(), address(1)).unwrap();
        servers.put(NOW, &"a".into(), address(1), server(2, until));
        servers.forget(&"a".into(), address(1), &old);
        let new = servers.find(NOW, &"a".into(), address(1)).unwrap();
        servers.forget(&"a".into(), address(1), &new);
        assert!(servers.find(NOW, &"a".into(), address(1)).is_none());
    }

    #[test]
    fn a_server_that_was_not_heard_of_is_asked_once() {
        let servers = KnownServers::new(2);
        let at = |millis| NOW + Duration::from_millis(millis);
        servers.put(NOW, &"a".into(), address(1), server(1, at(60_000)));
        let server = servers.find(NOW, &"a".into(), address(1)).unwrap();
        assert!(!server.is_to_be_asked(at(999)));
        assert!(server.is_to_be_asked(at(1000)));
        assert!(!server.is_to_be_asked(at(1001)));
        assert!(server.is_to_be_asked(at(2000)));
        server.note_answer(at(2500));
        assert!(!server.is_to_be_asked(at(3499)));
        assert!(server.is_to_be_asked(at(3500)));
    }

    #[test]
    fn ends_are_spread_over_the_last_tenth() {
        let lifetime = Duration::from_secs(1000);
        assert_eq!(spread_end(NOW, lifetime, 0), NOW + lifetime);
        let earliest = spread_end(NOW, lifetime, u32::MAX);
        assert!(earliest >= NOW + Duration::from_secs(900));
        assert!(earliest < NOW + Duration::from_secs(901));
    }
}
