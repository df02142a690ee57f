//! The sent packets of one space that are neither acknowledged nor lost: a ring by packet number.
//!
//! One bit per packet marks whether its ACK would be new. An ACK frame thus costs time for the
//! packets that it newly acknowledges, and hardly any for those of earlier frames.

use std::collections::VecDeque;

use weir_congestion::PacketDelivery;
use weir_units::Time;
use weir_wire::Ecn;

use super::SentFrames;
use crate::inline_queue::InlineQueue;
use crate::observe::{LossReason, LostPacket};
use crate::{PathId, Space};

/// A packet that was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentPacket {
    /// The time of sending.
    pub(crate) sent_at: Time,
    /// The state for the delivery-rate estimator, set by
    /// [`Recovery::on_sent`](super::Recovery::on_sent).
    pub(crate) delivery: PacketDelivery,
    /// The frames in it.
    pub(crate) frames: SentFrames,
    /// Its bytes of UDP payload.
    pub(crate) size: u32,
    /// The path that it was sent on.
    pub(crate) path: PathId,
    /// The codepoint that it was sent with.
    pub(crate) ecn: Ecn,
    /// Whether the peer has to acknowledge it.
    pub(crate) ack_eliciting: bool,
    /// Whether it counts as in flight: ack-eliciting and padded packets do.
    pub(crate) in_flight: bool,
    /// Whether it probes the path's MTU: its loss is no congestion signal (RFC 9000, section 14.4),
    /// and it contains nothing to send again.
    pub(crate) mtu_probe: bool,
}

impl SentPacket {
    /// Returns the report of its loss.
    pub(super) fn lost(&self, space: Space, number: u64, cause: LossReason) -> LostPacket {
        LostPacket {
            space,
            number,
            size: self.size,
            path: self.path,
            is_mtu_probe: self.mtu_probe,
            cause,
        }
    }
}

/// The state of a packet number.
#[derive(Debug)]
pub(super) enum Slot {
    /// Sent, neither acknowledged nor lost.
    Outstanding(SentPacket),
    /// Declared lost, kept in case it is acknowledged after all.
    Lost { packet: SentPacket, at: Time },
    /// Never sent: an ACK of it is a PROTOCOL_VIOLATION.
    Skipped,
    /// No longer relevant.
    Gone,
}

const WORD: u64 = u64::BITS as u64;

/// The ring.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    /// The number of the first slot.
    base: u64,
    pub(super) slots: VecDeque<Slot>,
    /// A bit per number, set where the slot is not [`Slot::Gone`]; the first word holds `base`.
    live: InlineQueue<u64>,
}

impl SentPackets {
    /// Creates a ring that starts with this number.
    pub(super) fn starting_at(base: u64) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// Returns the number of the next packet.
    pub(super) fn next_number(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Assigns the next number to this slot.
    #[inline(always)]
    pub(super) fn push(&mut self, slot: Slot) {
        let number = self.next_number();
        let word = self.word(number);
        if word == self.live.len() {
            self.live.push_back(0);
        }
        if let Some(bits) = self.live.get_mut(word) {
            *bits |= 1 << (number % WORD);
        }
        self.slots.push_back(slot);
    }

    /// Returns the state of a number; `None` outside the ring.
    pub(super) fn get(&self, number: u64) -> Option<&Slot> {
        self.slots.get(self.index(number)?)
    }

    /// Marks a number as gone.
    pub(super) fn clear(&mut self, number: u64) {
        let word = self.word(number);
        let Some(index) = self.index(number) else {
            return;
        };
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Slot::Gone;
            if let Some(bits) = self.live.get_mut(word) {
                *bits &= !(1 << (number % WORD));
            }
        }
    }

    /// Declares an outstanding packet lost and returns it; `None` if there is no such packet.
    pub(super) fn mark_lost(&mut self, number: u64, at: Time) -> Option<&SentPacket> {
        let index = self.index(number)?;
        let slot = self.slots.get_mut(index)?;
        *slot = match std::mem::replace(slot, Slot::Gone) {
            Slot::Outstanding(packet) => Slot::Lost { packet, at },
            other => other,
        };
        match slot {
            Slot::Lost { packet, .. } => Some(packet),
            _ => None,
        }
    }

    /// Returns the first number from `from` up to `to` whose slot is not gone.
    pub(super) fn next_live(&self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.base);
        if from > to {
            return None;
        }
        let mut word = self.word(from);
        let last = self.word(to);
        let mut bits = self.live.get(word)? & (u64::MAX << (from % WORD));
        while bits == 0 {
            word += 1;
            // Stop here: an ACK frame has many ranges, and the gaps between them may be long.
            if word > last {
                return None;
            }
            bits = *self.live.get(word)?;
        }
        let number = (self.base / WORD + word as u64) * WORD + u64::from(bits.trailing_zeros());
        (number <= to).then_some(number)
    }

    /// Removes irrelevant slots from the front: gone slots, losses declared before `forget_before`,
    /// and skipped numbers below the acknowledged ones.
    pub(super) fn prune(&mut self, forget_before: Time) {
        let mut count = 0;
        loop {
            let done = match self.slots.get(count) {
                Some(Slot::Gone) => true,
                Some(Slot::Outstanding(_)) | None => false,
                Some(Slot::Lost { at, .. }) => *at < forget_before,
                Some(Slot::Skipped) => matches!(self.slots.get(count + 1), Some(Slot::Gone)),
            };
            if !done {
                break;
            }
            count += 1;
        }
        self.drop_front(count);
    }

    /// Removes packets that are not in flight from the front while the ring spans more than `limit`
    /// numbers: a receiver's ACK-only packets, which the peer need not acknowledge.
    pub(super) fn drop_not_in_flight(&mut self, limit: usize) {
        let excess = self.slots.len().saturating_sub(limit);
        if excess == 0 {
            return;
        }
        let unaccounted = |slot: &&Slot| match slot {
            Slot::Outstanding(packet) => !packet.in_flight && !packet.ack_eliciting,
            Slot::Lost { .. } => false,
            Slot::Skipped | Slot::Gone => true,
        };
        let count = self
            .slots
            .iter()
            .take(excess)
            .take_while(unaccounted)
            .count();
        self.drop_front(count);
    }

    fn drop_front(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        // Mostly a single one.
        for _ in 0..count {
            self.slots.pop_front();
        }
        let base = self.base + count as u64;
        for _ in 0..self.word(base) {
            self.live.pop_front();
        }
        self.base = base;
        if let Some(bits) = self.live.front_mut() {
            *bits &= u64::MAX << (base % WORD);
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.base)?).ok()
    }

    fn word(&self, number: u64) -> usize {
        (number / WORD).saturating_sub(self.base / WORD) as usize
    }
}
