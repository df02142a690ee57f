//! Connection IDs of a connection: those that we issued and those that the peer issued (RFC 9000,
//! section 5.1).

use rand_core::Rng;
use smallvec::{SmallVec, smallvec};

use crate::frame::NewConnectionId;
use crate::ranges::RangeSet;
use crate::secret::{EndpointKeys, ResetToken};
use crate::{Code, ConnectionId, ConnectionIdLayout, PathId, TransportError};

/// The most IDs of the peer that we store, and the most that we issue.
pub(crate) const ACTIVE_ID_LIMIT: u64 = 8;
/// More unacknowledged RETIRE_CONNECTION_ID frames than this mean a hostile peer.
const MAX_RETIREMENTS: usize = 64;
/// The most gaps in the sequence numbers of the peer's IDs. The numbers increase by one, so gaps
/// come only from frames lost at the same time.
const MAX_GAPS: usize = 64;

/// IDs that the peer uses in packets to us.
#[derive(Debug)]
pub(super) struct LocalIds {
    /// The layout of our IDs, whose length a short header does not contain.
    pub(super) layout: ConnectionIdLayout,
    /// The ID of the handshake, the source of long-header packets.
    pub(super) handshake: ConnectionId,
    active: SmallVec<[(u64, ConnectionId); 1]>,
    next_sequence: u64,
}

impl LocalIds {
    /// Starts with the ID of the handshake, which has sequence number zero.
    pub(super) fn new(layout: ConnectionIdLayout, handshake: ConnectionId) -> Self {
        Self {
            layout,
            handshake,
            active: smallvec![(0, handshake)],
            next_sequence: 1,
        }
    }

    /// Adds the ID of the transport parameter `preferred_address`, which has sequence number one
    /// (RFC 9000, section 5.1.1).
    pub(super) fn issue_preferred(&mut self, id: ConnectionId) {
        self.active.push((1, id));
        self.next_sequence = 2;
    }

    /// Issues IDs up to the peer's limit.
    pub(super) fn issue(
        &mut self,
        peer_limit: u64,
        keys: &EndpointKeys,
        rng: &mut impl Rng,
        mut issued: impl FnMut(NewConnectionId),
    ) {
        while (self.active.len() as u64) < peer_limit.min(ACTIVE_ID_LIMIT) {
            let id = self.layout.generate(rng);
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            self.active.push((sequence, id));
            issued(NewConnectionId {
                sequence,
                retire_prior_to: 0,
                id,
                reset_token: keys.reset_token(&id),
            });
        }
    }

    /// Removes an ID that the peer retired. `largest_sent` is the largest sequence number sent to
    /// it.
    pub(super) fn retire(
        &mut self,
        sequence: u64,
        largest_sent: u64,
        used_on_packet: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        let violation = |reason| Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason));
        // Otherwise one packet could make us issue any number of IDs.
        if sequence > largest_sent {
            return violation("a connection ID was retired that was never issued");
        }
        let Some(position) = self
            .active
            .iter()
            .position(|(number, _)| *number == sequence)
        else {
            return Ok(None);
        };
        if self.active[position].1 == *used_on_packet {
            // RFC 9000, section 19.16.
            return violation("a connection ID was retired by a packet that carries it");
        }
        let (_, id) = self.active.remove(position);
        Ok(Some(id))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.active.iter().map(|(_, id)| *id)
    }

    /// Whether this is an ID of ours.
    pub(super) fn contains(&self, id: &ConnectionId) -> bool {
        self.active.iter().any(|(_, active)| active == id)
    }
}

/// An ID that the peer issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IssuedId {
    sequence: u64,
    id: ConnectionId,
    /// Authenticates a stateless reset from the peer; unknown for the ID of a client's handshake.
    reset_token: Option<ResetToken>,
}

/// IDs that we use in packets to the peer. The path in use has one, each other path has its own
/// (RFC 9000, section 9.5), and the rest are spare.
#[derive(Debug)]
pub(super) struct RemoteIds {
    current: IssuedId,
    /// The IDs of other paths.
    assigned: Vec<(PathId, IssuedId)>,
    spare: Vec<IssuedId>,
    in_use_changed: bool,
    /// Sequence numbers from `retire_prior_to` on that the peer has issued, including retired ones:
    /// a late duplicate of a frame restores nothing.
    issued: RangeSet,
    retire_prior_to: u64,
    /// Sequence numbers whose RETIRE_CONNECTION_ID frames are still to be sent.
    retiring: Vec<u64>,
    /// RETIRE_CONNECTION_ID frames in flight.
    unacknowledged: usize,
}

