//! Records of measured connections: `struct record` of `bpf/socket_records.h`.

use weir_canary::{ConnectionRecord, ConnectionState, RuleId};
use weir_policy::Group;
use weir_units::{ByteSize, Duration, Rate};

/// A record, with the slot of its rule in the place of the rule's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotRecord {
    pub(super) slot: u32,
    record: ConnectionRecord,
}

impl SlotRecord {
    /// Reads a record; returns `None` if it is cut.
    #[cfg_attr(
        not(bpf_programs),
        allow(dead_code, reason = "only programs write them")
    )]
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let long = |place: usize| {
            let bytes = bytes.get(8 * place..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        let number = |place: usize| {
            let bytes = bytes.get(32 + 4 * place..)?.first_chunk()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        let time =
            |micros: u32| (micros > 0).then(|| Duration::from_nanos(u64::from(micros) * 1_000));
        let rate = long(3)?;
        let record = ConnectionRecord {
            rule: RuleId(0),
            group: match number(1)? {
                0 => Group::Treated,
                _ => Group::Control,
            },
            connection: long(0)?,
            segments_sent: number(2)?.into(),
            segments_retransmitted: number(3)?.into(),
            rtt_smoothed: time(number(4)?),
            rtt_min: time(number(5)?),
            delivery_rate: (rate > 0).then(|| Rate::from_bits_per_second(rate.saturating_mul(8))),
            duration: Duration::from_nanos(long(1)?),
            delivered: ByteSize::from_bytes(long(2)?),
            state: match number(6)? {
                0 => ConnectionState::Open,
                _ => ConnectionState::Completed,
            },
        };
        Some(Self {
            slot: number(0)?,
            record,
        })
    }

    /// Returns the record of a rule with this number.
    pub(super) fn of(self, rule: RuleId) -> ConnectionRecord {
        ConnectionRecord {
            rule,
            ..self.record
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_in_their_units() {
        let longs = [77_u64, 2_000_000, 1_500, 1_000_000];
        let numbers = [5_u32, 1, 10, 2, 300, 0, 1, 0];
        let mut bytes: Vec<u8> = longs.into_iter().flat_map(u64::to_ne_bytes).collect();
        bytes.extend(numbers.into_iter().flat_map(u32::to_ne_bytes));
        let read = SlotRecord::read(&bytes).unwrap();
        assert_eq!(read.slot, 5);
        let record = read.of(RuleId(3));
        assert_eq!((record.rule, record.group), (RuleId(3), Group::Control));
        assert_eq!(
            (record.segments_sent, record.segments_retransmitted),
            (10, 2)
        );
        assert_eq!(record.rtt_smoothed, Some(Duration::from_micros(300)));
        assert_eq!(record.rtt_min, None);
        assert_eq!(
            record.delivery_rate,
            Some(Rate::from_bits_per_second(8_000_000))
        );
        assert_eq!(record.duration, Duration::from_millis(2));
        assert_eq!(record.state, ConnectionState::Completed);
        assert_eq!(SlotRecord::read(&bytes[..40]), None);
    }
}
