//! A server's path secrets, each with its replay window (`docs/known-peers.md`, sections 2 and 4).

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest;
use rustc_hash::FxHashMap;
use weir_units::{Duration, Time};

use super::window::ReplayWindow;
use super::{Abandonment, CredentialId, KeyId, PathSecret, Verdict};
use crate::crypto::Identity;

/// Engines look secrets up without a lock that all share.
const SHARDS: usize = 16;

/// How long a secret is still accepted after another one has replaced it.
const REPLACED: Duration = Duration::from_secs(30);

/// The limits of a server's path secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownClientsConfig {
    /// How long a secret is valid, at most until the client's certificate expires; an hour by
    /// default.
    pub lifetime: Duration,
    /// The key IDs of a secret that its replay window remembers; 1,024 by default.
    pub window: u32,
    /// The most secrets; 16,384 by default.
    pub capacity: usize,
    /// The most secrets of one client: of its certificate, or else of its IPv4 address or IPv6 /64
    /// network; 1,024 by default, as many processes of a host may have one address.
    pub per_client: usize,
}

impl Default for KnownClientsConfig {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(3600),
            window: 1024,
            capacity: 16 * 1024,
            per_client: 1024,
        }
    }
}

/// A server's path secrets, shared by the engines of an endpoint.
///
/// Times are since 1970, as for tokens: a connection's time plus
/// [`EndpointConfig::epoch`](crate::EndpointConfig::epoch).
pub struct KnownClients {
    config: KnownClientsConfig,
    /// Since when every secret that was ever stored is still here, in nanoseconds: since the endpoint
    /// began, or since the last one was removed.
    complete_since: AtomicU64,
    shards: [Mutex<Shard>; SHARDS],
    held: AtomicUsize,
    /// The number of secrets of each client.
    owners: Mutex<FxHashMap<Owner, usize>>,
    /// Which clients are still accepted, after a change of what a server accepts.
    accepts: Mutex<Option<Arc<Accepts>>>,
    accepted: AtomicU64,
    replays: AtomicU64,
    evicted: AtomicU64,
}

type Accepts = dyn Fn(&Identity) -> bool + Send + Sync;
type Shard = FxHashMap<CredentialId, Arc<KnownClient>>;

/// Counters of a server's known clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownClientsCounters {
    /// Secrets that are held.
    pub held: usize,
    /// Connections that began without a handshake.
    pub accepted: u64,
    /// First packets whose key ID was used, or before the window.
    pub replays: u64,
    /// Secrets removed to make room.
    pub evicted: u64,
}

/// The client that a secret belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Certificate([u8; 32]),
    Network(IpAddr),
}

impl Owner {
    fn of(identity: &Identity, address: IpAddr) -> Self {
        if let Some(certificate) = identity.peer_certificates.first() {
            let mut hash = [0; 32];
            hash.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
            return Self::Certificate(hash);
        }
        Self::Network(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << 64);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address => address,
        })
    }
}

/// What a handshake established about a client.
pub(crate) struct KnownClientRecord {
    pub(crate) secret: PathSecret,
    pub(crate) identity: Identity,
    /// The client's transport parameters, without those of one connection, encoded.
    pub(crate) peer_parameters: Box<[u8]>,
    /// Ours, in the same form.
    pub(crate) own_parameters: Box<[u8]>,
    /// The address from which the client completed the handshake.
    pub(crate) address: IpAddr,
}

/// A client with which the server shares a secret.
pub(crate) struct KnownClient {
    pub(crate) secret: PathSecret,
    pub(crate) identity: Identity,
    pub(crate) peer_parameters: Box<[u8]>,
    pub(crate) own_parameters: Box<[u8]>,
    owner: Owner,
    /// In nanoseconds since 1970.
    expires: AtomicU64,
    last_used: AtomicU64,
    state: Mutex<ClientState>,
}

struct ClientState {
    window: ReplayWindow,
    /// The address that was validated last.
    address: IpAddr,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KnownClient {
    fn state(&self) -> MutexGuard<'_, ClientState> {
        lock(&self.state)
    }