impl IssuedId {
    const fn of_handshake(id: ConnectionId) -> Self {
        Self {
            sequence: 0,
            id,
            reset_token: None,
        }
    }

    fn agrees_with(&self, other: &Self) -> bool {
        let same_token = self.reset_token.is_none() || self.reset_token == other.reset_token;
        self.sequence == other.sequence && self.id == other.id && same_token
    }
}

impl RemoteIds {
    pub(super) fn new(id: ConnectionId) -> Self {
        Self {
            current: IssuedId::of_handshake(id),
            assigned: Vec::new(),
            in_use_changed: false,
            spare: Vec::new(),
            issued: RangeSet::new(),
            retire_prior_to: 0,
            retiring: Vec::new(),
            unacknowledged: 0,
        }
    }

    /// Returns the ID of the path in use.
    pub(super) fn current(&self) -> &ConnectionId {
        &self.current.id
    }

    /// Returns the ID of a path that is not in use, if it has its own.
    pub(super) fn of(&self, path: PathId) -> Option<&ConnectionId> {
        let (_, id) = self.assigned.iter().find(|(owner, _)| *owner == path)?;
        Some(&id.id)
    }

    /// Whether the peer uses zero-length connection IDs, on all paths.
    pub(super) fn are_empty(&self) -> bool {
        self.current.id.is_empty()
    }

    /// Assigns a spare ID to a path; `false` if there is none.
    pub(super) fn assign(&mut self, path: PathId) -> bool {
        if self.of(path).is_some() {
            return true;
        }
        // Oldest first: the peer is likely to retire it soonest.
        let oldest = self
            .spare
            .iter()
            .enumerate()
            .min_by_key(|(_, id)| id.sequence);
        let Some((index, _)) = oldest else {
            return false;
        };
        self.assigned.push((path, self.spare.swap_remove(index)));
        self.in_use_changed = true;
        true
    }

    /// Releases the ID of a closed path: it must not be used on another one.
    pub(super) fn release(&mut self, path: PathId) {
        if let Some(index) = self.assigned.iter().position(|(owner, _)| *owner == path) {
            let (_, id) = self.assigned.swap_remove(index);
            self.in_use_changed = true;
            self.retire(id.sequence);
        }
    }

    /// Switches the path in use from `from`, which keeps its ID, to `to`. A path without its own ID
    /// continues with the one in use.
    pub(super) fn activate(&mut self, from: PathId, to: PathId) {
        let Some(index) = self.assigned.iter().position(|(owner, _)| *owner == to) else {
            return;
        };
        let (owner, id) = &mut self.assigned[index];
        std::mem::swap(id, &mut self.current);
        *owner = from;
    }

    /// Sets the peer's ID for the handshake (RFC 9000, section 7.2).
    pub(super) fn set_handshake_id(&mut self, id: ConnectionId) {
        self.current = IssuedId::of_handshake(id);
    }

    fn held(&self) -> impl Iterator<Item = &IssuedId> {
        let others = self.assigned.iter().map(|(_, id)| id).chain(&self.spare);
        std::iter::once(&self.current).chain(others)
    }

    /// Sets the reset token of the handshake ID, from the server's parameters.
    pub(super) fn set_handshake_reset_token(&mut self, token: ResetToken) {
        if self.current.sequence == 0 {
            self.current.reset_token = Some(token);
            self.in_use_changed = true;
        }
    }

    /// Returns the reset tokens of the IDs in use. Those of spare and retired IDs do not count (RFC
    /// 9000, section 10.3.1).
    pub(super) fn reset_tokens(&self) -> impl Iterator<Item = ResetToken> {
        let assigned = self.assigned.iter().map(|(_, id)| id);
        let in_use = std::iter::once(&self.current).chain(assigned);
        in_use.filter_map(|id| id.reset_token)
    }

    /// Whether the IDs in use have changed since the last call of [`Self::take_in_use_changed`].
    #[inline]
    pub(super) fn is_in_use_changed(&self) -> bool {
        self.in_use_changed
    }

    /// Whether the IDs in use have changed since the last call.
    pub(super) fn take_in_use_changed(&mut self) -> bool {
        std::mem::take(&mut self.in_use_changed)
    }

