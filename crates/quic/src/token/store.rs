//! A client's tokens for its next connections.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Version;

/// A longer token is not stored: it would take too much of the first packet.
const LONGEST_TOKEN: usize = 512;
/// The most tokens of one server, which may be hostile.
const MOST_OF_A_SERVER: usize = 8;

/// Stores the tokens that servers send in NEW_TOKEN frames, each for one connection.
///
/// With a token a server trusts the client's address from the first packet on, and need neither
/// validate it nor limit its answer (RFC 9000, section 8.1.3). A token also shows the server that
/// two connections come from one client. To prevent that, give the connections no store, or
/// different ones.
///
/// The store never holds more tokens than its capacity, of up to 512 bytes each; it drops the
/// oldest.
pub struct TokenStore {
    capacity: usize,
    /// In order of arrival.
    kept: Mutex<VecDeque<StoredToken>>,
}

struct StoredToken {
    server: Server,
    token: Vec<u8>,
}

#[derive(PartialEq, Eq)]
struct Server {
    name: String,
    address: SocketAddr,
    version: Version,
}

impl TokenStore {
    /// Creates a store for this many tokens.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            kept: Mutex::default(),
        }
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.kept().len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores a token of this server.
    pub(crate) fn put(&self, name: &str, address: SocketAddr, version: Version, token: &[u8]) {
        if token.len() > LONGEST_TOKEN {
            return;
        }
        let server = Server {
            name: name.to_owned(),
            address,
            version,
        };
        let mut kept = self.kept();
        let of_server = |kept: &VecDeque<StoredToken>| {
            let same = kept.iter().filter(|other| other.server == server);
            same.count()
        };
        if of_server(&kept) >= MOST_OF_A_SERVER
            && let Some(oldest) = kept.iter().position(|other| other.server == server)
        {
            kept.remove(oldest);
        }
        kept.push_back(StoredToken {
            server,
            token: token.to_vec(),
        });
        while kept.len() > self.capacity {
            kept.pop_front();
        }
    }

    /// Removes and returns the newest token of this server.
    pub(crate) fn take(
        &self,
        name: &str,
        address: SocketAddr,
        version: Version,
    ) -> Option<Vec<u8>> {
        let server = Server {
            name: name.to_owned(),
            address,
            version,
        };
        let mut kept = self.kept();
        let newest = kept.iter().rposition(|other| other.server == server)?;
        kept.remove(newest).map(|kept| kept.token)
    }

    /// Forgets the tokens of this server.
    pub(crate) fn forget(&self, name: &str, address: SocketAddr) {
        let is_other =
            |kept: &StoredToken| kept.server.name != name || kept.server.address != address;
        self.kept().retain(is_other);
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<StoredToken>> {
        // The list is consistent after every operation, so a panic in another thread does not
        // matter.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenStore")
            .field("kept", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn a_token_is_keyed_by_name_address_and_version_and_used_once() {
        let store = TokenStore::new(10);
        store.put("a", address(1), Version::V1, b"old");
        store.put("a", address(1), Version::V1, b"new");
        assert_eq!(store.take("b", address(1), Version::V1), None);
        assert_eq!(store.take("a", address(2), Version::V1), None);
        assert_eq!(store.take("a", address(1), Version::V2), None);
        let take = || store.take("a", address(1), Version::V1);
        assert_eq!(take().unwrap(), b"new");
        assert_eq!(take().unwrap(), b"old");
        assert_eq!(take(), None);
    }

    #[test]
    fn the_tokens_of_one_server_are_forgotten() {
        let store = TokenStore::new(10);
        store.put("a", address(1), Version::V1, b"1");
        store.put("a", address(1), Version::V2, b"2");
        store.put("a", address(2), Version::V1, b"3");
        store.put("b", address(1), Version::V1, b"4");
        store.forget("a", address(1));
        assert_eq!(store.len(), 2);
        assert!(store.take("a", address(2), Version::V1).is_some());
        assert!(store.take("b", address(1), Version::V1).is_some());
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_tokens() {
        let store = TokenStore::new(20);
        for index in 0..100 {
            store.put("a", address(1), Version::V1, &[index]);
            store.put("a", address(1), Version::V1, &[0; LONGEST_TOKEN + 1]);
        }
        assert_eq!(store.len(), MOST_OF_A_SERVER);
        for port in 1..100 {
            store.put("a", address(port), Version::V1, b"token");
        }
        assert_eq!(store.len(), 20);
    }
}
