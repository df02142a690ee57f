//! Selective acknowledgments (RFC 2018, RFC 6675 section 4).

use weir_units::Time;

use super::{AckSummary, LOST, SACKED, Scoreboard};

/// The most blocks per acknowledgment (RFC 2018, section 3).
pub(super) const KNOWN: usize = 4;

/// A range of the stream, from `start` up to `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Scoreboard {
    /// Processes SACK blocks, all beyond the cumulative acknowledgment. Blocks mostly repeat or
    /// extend those of the previous acknowledgment, so only new ranges are processed.
    pub(crate) fn sack(&mut self, now: Time, blocks: &[SackRange], summary: &mut AckSummary) {
        self.make_records();
        for block in blocks {
            self.sack_block(now, *block, summary);
        }
        self.disorder.known = [SackRange::default(); KNOWN];
        for (known, block) in self.disorder.known.iter_mut().zip(blocks) {
            *known = *block;
        }
    }

    fn sack_block(&mut self, now: Time, block: SackRange, summary: &mut AckSummary) {
        let mut from = block.start;
        // Skips the known blocks, which may overlap this block in any order, from left to right.
        while from < block.end {
            let next = self
                .disorder
                .known
                .iter()
                .filter(|known| known.end > from && known.start < block.end)
                .min_by_key(|known| known.start)
                .copied();
            let Some(known) = next else {
                self.sack_run(now, from, block.end, block, summary);
                return;
            };
            if known.start > from {
                self.sack_run(now, from, known.start, block, summary);
            }
            from = known.end;
        }
    }

    /// Marks the records that the range touches and that lie entirely within the block.
    fn sack_run(
        &mut self,
        now: Time,
        start: u64,
        end: u64,
        block: SackRange,
        summary: &mut AckSummary,
    ) {
        let mut index = self.index_of(start);
        while let Some(record) = self.disorder.records.get_mut(index) {
            if record.start >= end {
                break;
            }
            let wholly_within = record.start >= block.start && record.end() <= block.end;
            if wholly_within && !record.has(SACKED) {
                let before = *record;
                record.marks = (record.marks & !LOST) | SACKED;
                let length = u64::from(before.length);
                if before.has(LOST) {
                    self.disorder.lost -= length;
                } else {
                    self.in_flight -= length;
                }
                self.disorder.sacked += length;
                let delivery = self
                    .disorder
                    .deliveries
                    .as_ref()
                    .and_then(|deliveries| deliveries.packets.get(index).copied());
                self.arrived(now, &before, delivery, summary);
                self.disorder.highest_sacked = self.disorder.highest_sacked.max(before.end());
            }
            index += 1;
        }
    }

    /// Returns whether the receiver may have discarded out-of-order data (reneging, RFC 2018,
    /// section 8): the first segment is SACKed but not acknowledged.
    pub(crate) fn has_reneged(&self) -> bool {
        self.disorder
            .records
            .front()
            .is_some_and(|record| record.has(SACKED))
    }

    /// Clears all SACKs (RFC 2018, section 8).
    pub(crate) fn forget_sacks(&mut self) {
        self.make_records();
        for record in &mut self.disorder.records {
            if record.has(SACKED) {
                record.marks &= !SACKED;
                self.in_flight += u64::from(record.length);
            }
        }
        self.disorder.sacked = 0;
        self.disorder.highest_sacked = 0;
        self.disorder.known = [SackRange::default(); KNOWN];
    }
}
