//! The paths of a connection: lookup, standby paths and migration (RFC 9000, section 9).
//!
//! The first path of the list is in use. A client keeps a standby path for each further local
//! address: it is validated in advance, has its own connection ID, and is probed again at
//! intervals. A server learns of paths from the packets that arrive over them, validates them, and
//! follows the client to the path that it uses.

use std::net::SocketAddr;

use rand_core::Rng;
use weir_congestion::Context;
use weir_units::{Duration, Time};

use super::packet_builder::SMALLEST_ROOM;
use super::{Connection, path_config};
use crate::event::Event;
use crate::observe::Observation;
use crate::path::{MoveCause, PathError, PathEvent};
use crate::path::{Path, ValidationStatus};
use crate::recovery::SentPacket;
use crate::{PathEndpoints, PathId, Side, Space};

/// The most paths that are kept. It bounds the state that a client with ever new addresses can
/// create on a server.
const MAX_PATHS: usize = 8;
/// A validation attempt lasts this many probe timeouts (RFC 9000, section 8.2.4).
const ATTEMPT: u64 = 3;
/// The largest exponent of the pause, which doubles, before a failed path is tried again.
const MAX_BACKOFF: u32 = 5;

/// The origin of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramMeta {
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    /// Its UDP payload in bytes.
    pub(super) length: usize,
    /// The path; `None` for new addresses.
    pub(super) path: Option<PathId>,
}

/// State of the paths that no single path holds.
#[derive(Debug)]
pub(super) struct PathTable {
    next_id: u32,
    /// Local addresses to keep paths from (clients only).
    locals: Vec<SocketAddr>,
    /// A challenge or a response may be due on some path.
    pub(super) probing: bool,
    /// The largest number of a non-probing packet.
    pub(super) largest_non_probing: Option<u64>,
    /// Whether the application sent or received anything since standby paths were last asked.
    pub(super) used: bool,
    /// The local address at the start of the connection.
    pub(super) preferred: Option<SocketAddr>,
    /// The path to the server's preferred address, until it is in use.
    to_preferred: Option<PathId>,
}

impl PathTable {
    pub(super) fn new(local: Option<SocketAddr>) -> Self {
        Self {
            next_id: 1,
            locals: Vec::new(),
            probing: false,
            largest_non_probing: None,
            used: false,
            preferred: local,
            to_preferred: None,
        }
    }
}

/// Client operations.
impl Connection {
    /// Adds a local address (clients only). A standby path from it opens as soon as the handshake
    /// is confirmed and the server has issued a connection ID for it.
    pub fn add_local_address(&mut self, now: Time, local: SocketAddr) {
        if self.side.is_client() && !self.table.locals.contains(&local) {
            self.table.locals.push(local);
            self.want_spare_ids();
            self.open_standby_paths(now);
        }
    }

    /// Removes a local address and all paths from it. If the path in use is one of them, the
    /// connection moves to the best other path; if there is none, packets are still sent.
    pub fn remove_local_address(&mut self, now: Time, local: SocketAddr) {
        self.table.locals.retain(|known| *known != local);
        if self.paths[0].local == Some(local)
            && let Some(best) = self.best_standby()
        {
            self.activate(now, best, MoveCause::AddressGone);
        }
        while let Some(index) =
            (1..self.paths.len()).find(|&index| self.paths[index].local == Some(local))
        {
            self.close_path(now, index);
        }
    }

    /// Changes the local address of the path in use, unknown to the peer: after a virtual machine's
    /// move or the end of a lease. The connection uses the new address at once and validates it.
    ///
    /// # Errors
    /// [`PathError`] where the peer forbids it, or before the handshake is confirmed.
    pub fn rebind(&mut self, now: Time, local: SocketAddr) -> Result<(), PathError> {
        self.check_migration()?;
        self.want_spare_ids();
        let old = self.paths[0].local;
        if old == Some(local) {
            return Ok(());
        }
        let known = (1..self.paths.len()).find(|&index| self.paths[index].local == Some(local));
        let index = match known {
            Some(index) => index,
            None => {
                self.evict_path(now);
                let path = self.new_path(self.paths[0].remote, Some(local));
                // Without a spare ID it keeps the one in use, as behind a NAT.
                self.remote_ids.assign(path.id);
                self.keep_path(now, path)
            }
        };
        for known in &mut self.table.locals {
            if Some(*known) == old {
                *known = local;
            }
        }
        if self.table.preferred == old {
            self.table.preferred = Some(local);
        }
        self.activate(now, index, MoveCause::LocalAddress);
        while let Some(gone) = (1..self.paths.len()).find(|&index| self.paths[index].local == old) {
            self.close_path(now, gone);
        }
        // The attempt to reach the server's preferred address used the old address.
        if self.table.to_preferred.take().is_some() {
            self.try_preferred_address(now);
        }
        Ok(())
    }