    /// Handles a NEW_CONNECTION_ID frame (RFC 9000, section 19.15).
    pub(super) fn on_new(&mut self, frame: NewConnectionId) -> Result<(), TransportError> {
        let violation = |reason| Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason));
        if self.current.id.is_empty() {
            return violation("NEW_CONNECTION_ID from a peer that uses an empty connection ID");
        }
        let new = IssuedId {
            sequence: frame.sequence,
            id: frame.id,
            reset_token: Some(frame.reset_token),
        };
        let known = |held: &&IssuedId| held.sequence == new.sequence || held.id == new.id;
        let held = self.held().find(known).copied();
        match held {
            Some(held) if held.agrees_with(&new) => {}
            Some(_) => return violation("a connection ID was issued twice in different ways"),
            None if frame.sequence < self.retire_prior_to => self.retire(frame.sequence),
            None if self.issued.insert(new.sequence..new.sequence + 1) == 0 => {}
            None => self.spare.push(new),
        }
        self.retire_up_to(frame.retire_prior_to)?;
        if self.held().count() as u64 > ACTIVE_ID_LIMIT {
            return Err(TransportError::new(
                Code::CONNECTION_ID_LIMIT_ERROR,
                "more connection IDs than active_connection_id_limit",
            ));
        }
        if self.issued.range_count() > MAX_GAPS {
            return violation("connection IDs without those between them");
        }
        if self.retiring.len() + self.unacknowledged > MAX_RETIREMENTS {
            return Err(TransportError::new(
                Code::CONNECTION_ID_LIMIT_ERROR,
                "too many connection IDs to retire at once",
            ));
        }
        Ok(())
    }

    fn retire_up_to(&mut self, prior_to: u64) -> Result<(), TransportError> {
        if prior_to <= self.retire_prior_to {
            return Ok(());
        }
        self.retire_prior_to = prior_to;
        self.issued.remove(0..prior_to);
        let (old, keep): (Vec<_>, Vec<_>) = self
            .spare
            .drain(..)
            .partition(|spare| spare.sequence < prior_to);
        self.spare = keep;
        for id in old {
            self.retire(id.sequence);
        }
        self.replace_assigned(prior_to);
        if self.current.sequence < prior_to {
            if self.spare.is_empty() {
                return Err(TransportError::new(
                    Code::PROTOCOL_VIOLATION,
                    "all connection IDs were retired",
                ));
            }
            self.retire(self.current.sequence);
            self.current = self.spare.remove(0);
            self.in_use_changed = true;
        }
        Ok(())
    }

    /// Replaces the IDs of paths that the peer withdraws. A path for which there is none loses its
    /// ID and cannot be used before the peer issues more.
    fn replace_assigned(&mut self, prior_to: u64) {
        let withdrawn: Vec<_> = self
            .assigned
            .extract_if(.., |(_, id)| id.sequence < prior_to)
            .collect();
        for (path, id) in withdrawn {
            self.retire(id.sequence);
            self.in_use_changed = true;
            // The path in use comes first.
            if self.current.sequence >= prior_to || self.spare.len() > 1 {
                self.assign(path);
            }
        }
    }

    fn retire(&mut self, sequence: u64) {
        if !self.retiring.contains(&sequence) {
            self.retiring.push(sequence);
        }
    }

    pub(super) fn has_retirements(&self) -> bool {
        !self.retiring.is_empty()
    }

    /// Returns a retirement to be sent now.
    pub(super) fn next_retirement(&mut self) -> Option<u64> {
        let sequence = self.retiring.pop()?;
        self.unacknowledged += 1;
        Some(sequence)
    }

    pub(super) fn on_retirement_acked(&mut self) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
    }

    pub(super) fn on_retirement_lost(&mut self, sequence: u64) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
        self.retire(sequence);
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha12Rng;
    use rand_core::SeedableRng;

    use super::*;
    use crate::EndpointSecret;

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).unwrap()
    }

    fn new_id(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
        NewConnectionId {
            sequence,
            retire_prior_to,
            id: id(sequence as u8),
            reset_token: [0; 16],
        }
    }

    #[test]
    fn ids_are_issued_up_to_the_limit_and_replaced_when_retired() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let keys = EndpointKeys::new(&EndpointSecret::new([1; 32]));
        let mut ids = LocalIds::new(ConnectionIdLayout::new(8), id(0));
        let mut issued = Vec::new();
        ids.issue(3, &keys, &mut rng, |frame| issued.push(frame));
        assert_eq!(
            issued
                .iter()
                .map(|frame| frame.sequence)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(ids.retire(0, 1, &issued[0].id).unwrap(), Some(id(0)));
        assert_eq!(ids.retire(0, 1, &issued[0].id).unwrap(), None);
        assert!(ids.retire(1, 1, &issued[0].id).is_err());
        assert!(ids.retire(2, 1, &issued[0].id).is_err());
        ids.issue(3, &keys, &mut rng, |frame| issued.push(frame));
        assert_eq!(issued.len(), 3);
    }

    #[test]
    fn a_spare_id_is_used_when_the_peer_retires_the_current_one() {
        let mut ids = RemoteIds::new(id(0));
        ids.on_new(new_id(1, 0)).unwrap();
        ids.on_new(new_id(1, 0)).unwrap();
        ids.on_new(new_id(2, 1)).unwrap();
        assert_eq!(*ids.current(), id(1));
        assert_eq!(ids.next_retirement(), Some(0));
        ids.on_retirement_lost(0);
        assert_eq!(ids.next_retirement(), Some(0));
        assert_eq!(ids.next_retirement(), None);
    }

    #[test]
    fn a_retired_id_is_not_used_again() {
        let path = PathId(1);
        let mut ids = RemoteIds::new(id(0));
        ids.on_new(new_id(1, 0)).unwrap();
        assert!(ids.assign(path));
        ids.release(path);
        ids.on_new(new_id(1, 0)).unwrap();
        assert!(!ids.assign(path));
    }

    #[test]
    fn too_many_sequence_number_gaps_are_rejected() {
        let path = PathId(1);
        let mut ids = RemoteIds::new(id(0));
        let refused = (1..200).find_map(|index| {
            let result = ids.on_new(new_id(2 * index, 0)).err();
            ids.assign(path);
            ids.release(path);
            while ids.next_retirement().is_some() {
                ids.on_retirement_acked();
            }
            result
        });
        assert_eq!(refused.unwrap().code, Code::PROTOCOL_VIOLATION);
        assert!(ids.issued.range_count() <= MAX_GAPS + 1);
    }

    #[test]
    fn each_path_has_its_own_id_and_activation_swaps_them() {
        let (first, second, third) = (PathId::FIRST, PathId(1), PathId(2));
        let mut ids = RemoteIds::new(id(0));
        assert!(!ids.assign(second));
        ids.on_new(new_id(1, 0)).unwrap();
        ids.on_new(new_id(2, 0)).unwrap();
        assert!(ids.assign(second) && ids.assign(third) && ids.assign(second));
        assert_eq!(ids.of(second), Some(&id(1)));
        ids.activate(first, second);
        assert_eq!((*ids.current(), ids.of(first)), (id(1), Some(&id(0))));
        ids.release(first);
        assert_eq!(ids.next_retirement(), Some(0));
        assert_eq!(ids.of(first), None);
    }

    #[test]
    fn a_path_with_a_retired_id_gets_a_spare_or_none() {
        let (second, third) = (PathId(1), PathId(2));
        let mut ids = RemoteIds::new(id(0));
        (1..=3).for_each(|sequence| ids.on_new(new_id(sequence, 0)).unwrap());
        assert!(ids.assign(second) && ids.assign(third));
        ids.on_new(new_id(4, 3)).unwrap();
        assert_eq!(*ids.current(), id(4));
        assert_eq!(ids.of(second), Some(&id(3)));
        assert_eq!(ids.of(third), None);
    }

    #[test]
    fn excess_and_conflicting_ids_are_rejected() {
        let mut ids = RemoteIds::new(id(0));
        for sequence in 1..ACTIVE_ID_LIMIT {
            ids.on_new(new_id(sequence, 0)).unwrap();
        }
        let error = ids.on_new(new_id(ACTIVE_ID_LIMIT, 0)).unwrap_err();
        assert_eq!(error.code, Code::CONNECTION_ID_LIMIT_ERROR);
        let contradiction = NewConnectionId {
            id: id(77),
            ..new_id(1, 0)
        };
        assert_eq!(
            ids.on_new(contradiction).unwrap_err().code,
            Code::PROTOCOL_VIOLATION
        );
    }
}
