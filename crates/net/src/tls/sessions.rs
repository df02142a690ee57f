//! A server's session cache for resumption.
//!
//! Each session is valid for one resumption, which early data depend on (RFC 8446, section 8.1).
//! New sessions evict the oldest. Insertion and removal take constant time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::server::StoresServerSessions;

pub(super) struct Sessions {
    capacity: usize,
    kept: Mutex<StoredSession>,
}

#[derive(Default)]
struct StoredSession {
    sessions: HashMap<Vec<u8>, Vec<u8>>,
    /// Keys in insertion order; a used session's key stays until it would be evicted.
    order: VecDeque<Vec<u8>>,
}

impl Sessions {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, StoredSession> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let mut kept = self.kept();
        kept.order.push_back(key.clone());
        kept.sessions.insert(key, value);
        while kept.order.len() > self.capacity {
            if let Some(oldest) = kept.order.pop_front() {
                kept.sessions.remove(&oldest);
            }
        }
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept().sessions.get(key).cloned()
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept().sessions.remove(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("kept", &self.kept().sessions.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_used_once_and_the_oldest_is_evicted() {
        let sessions = Sessions::new(3);
        for key in 1..=5u8 {
            assert!(sessions.put(vec![key], vec![key, key]));
        }
        assert_eq!(sessions.get(&[2]), None);
        assert_eq!(sessions.take(&[4]), Some(vec![4, 4]));
        assert_eq!(sessions.take(&[4]), None);
        sessions.put(vec![6], vec![6]);
        assert_eq!(sessions.get(&[3]), None);
        assert_eq!(sessions.get(&[5]), Some(vec![5, 5]));
        assert_eq!(sessions.kept().order.len(), 3);
    }
}