    /// Moves to another path of the connection (clients only).
    ///
    /// # Errors
    /// [`PathError`] where there is no such path or it was not validated, where the peer forbids
    /// it, or before the handshake is confirmed.
    pub fn move_to(&mut self, now: Time, path: PathId, cause: MoveCause) -> Result<(), PathError> {
        self.check_migration()?;
        let index = self.index_of(path).ok_or(PathError::Unknown(path))?;
        if !self.paths[index].validated {
            return Err(PathError::NotValidated(path));
        }
        if index > 0 {
            self.activate(now, index, cause);
        }
        Ok(())
    }

    pub(super) fn check_migration(&self) -> Result<(), PathError> {
        if self.side == Side::Server {
            return Err(PathError::NotClient);
        }
        if !self.handshake.confirmed {
            return Err(PathError::NotConfirmed);
        }
        if self.peer.disable_active_migration {
            return Err(PathError::Forbidden);
        }
        Ok(())
    }
}

/// Opening and closing of paths.
impl Connection {
    /// Returns the index of the path between these addresses. A client's own address may change
    /// without its knowledge: datagrams from the server's address then belong to the path in use.
    #[inline]
    pub(super) fn find_path(&self, remote: SocketAddr, local: Option<SocketAddr>) -> Option<usize> {
        if self.paths[0].joins(remote, local) {
            return Some(0);
        }
        self.find_other_path(remote, local)
    }

    #[cold]
    fn find_other_path(&self, remote: SocketAddr, local: Option<SocketAddr>) -> Option<usize> {
        let others = || self.paths.iter().enumerate().skip(1);
        others()
            .find(|(_, path)| path.joins(remote, local))
            .map(|(index, _)| index)
            .or_else(|| {
                let same = self.side.is_client() && self.paths[0].remote == remote;
                same.then_some(0)
            })
    }

    /// Returns the index of a path; frames may have moved or closed it.
    pub(super) fn index_of(&self, path: PathId) -> Option<usize> {
        self.paths.iter().position(|known| known.id == path)
    }

    /// Whether a packet from a new address is processed.
    pub(super) fn accepts_new_addresses(&self) -> bool {
        self.side == Side::Server && self.handshake.confirmed && self.config.allow_migration
    }

    /// Adds a path for an authentic packet from a new address.
    pub(super) fn add_peer_path(&mut self, now: Time, arrival: &DatagramMeta) -> usize {
        self.evict_path(now);
        let mut path = self.new_path(arrival.remote, arrival.local);
        path.on_datagram_received(arrival.length);
        self.remote_ids.assign(path.id);
        let index = self.keep_path(now, path);
        self.begin_validation(now, index);
        index
    }

    fn new_path(&mut self, remote: SocketAddr, local: Option<SocketAddr>) -> Path {
        let id = PathId(self.table.next_id);
        self.table.next_id += 1;
        let context = Context {
            packet_size: self.expected_size(local, remote),
            seed: self.rng.next_u64(),
            is_paced: self.config.pacing,
        };
        let ends = PathEndpoints { local, remote };
        let controller = self.config.congestion.build(&ends, &context);
        let config = path_config(&self.config, self.side);
        let mut path = Path::new(id, remote, local, controller, &config).with_cap(self.window_cap);
        path.set_receive_buffer(self.peer.receive_burst);
        path
    }

    /// Adds a path to the list; returns its index.
    fn keep_path(&mut self, now: Time, path: Path) -> usize {
        self.report(now, &Observation::PathOpened(&path.addresses()));
        self.paths.push(path);
        self.paths.len() - 1
    }

    /// Closes the least valuable path if there is no room for another one.
    fn evict_path(&mut self, now: Time) {
        if self.paths.len() < MAX_PATHS {
            return;
        }
        let least = (1..self.paths.len()).min_by_key(|&index| {
            let path = &self.paths[index];
            (path.validated, path.standby.answered_at)
        });
        if let Some(index) = least {
            self.close_path(now, index);
        }
    }

    fn close_path(&mut self, now: Time, index: usize) {
        let path = self.paths.remove(index);
        self.counters.left.add(&path);
        self.remote_ids.release(path.id);
        self.emit_path_event(now, PathEvent::Closed { path: path.id });
        if let Some(monitor) = &mut self.monitor {
            monitor.on_path_failed(path.id);
        }
        self.note_standby(now);
    }