    /// Returns the state of a key ID.
    pub(crate) fn judge(&self, key_id: KeyId) -> Verdict {
        self.state().window.judge(key_id)
    }

    fn is_over(&self, now: Time) -> bool {
        now.as_nanos() >= self.expires.load(Ordering::Relaxed)
    }

    /// Whether the client's address was validated in an earlier connection.
    pub(crate) fn is_at(&self, address: IpAddr) -> bool {
        self.state().address == address
    }

    /// Records that the client receives our packets at this address.
    pub(crate) fn note_address(&self, address: IpAddr) {
        self.state().address = address;
    }
}

impl KnownClients {
    /// Creates a table for an endpoint that begins now.
    pub fn new(config: KnownClientsConfig, now: Time) -> Self {
        Self {
            config,
            complete_since: AtomicU64::new(now.as_nanos()),
            shards: Default::default(),
            held: AtomicUsize::new(0),
            owners: Mutex::default(),
            accepts: Mutex::default(),
            accepted: AtomicU64::new(0),
            replays: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> KnownClientsCounters {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        KnownClientsCounters {
            held: self.held.load(Ordering::Relaxed),
            accepted: count(&self.accepted),
            replays: count(&self.replays),
            evicted: count(&self.evicted),
        }
    }

    /// Returns for how long this endpoint has known every secret that it had stored. Who has a secret
    /// that it does not know has begun no connection here since then.
    pub(crate) fn memory(&self, now: Time) -> Duration {
        let since = self.complete_since.load(Ordering::Relaxed);
        now.since(Time::from_nanos(since))
    }

    fn note_removed(&self, now: Time) {
        self.complete_since
            .fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    fn shard(&self, id: &CredentialId) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::from(id.as_bytes()[0]) % SHARDS])
    }

    /// Stores a secret; returns its lifetime, or `None` if it would have none.
    pub(crate) fn add(&self, now: Time, record: KnownClientRecord) -> Option<Duration> {
        let KnownClientRecord {
            secret,
            identity,
            peer_parameters,
            own_parameters,
            address,
        } = record;
        let accepts = lock(&self.accepts).clone();
        if accepts.is_some_and(|accepts| !accepts(&identity)) {
            return None;
        }
        let mut expires = now + self.config.lifetime;
        if let Some(certificate) = identity.expires {
            expires = expires.min(certificate);
        }
        let lifetime = expires.since(now);
        // The frame has whole seconds.
        if lifetime < Duration::from_secs(1) || self.config.capacity == 0 {
            return None;
        }
        let id = secret.id();
        let client = Arc::new(KnownClient {
            owner: Owner::of(&identity, address),
            secret,
            identity,
            peer_parameters,
            own_parameters,
            expires: AtomicU64::new(expires.as_nanos()),
            last_used: AtomicU64::new(now.as_nanos()),
            state: Mutex::new(ClientState {
                window: ReplayWindow::new(self.config.window),
                address,
            }),
        });
        self.make_room(now, client.owner);
        *lock(&self.owners).entry(client.owner).or_default() += 1;
        self.held.fetch_add(1, Ordering::Relaxed);
        let replaced = self.shard(&id).insert(id, client);
        if let Some(replaced) = replaced {
            self.uncount(&replaced);
        }
        Some(lifetime)
    }

    /// Returns the client with this credential.
    pub(crate) fn find(&self, now: Time, id: &CredentialId) -> Option<Arc<KnownClient>> {
        let client = self.shard(id).get(id).cloned()?;
        if client.is_over(now) {
            self.remove(now, id);
            return None;
        }
        client.last_used.store(now.as_nanos(), Ordering::Relaxed);
        Some(client)
    }

    /// Whether the client's secret is still valid here.
    pub(crate) fn has(&self, now: Time, client: &KnownClient) -> bool {
        self.find(now, &client.secret.id()).is_some()
    }

    /// Uses a key ID up, if it is fresh.
    pub(crate) fn use_up(&self, client: &KnownClient, key_id: KeyId) -> Verdict {
        let verdict = client.state().window.mark(key_id);
        match verdict {
            Verdict::Fresh => &self.accepted,
            Verdict::Used | Verdict::TooOld => &self.replays,
        }
        .fetch_add(1, Ordering::Relaxed);
        verdict
    }

