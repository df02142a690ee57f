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
    /// network; 64 by default.
    pub per_client: usize,
}

impl Default for KnownClientsConfig {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(3600),
            window: 1024,
            capacity: 16 * 1024,
            per_client: 64,
        }
    }
}

/// A server's path secrets, shared by the engines of an endpoint.
///
/// Times are since 1970, as for tokens: a connection's time plus
/// [`EndpointConfig::epoch`](crate::EndpointConfig::epoch).
pub struct KnownClients {
    config: KnownClientsConfig,
    /// When this endpoint began.
    begun: Time,
    shards: [Mutex<Shard>; SHARDS],
    held: AtomicUsize,
    /// The number of secrets of each client.
    owners: Mutex<FxHashMap<Owner, usize>>,
    accepted: AtomicU64,
    replays: AtomicU64,
    evicted: AtomicU64,
}

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
            begun: now,
            shards: Default::default(),
            held: AtomicUsize::new(0),
            owners: Mutex::default(),
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

    /// Returns how long this endpoint has existed.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.begun)
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
            self.remove(id);
            return None;
        }
        client.last_used.store(now.as_nanos(), Ordering::Relaxed);
        Some(client)
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

    /// Forgets all secrets: what was promised to their clients holds no more.
    pub fn clear(&self) {
        for shard in &self.shards {
            let removed = std::mem::take(&mut *lock(shard));
            removed.values().for_each(|client| self.uncount(client));
        }
    }

    fn remove(&self, id: &CredentialId) {
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
            self.evict(&id);
        }
    }

    fn evict(&self, id: &CredentialId) {
        self.remove(id);
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
mod tests {
    use super::*;
    use crate::Side;
    use crate::transport_parameters::TransportParameters;

    const NOW: Time = Time::from_nanos(1_700_000_000_000_000_000);

    fn record(number: u32, address: IpAddr) -> KnownClientRecord {
        KnownClientRecord {
            secret: PathSecret::from_exported(&number.to_be_bytes()),
            identity: Identity::default(),
            peer_parameters: Box::default(),
            own_parameters: Box::default(),
            address,
        }
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_client_with_many_secrets_evicts_its_own_and_not_those_of_others() {
        let config = KnownClientsConfig {
            capacity: 10,
            per_client: 4,
            ..KnownClientsConfig::default()
        };
        let clients = KnownClients::new(config, NOW);
        let honest = record(0, address(1));
        let id = honest.secret.id();
        assert_eq!(clients.add(NOW, honest), Some(config.lifetime));
        for number in 1..100 {
            let later = NOW + Duration::from_millis(u64::from(number));
            clients.add(later, record(number, address(2)));
        }
        assert_eq!(clients.counters().held, 5);
        assert!(clients.find(NOW, &id).is_some());
    }

    #[test]
    fn a_full_table_takes_from_the_client_that_holds_most() {
        let config = KnownClientsConfig {
            capacity: 10,
            per_client: 100,
            ..KnownClientsConfig::default()
        };
        let clients = KnownClients::new(config, NOW);
        let honest = record(0, address(1));
        let id = honest.secret.id();
        clients.add(NOW, honest);
        for number in 1..50 {
            let later = NOW + Duration::from_millis(u64::from(number));
            clients.add(later, record(number, address(2)));
        }
        assert!(clients.find(NOW, &id).is_some());
        assert_eq!(clients.counters().held, 10);
        assert_eq!(clients.counters().evicted, 40);
    }

    #[test]
    fn a_secret_ends_with_its_lifetime_or_the_certificate() {
        let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
        let mut expiring = record(1, address(1));
        expiring.identity.expires = Some(NOW + Duration::from_secs(5));
        let id = expiring.secret.id();
        assert_eq!(clients.add(NOW, expiring), Some(Duration::from_secs(5)));
        assert!(clients.find(NOW + Duration::from_secs(4), &id).is_some());
        assert!(clients.find(NOW + Duration::from_secs(5), &id).is_none());
        assert_eq!(clients.counters().held, 0);
        let mut over = record(2, address(1));
        over.identity.expires = Some(NOW);
        assert_eq!(clients.add(NOW, over), None);
    }

    #[test]
    fn an_abandoned_key_id_cannot_be_used() {
        let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
        let record = record(1, address(1));
        let id = record.secret.id();
        clients.add(NOW, record);
        let client = clients.find(NOW, &id).unwrap();
        assert_eq!(clients.abandon(NOW, &id, 7), Abandonment::Fresh);
        assert_eq!(clients.use_up(&client, 7), Verdict::Used);
        assert_eq!(clients.use_up(&client, 8), Verdict::Fresh);
        assert_eq!(clients.abandon(NOW, &id, 8), Abandonment::Used);
        clients.clear();
        assert_eq!(clients.abandon(NOW, &id, 9), Abandonment::Unknown);
    }

    /// With what a handshake of this engine establishes, without a client's certificate.
    #[test]
    fn ten_thousand_clients_take_less_than_a_kilobyte_each() {
        const CLIENTS: u32 = 10_000;
        let parameters = |side| {
            let parameters = TransportParameters {
                initial_max_data: 1 << 22,
                initial_max_stream_data_bidi_local: 1 << 20,
                initial_max_stream_data_bidi_remote: 1 << 20,
                initial_max_stream_data_uni: 1 << 20,
                initial_max_streams_bidi: 1024,
                initial_max_streams_uni: 1024,
                max_idle_timeout: Duration::from_secs(30),
                max_ack_delay: Duration::from_millis(8),
                min_ack_delay: Some(Duration::from_micros(50)),
                fine_max_ack_delay: Some(Duration::from_micros(500)),
                ..TransportParameters::default()
            };
            parameters.to_remembered(side)
        };
        let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
        let used = allocation_counter::measure(|| {
            for number in 0..CLIENTS {
                let mut record = record(number, IpAddr::from(number.to_be_bytes()));
                record.identity.application_protocol = Some(b"weir".to_vec());
                record.identity.server_name = Some("server.example".to_owned());
                record.peer_parameters = parameters(Side::Client);
                record.own_parameters = parameters(Side::Server);
                clients.add(NOW, record);
            }
        });
        assert_eq!(clients.counters().held, CLIENTS as usize);
        let each = used.bytes_current / i64::from(CLIENTS);
        assert!((300..=1024).contains(&each), "{each} bytes");
    }

    #[test]
    fn ipv6_clients_of_a_network_are_one() {
        let one = Owner::of(&Identity::default(), "2001:db8::1".parse().unwrap());
        let other = Owner::of(&Identity::default(), "2001:db8::2:3".parse().unwrap());
        let far = Owner::of(&Identity::default(), "2001:db8:1::1".parse().unwrap());
        assert_eq!(one, other);
        assert_ne!(one, far);
    }
}