    /// Opens the missing standby paths of a client.
    pub(super) fn open_standby_paths(&mut self, now: Time) {
        if self.table.locals.is_empty() || self.check_migration().is_err() {
            return;
        }
        let remote = self.paths[0].remote;
        for index in 0..self.table.locals.len() {
            let local = self.table.locals[index];
            let exists = self
                .paths
                .iter()
                .any(|path| path.local == Some(local) && path.remote == remote);
            let same_family = local.is_ipv4() == remote.is_ipv4();
            if !exists && same_family && self.paths.len() < MAX_PATHS {
                self.open_path(now, remote, Some(local));
            }
        }
    }

    /// Opens a path and validates it; `None` if the peer has issued no ID for it.
    fn open_path(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
    ) -> Option<usize> {
        let mut path = self.new_path(remote, local);
        path.validated = false;
        let ids = &mut self.remote_ids;
        if !ids.are_empty() && !ids.assign(path.id) {
            return None;
        }
        let index = self.keep_path(now, path);
        self.begin_validation(now, index);
        self.note_standby(now);
        Some(index)
    }

    /// Starts validation of the server's preferred address; the connection moves there if it
    /// succeeds (RFC 9000, section 9.6.2).
    pub(super) fn try_preferred_address(&mut self, now: Time) {
        let Some(preferred) = &self.peer.preferred_address else {
            return;
        };
        self.spare_ids_wanted = true;
        let used = &self.paths[0];
        let remote = match used.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.ipv6.map(SocketAddr::V6),
        };
        let usable = |remote: &SocketAddr| !remote.ip().is_unspecified() && remote.port() != 0;
        if let Some(remote) = remote.filter(usable)
            && let Some(index) = self.open_path(now, remote, used.local)
        {
            self.table.to_preferred = Some(self.paths[index].id);
        }
    }

    /// Returns the path that should replace the one in use: the validated path with the shortest
    /// RTT.
    fn best_standby(&self) -> Option<usize> {
        (1..self.paths.len())
            .filter(|&index| self.is_ready(index))
            .min_by_key(|&index| self.paths[index].rtt.smoothed)
    }

    pub(super) fn is_ready(&self, index: usize) -> bool {
        self.paths[index].validated && self.has_id(index)
    }

    /// Whether the peer has issued an ID for a path, if it needs one.
    fn has_id(&self, index: usize) -> bool {
        let ids = &self.remote_ids;
        self.side == Side::Server || ids.are_empty() || ids.of(self.paths[index].id).is_some()
    }

    pub(super) fn emit_path_event(&mut self, now: Time, event: PathEvent) {
        tracing::debug!(remote = %self.path().remote, "{event}");
        if self.reporter.is_some() {
            let about = event.path();
            let path = self.paths.iter().find(|path| path.id == about);
            let addresses = path.unwrap_or(self.path()).addresses();
            self.report(now, &Observation::Path(event, &addresses));
        }
        self.events.push_back(Event::Path(event));
    }
}

/// Validation (RFC 9000, section 8.2).
impl Connection {
    fn begin_validation(&mut self, now: Time, index: usize) {
        let (in_use, own) = (
            self.recovery.pto(&self.paths[0]),
            self.recovery.pto(&self.paths[index]),
        );
        let longest = in_use.max(own);
        let interval = if self.paths[index].rtt.has_sample() {
            own
        } else {
            in_use
        };
        self.paths[index]
            .validation
            .begin(now, interval, now + longest * ATTEMPT);
        self.table.probing = true;
    }

    /// Handles a PATH_CHALLENGE. Only the latest challenge on each path is answered.
    pub(super) fn on_path_challenge(&mut self, path: PathId, data: [u8; 8]) {
        let Some(index) = self.index_of(path) else {
            return;
        };
        self.paths[index].response = Some(data);
        self.table.probing = true;
        if index == 0 && self.side.is_client() {
            // A non-probing packet shows that the client is still here (RFC 9000, section 9.3.3).
            self.timers.ping_due = true;
        }
    }

