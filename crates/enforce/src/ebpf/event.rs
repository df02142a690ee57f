//! The events of the programs: the structures of `bpf/events.h` and `bpf/flow.h`.

use weir_policy::Dscp;
use weir_tcon::{DeliveryPoint, FlowStart, PLACES, ProgressReport};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::FlowKey;
use weir_wire::tcp::Sequence;

use crate::bpf::flow_key::{KEY, flow_of};

/// An event that a program has sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    Opened(FlowOpened),
    Closed { slot: u32 },
    Reported { slot: u32, seen: Box<FlowProgress> },
}

/// A connection whose handshake is complete.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FlowOpened {
    pub(super) slot: u32,
    /// The key in the kernel's map.
    pub(super) key: [u8; KEY],
    /// The flow key from the view of the data's sender.
    pub(super) flow: FlowKey,
    pub(super) interface: u32,
    pub(super) dscp: Dscp,
    pub(super) beginning: FlowStart,
}

/// The progress of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FlowProgress {
    pub(super) report: ProgressReport,
    /// Acknowledgments of data never sent, since the flow began.
    pub(super) forged: u64,
    /// Windows that were lowered, since the flow began.
    pub(super) lowered: u64,
}

impl Event {
    /// Reads an event; returns `None` for an unknown kind.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = FieldReader(bytes);
        let (kind, slot) = (fields.number()?, fields.number()?);
        match kind {
            1 => read_opened(slot, fields).map(Self::Opened),
            2 => Some(Self::Closed { slot }),
            3 => read_report(fields).map(|seen| Self::Reported {
                slot,
                seen: Box::new(seen),
            }),
            _ => None,
        }
    }
}

fn read_opened(slot: u32, mut fields: FieldReader<'_>) -> Option<FlowOpened> {
    let (_now, rtt) = (fields.long()?, fields.long()?);
    let key: [u8; KEY] = fields.take()?;
    let (interface, first, segment_size) = (fields.number()?, fields.number()?, fields.number()?);
    let [_scale, _has_sack, has_ecn, traffic_class] = fields.take()?;
    Some(FlowOpened {
        slot,
        key,
        flow: flow_of(&key)?,
        interface,
        dscp: Dscp::of_traffic_class(traffic_class),
        beginning: FlowStart {
            first: Sequence::new(first),
            segment_size,
            is_marked: has_ecn != 0,
            rtt: measured(rtt),
        },
    })
}

fn read_report(mut fields: FieldReader<'_>) -> Option<FlowProgress> {
    let now = fields.time()?;
    let (delivered, marked, sent_again) = (fields.size()?, fields.size()?, fields.size()?);
    let (timeouts, forged, lowered) = (fields.long()?, fields.long()?, fields.long()?);
    let sent_at = fields.time()?;
    let passed_count = fields.number()? as usize;
    let report = ProgressReport {
        now,
        delivered,
        marked,
        retransmitted: sent_again,
        timeouts,
        sent_at,
        una: Sequence::new(fields.number()?),
        nxt: Sequence::new(fields.number()?),
        sacked: ByteSize::from_bytes(fields.number()?.into()),
        sack_end: Sequence::new(fields.number()?),
        duplicates: fields.number()?,
        prior_in_flight: ByteSize::from_bytes(fields.number()?.into()),
        new_acks: fields.number()?,
        limited_until: fields.size()?,
        first_ack_at: fields.time()?,
        app_limited_acks: fields.long()?,
        echo_acks: fields.long()?,
        skipped: fields.size()?,
        skipped_at: fields.time()?,
        duplicated: fields.size()?,
        delivery_points: read_delivery_points(passed_count, fields)?,
    };
    Some(FlowProgress {
        report,
        forged,
        lowered,
    })
}

fn read_delivery_points(
    count: usize,
    mut fields: FieldReader<'_>,
) -> Option<[Option<DeliveryPoint>; PLACES]> {
    let mut places = [None; PLACES];
    for point in places.iter_mut().take(count) {
        *point = Some(DeliveryPoint {
            passed_at: fields.time()?,
            upto: fields.size()?,
            sent_at: fields.time()?,
            delivered: fields.size()?,
            delivered_at: fields.time()?,
            first_sent_at: fields.time()?,
            in_flight: ByteSize::from_bytes(fields.number()?.into()),
            was_retransmitted: fields.number()? != 0,
            app_limited: fields.number()? != 0,
            ack_index: fields.number()?,
        });
    }
    Some(places)
}

fn measured(nanos: u64) -> Option<Duration> {
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// Reads the fields of a structure in order.
struct FieldReader<'b>(&'b [u8]);

impl FieldReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn time(&mut self) -> Option<Time> {
        self.long()
            .map(|nanos| Time::ZERO + Duration::from_nanos(nanos))
    }

    fn size(&mut self) -> Option<ByteSize> {
        self.long().map(ByteSize::from_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_event_is_none() {
        assert_eq!(Event::read(&[]), None);
        assert_eq!(Event::read(&[9; 8]), None);
        let closed = [2_u32.to_ne_bytes(), 7_u32.to_ne_bytes()].concat();
        assert_eq!(Event::read(&closed), Some(Event::Closed { slot: 7 }));
        let cut = [3_u32.to_ne_bytes(), 7_u32.to_ne_bytes(), [0; 4]].concat();
        assert_eq!(Event::read(&cut), None);
    }
}