    /// Counts a First packet that was refused for its key ID.
    pub(crate) fn note_replay(&self) {
        self.replays.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes a key ID unusable for a client that has abandoned it.
    pub(crate) fn abandon(&self, now: Time, id: &CredentialId, key_id: KeyId) -> Abandonment {
        let Some(client) = self.find(now, id) else {
            return Abandonment::Unknown;
        };
        match client.state().window.mark(key_id) {
            Verdict::Fresh => Abandonment::Fresh,
            Verdict::Used | Verdict::TooOld => Abandonment::Used,
        }
    }

    /// Ends a secret that was replaced by another one, after the time that connections under way may
    /// need.
    pub(crate) fn replace(&self, now: Time, id: &CredentialId) {
        if let Some(client) = self.shard(id).get(id) {
            let end = (now + REPLACED).as_nanos();
            client.expires.fetch_min(end, Ordering::Relaxed);
        }
    }

    /// Accepts no clients any more for which `accepts` does not hold: their secrets end, and they get no
    /// further ones, not even to renew one on an open connection.
    pub fn restrict(&self, now: Time, accepts: impl Fn(&Identity) -> bool + Send + Sync + 'static) {
        let accepts: Arc<Accepts> = Arc::new(accepts);
        *lock(&self.accepts) = Some(accepts.clone());
        for shard in &self.shards {
            let clients: Vec<_> = lock(shard).values().cloned().collect();
            // Not under the lock: it may take long.
            for client in clients.iter().filter(|client| !accepts(&client.identity)) {
                self.remove(now, &client.secret.id());
            }
        }
    }

    /// Forgets all secrets: what was promised to their clients holds no more.
    pub fn clear(&self, now: Time) {
        self.note_removed(now);
        for shard in &self.shards {
            let removed = std::mem::take(&mut *lock(shard));
            removed.values().for_each(|client| self.uncount(client));
        }
    }

    fn remove(&self, now: Time, id: &CredentialId) {
        // First: who does not find the secret any more must see it.
        self.note_removed(now);
        let removed = self.shard(id).remove(id);
        if let Some(removed) = removed {
            self.uncount(&removed);
        }
    }

    fn uncount(&self, client: &KnownClient) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        let mut owners = lock(&self.owners);
        if let Some(count) = owners.get_mut(&client.owner) {
            *count -= 1;
            if *count == 0 {
                owners.remove(&client.owner);
            }
        }
    }

    /// Makes room for a secret of this client: expired secrets go first, then the client's own
    /// beyond its share, then those of the client that holds most, each time the least recently
    /// used.
    fn make_room(&self, now: Time, owner: Owner) {
        let is_full = || self.held.load(Ordering::Relaxed) >= self.config.capacity;
        let (own, most) = {
            let owners = lock(&self.owners);
            let own = owners.get(&owner).copied().unwrap_or(0);
            let most = || owners.iter().max_by_key(|(_, count)| **count);
            (own, is_full().then(most).flatten().map(|(most, _)| *most))
        };
        let from = if own >= self.config.per_client.max(1) {
            owner
        } else if let Some(most) = most {
            most
        } else {
            return;
        };
        let mut oldest: Option<(u64, CredentialId)> = None;
        for shard in &self.shards {
            let mut expired = Vec::new();
            lock(shard).retain(|id, client| {
                if client.is_over(now) {
                    self.note_removed(now);
                    expired.push(client.clone());
                    return false;
                }
                let used = client.last_used.load(Ordering::Relaxed);
                if client.owner == from && oldest.is_none_or(|(other, _)| used < other) {
                    oldest = Some((used, *id));
                }
                true
            });
            expired.iter().for_each(|client| self.uncount(client));
        }
        let counts = lock(&self.owners).get(&owner).copied().unwrap_or(0);
        let is_due = is_full() || counts >= self.config.per_client.max(1);
        if let Some((_, id)) = oldest.filter(|_| is_due) {
            self.evict(now, &id);
        }
    }

    fn evict(&self, now: Time, id: &CredentialId) {
        self.remove(now, id);
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for KnownClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownClients")
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