    /// Handles a PATH_RESPONSE, from any path. A response that matches no challenge is late.
    pub(super) fn on_path_response(&mut self, now: Time, data: [u8; 8]) {
        let answered = self.paths.iter_mut().enumerate().find_map(|(index, path)| {
            let asked = path.validation.challenges_sent();
            let rtt = path.validation.on_response(now, data)?;
            path.standby.on_answer(asked);
            Some((index, rtt))
        });
        let Some((index, rtt)) = answered else {
            return;
        };
        let refresh = self.config.standby_refresh;
        let standby = index > 0 && self.side.is_client();
        let path = &mut self.paths[index];
        path.standby.answered_at = Some(now);
        path.standby.failures = 0;
        path.standby.probe_at = (standby && !refresh.is_zero()).then(|| now + refresh);
        let mut is_doubtful = false;
        if standby {
            let least = self.config.migration.min_increase;
            is_doubtful = path.on_standby_round_trip(now, rtt, least);
        } else if !path.rtt.has_sample() {
            path.rtt.on_sample(now, rtt, Duration::ZERO);
        }
        let id = path.id;
        if !std::mem::replace(&mut path.validated, true) {
            self.emit_path_event(now, PathEvent::Validated { path: id, rtt });
        }
        if self
            .table
            .to_preferred
            .take_if(|path| *path == id)
            .is_some()
            && index > 0
        {
            self.activate(now, index, MoveCause::PreferredAddress);
            // The server announced its preferred address; the connection does not return to the old
            // one.
            self.close_path(now, index);
            return self.open_standby_paths(now);
        }
        if is_doubtful {
            // Repeated one RTT later each time, and only a few times.
            self.begin_validation(now, index);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.on_path_validated(now, id);
        }
        self.note_standby(now);
        self.decide(now);
    }

    /// Probes the standby paths again if the last answer is older than a probe timeout. Called when
    /// the path in use should be left but no standby path is known to be better.
    pub(super) fn probe_standby_paths(&mut self, now: Time) {
        let recent = self.recovery.pto(&self.paths[0]);
        for index in 1..self.paths.len() {
            let path = &self.paths[index];
            let asked = path.standby.answered_at;
            let is_old = asked.is_none_or(|asked| now.since(asked) >= recent);
            if is_old && !path.validation.is_running() && self.is_ready(index) {
                self.begin_validation(now, index);
            }
        }
    }

    /// Validates a client's standby paths again that have failed, without their pause: the path in use does not
    /// answer, and one that was only slow before may.
    pub(super) fn retry_failed_paths(&mut self, now: Time) {
        if !self.side.is_client() {
            return;
        }
        let mut are_retried = false;
        for index in 1..self.paths.len() {
            let path = &self.paths[index];
            let has_failed = !path.validated && path.standby.failures > 0;
            if has_failed && !path.validation.is_running() && self.has_id(index) {
                self.begin_validation(now, index);
                are_retried = true;
            }
        }
        if are_retried {
            self.note_standby(now);
        }
    }

    /// Handles the failure of a validation.
    fn on_validation_failed(&mut self, now: Time, index: usize) {
        // A server that follows to an unvalidated address keeps the last validated path, even if it
        // does not answer now: the connection falls back to it (RFC 9000, section 9.3.2).
        let last_proven = self.side == Side::Server && index > 0 && !self.paths[0].validated;
        let path = &mut self.paths[index];
        let id = path.id;
        // The path in use stays in use if there is no other. Once it is left, nothing returns to it
        // before it is validated again.
        path.validated &= last_proven;
        let kept = path.validated;
        path.standby.on_failure();
        let pause = self.config.standby_refresh * (1 << path.standby.failures.min(MAX_BACKOFF));
        path.standby.probe_at = Some(now + pause);
        self.emit_path_event(now, PathEvent::Failed { path: id });
        if let Some(monitor) = &mut self.monitor {
            monitor.on_path_failed(id);
        }
        self.note_standby(now);
        match (index, self.side) {
            (0, _) => match self.best_standby() {
                Some(best) => self.activate(now, best, MoveCause::NotValidated),
                None => self.begin_validation(now, 0),
            },
            (_, Side::Client) => {}
            (_, Side::Server) if kept => {}
            (_, Side::Server) => self.close_path(now, index),
        }
    }

    /// Returns the time of the next path timer.
    pub(super) fn paths_deadline(&self) -> Option<Time> {
        let deadline = |index| {
            let path: &Path = &self.paths[index];
            path.validation
                .timeout()
                .or_else(|| self.standby_probe_at(index))
        };
        (0..self.paths.len()).filter_map(deadline).min()
    }

    /// Returns when a standby path is probed again: never while the connection is unused.
    fn standby_probe_at(&self, index: usize) -> Option<Time> {
        let held = index > 0 && self.side.is_client() && self.table.used;
        self.paths[index].standby.probe_at.filter(|_| held)
    }

