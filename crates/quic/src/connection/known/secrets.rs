//! The secrets of later connections: a server offers them, a client keeps them
//! (`docs/known-peers.md`, section 2).

use weir_units::{Duration, Time};

use super::KnownRole;
use crate::Side;
use crate::TransportError;
use crate::connection::Connection;
use crate::connection::control_frames::PathKey;
use crate::connection::receive::violation;
use crate::crypto::Identity;
use crate::frame;
use crate::known_peers::{
    EXPORTER_LABEL, KnownClientRecord, KnownServer, PathSecret, refusal_token, spread_end,
};

/// A longer lifetime counts as this one: a year.
const MAX_LIFETIME: u64 = 366 * 24 * 3600;

impl Connection {
    /// Handles the confirmation of a client's handshake: a secret that did not work is given up, unless
    /// the server has offered another one, and the next handshake may begin.
    pub(in crate::connection) fn on_handshake_confirmed(&mut self) {
        self.known.permit = None;
        self.forget_abandoned();
    }

    /// Handles the end of a handshake: a server offers a secret.
    pub(in crate::connection) fn on_handshake_over(&mut self, now: Time) {
        if !matches!(self.known.role, KnownRole::Server(_)) {
            return;
        }
        let mut exported = [0; 32];
        if !self.peer.known_peers || !self.session.export(&mut exported, EXPORTER_LABEL, b"") {
            return;
        }
        let secret = PathSecret::from_exported(&exported);
        if let Some(offer) = self.offer(now, secret) {
            self.control.offer_secret(offer);
        }
    }

    /// Stores a secret of this connection's client; returns the offer to it.
    fn offer(&mut self, now: Time, secret: PathSecret) -> Option<frame::PathSecret> {
        let KnownRole::Server(clients) = &self.known.role else {
            return None;
        };
        let now = now + self.known.epoch;
        let id = secret.id();
        let record = KnownClientRecord {
            secret,
            identity: self.session.identity(),
            peer_parameters: self.peer.to_remembered(Side::Client),
            own_parameters: self.own_parameters().to_remembered(Side::Server),
            address: self.paths[0].remote.ip(),
        };
        let lifetime = clients.add(now, record)?;
        if let Some(old) = self.known.offered.replace(id) {
            clients.replace(now, &old);
        }
        Some(frame::PathSecret {
            lifetime: lifetime.as_nanos() / 1_000_000_000,
            refusal_token: refusal_token(&self.endpoint_keys.refusals, &id),
        })
    }

    /// Claims the renewal of the secret for this connection.
    ///
    /// # Errors
    /// When to try again; `None` for never.
    pub(in crate::connection) fn claim_renewal(&self, now: Time) -> Result<(), Option<Time>> {
        let (KnownRole::Client(servers), Some(client)) =
            (&self.known.role, &self.validation.client)
        else {
            return Err(None);
        };
        let epoch = self.known.epoch;
        let remote = self.paths[0].remote;
        servers
            .claim_renewal(now + epoch, &client.server_name, remote)
            .map_err(|later| later.map(|at| self.known.in_connection_time(at)))
    }

    /// Handles a PATH_KEY frame: the client renews the secret.
    pub(in crate::connection) fn on_path_key(
        &mut self,
        now: Time,
        key: &[u8; 32],
    ) -> Result<(), TransportError> {
        if !matches!(self.known.role, KnownRole::Server(_)) || !self.peer.known_peers {
            return Err(violation("PATH_KEY without known peers"));
        }
        if let Some((public, secret)) = self.answer_key(now, key)?
            && let Some(offer) = self.offer(now, secret)
        {
            self.control.send_key(PathKey::Answer(public, offer));
        }
        Ok(())
    }

    /// Handles a PATH_KEY_ANSWER frame.
    pub(in crate::connection) fn on_path_key_answer(
        &mut self,
        now: Time,
        key: &[u8; 32],
        offer: &frame::PathSecret,
    ) -> Result<(), TransportError> {
        if let Some(secret) = self.take_answered_key(key)? {
            self.keep_secret(now, secret, offer);
        }
        Ok(())
    }

    /// Handles a PATH_SECRET frame: the server remembers this client.
    pub(in crate::connection) fn on_path_secret(
        &mut self,
        now: Time,
        offer: &frame::PathSecret,
    ) -> Result<(), TransportError> {
        if !matches!(self.known.role, KnownRole::Client(_)) {
            return Err(violation("PATH_SECRET to an endpoint without known peers"));
        }
        let mut exported = [0; 32];
        if self.known.began_without_handshake()
            || !self.session.export(&mut exported, EXPORTER_LABEL, b"")
        {
            return Err(violation("PATH_SECRET without a handshake"));
        }
        if !std::mem::replace(&mut self.known.has_kept, true) {
            self.keep_secret(now, PathSecret::from_exported(&exported), offer);
        }
        Ok(())
    }

    /// Keeps a secret for later connections to this server.
    fn keep_secret(&mut self, now: Time, secret: PathSecret, offer: &frame::PathSecret) {
        let (KnownRole::Client(servers), Some(client)) =
            (&self.known.role, &self.validation.client)
        else {
            return;
        };
        let interval = servers.renewal_interval();
        let random = rand_core::Rng::next_u32(&mut self.rng);
        let renewal_due = (!interval.is_zero()).then(|| spread_end(now, interval, random));
        self.known.renewal.due = renewal_due;
        let now = now + self.known.epoch;
        let lifetime = Duration::from_secs(offer.lifetime.min(MAX_LIFETIME));
        let identity = Identity {
            resumed: true,
            ..self.session.identity()
        };
        let mut usable_until = spread_end(now, lifetime, random);
        if let Some(expires) = identity.expires {
            usable_until = usable_until.min(expires);
        }
        let parameters = (
            self.peer.to_remembered(Side::Server),
            self.own_parameters().to_remembered(Side::Client),
        );
        let server = KnownServer::new(
            secret,
            identity,
            parameters,
            offer.refusal_token,
            (usable_until, renewal_due.map(|due| due + self.known.epoch)),
        );
        servers.put(now, &client.server_name, self.paths[0].remote, server);
    }
}
