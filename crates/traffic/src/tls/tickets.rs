//! A client's store of session tickets, with a wait for the next one.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use tokio::sync::Notify;
use tokio::time::timeout;
use weir_units::Duration;

use crate::error::Error;

/// The session tickets of one client. A resumed connection consumes one.
#[derive(Debug)]
pub struct Tickets {
    cache: ClientSessionMemoryCache,
    available: AtomicUsize,
    arrived: Notify,
}

impl Default for Tickets {
    fn default() -> Self {
        Self {
            cache: ClientSessionMemoryCache::new(8),
            available: AtomicUsize::new(0),
            arrived: Notify::new(),
        }
    }
}

impl Tickets {
    /// Waits until a ticket is available.
    ///
    /// # Errors
    /// [`Error::NoTicket`] if none arrives within `limit`.
    pub async fn wait(&self, limit: Duration) -> Result<(), Error> {
        let arrived = async {
            while self.available.load(Ordering::Relaxed) == 0 {
                self.arrived.notified().await;
            }
        };
        timeout(limit.into(), arrived)
            .await
            .map_err(|_| Error::NoTicket(limit))
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.cache.set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.cache.kx_hint(server_name)
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.cache.set_tls12_session(server_name, value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.cache.tls12_session(server_name)
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        self.cache.remove_tls12_session(server_name);
    }

    fn insert_tls13_ticket(
        &self,
        server_name: ServerName<'static>,
        value: Tls13ClientSessionValue,
    ) {
        self.cache.insert_tls13_ticket(server_name, value);
        self.available.fetch_add(1, Ordering::Relaxed);
        self.arrived.notify_one();
    }

    fn take_tls13_ticket(
        &self,
        server_name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        let ticket = self.cache.take_tls13_ticket(server_name);
        if ticket.is_some() {
            // The cache drops tickets beyond its capacity, so the count may be too high but never
            // too low; it must not wrap.
            let _ = self
                .available
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        } else {
            self.available.store(0, Ordering::Relaxed);
        }
        ticket
    }
}