    /// Handles the path timers that are due at `now`.
    pub(super) fn handle_paths_timeout(&mut self, now: Time) {
        if self.paths_deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        self.table.probing = true;
        let mut asked = false;
        for index in (0..self.paths.len()).rev() {
            let Some(path) = self.paths.get_mut(index) else {
                continue;
            };
            if path.validation.is_running() {
                if path.validation.handle_timeout(now) == ValidationStatus::Failed {
                    self.on_validation_failed(now, index);
                }
            } else if self.standby_probe_at(index).is_some_and(|at| at <= now) {
                self.begin_validation(now, index);
                asked = true;
            }
        }
        // No further probes until the connection is used again.
        self.table.used &= !asked;
        self.open_standby_paths(now);
    }

    /// Returns the index of a path with a challenge or response due.
    pub(super) fn due_probe(&mut self) -> Option<usize> {
        if !self.table.probing {
            return None;
        }
        let due = |path: &Path| path.response.is_some() || path.validation.due;
        // A probe that the address limit holds back goes before data.
        self.table.probing = self.paths.iter().any(due);
        self.paths
            .iter()
            .position(|path| due(path) && path.amplification_budget() >= SMALLEST_ROOM as u64)
    }

    /// Records the packet number of a probe for recovery. Validation tracks its fate, which does
    /// not concern the path in use.
    pub(super) fn note_probe(&mut self, now: Time, index: usize, size: usize) {
        let packet = SentPacket {
            sent_at: now,
            size: size as u32,
            path: self.paths[index].id,
            ..SentPacket::default()
        };
        self.recovery
            .on_sent(Space::Data, &mut self.paths[index], packet);
    }
}

/// Migration.
impl Connection {
    /// Handles a non-probing packet. If it is the newest one and arrived over a path that is not in
    /// use, the client has moved (RFC 9000, section 9.3). Returns whether it did.
    pub(super) fn on_non_probing(&mut self, now: Time, path: PathId, number: u64) -> bool {
        if self.table.largest_non_probing >= Some(number) {
            return false;
        }
        self.table.largest_non_probing = Some(number);
        if self.side == Side::Client || self.paths[0].id == path {
            return false;
        }
        let Some(index) = self.index_of(path) else {
            return false;
        };
        let only_the_port = self.paths[index].remote.ip() == self.paths[0].remote.ip()
            && self.paths[index].local == self.paths[0].local;
        if only_the_port {
            self.follow_rebinding(now, index);
        } else {
            self.activate(now, index, MoveCause::Peer);
        }
        // Probe the old path: a client that is still there sends a packet, which moves the
        // connection back (section 9.3.3).
        if self.paths[index].validated {
            self.begin_validation(now, index);
        }
        true
    }

    /// Follows a change of the peer's port only, probably at a NAT: the network path is the same,
    /// so its congestion state still holds (RFC 9000, section 9.4).
    fn follow_rebinding(&mut self, now: Time, index: usize) {
        let [used, others @ ..] = &mut self.paths[..] else {
            return;
        };
        used.swap_addresses(&mut others[index - 1]);
        let path = used.id;
        let (recovery, paths, mut fates) = self.recovery_parts();
        recovery.on_path_left(now, &mut paths[0], &mut fates);
        // A failed attempt left the address unvalidated.
        if !self.paths[0].validated && !self.paths[0].validation.is_running() {
            self.begin_validation(now, 0);
        }
        self.after_move(now);
        self.emit_path_event(
            now,
            PathEvent::Moved {
                from: path,
                to: path,
                cause: MoveCause::PeerRebound,
            },
        );
    }

    /// Moves to another path. Packets in flight on the old one are sent again at once.
    pub(super) fn activate(&mut self, now: Time, index: usize, cause: MoveCause) {
        self.paths.swap(0, index);
        let (from, to) = (self.paths[index].id, self.paths[0].id);
        self.remote_ids.activate(from, to);
        let (recovery, paths, mut fates) = self.recovery_parts();
        recovery.on_path_left(now, &mut paths[index], &mut fates);
        self.begin_mtu_discovery(now);
        let path = &mut self.paths[0];
        path.controller.on_deadline(self.deadline);
        path.standby.probe_at = None;
        let left = &mut self.paths[index];
        left.standby.probe_at =
            (!self.config.standby_refresh.is_zero()).then(|| now + self.config.standby_refresh);
        if !self.paths[0].validated || cause == MoveCause::LocalAddress {
            self.begin_validation(now, 0);
        }
        self.after_move(now);
        self.watch_move(now);
        self.emit_path_event(now, PathEvent::Moved { from, to, cause });
    }

    fn after_move(&mut self, now: Time) {
        self.timers.paced_until = None;
        self.paths[0].update_pacing(now);
        // The peer learns at once where we are and which packets arrived.
        self.received[Space::Data as usize].request_immediate_ack();
        if self.side.is_client() {
            self.timers.ping_due = true;
        }
    }
}
