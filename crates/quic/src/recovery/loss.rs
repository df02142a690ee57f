//! Loss detection (RFC 9002, section 6.1) and persistent congestion (section 7.6).

use weir_congestion::{LossCause, LossSample};
use weir_units::{ByteSize, Duration, Time};

use super::sent_packets::{SentPacket, Slot};
use super::{FrameSink, Recovery, SpaceState, leave_flight};
use crate::Space;
use crate::observe::LossReason;
use crate::path::Path;

/// The most numbers in the ring in addition to four times the outstanding ack-eliciting packets. A
/// peer that keeps us sending and acknowledges nothing makes it longer; then its oldest packets are
/// lost.
const LONGEST_SPAN: u64 = 4096;

/// Consecutive lost packets, with no acknowledged packet between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRun {
    /// The number after the last of them.
    next: u64,
    /// When the first ack-eliciting one of them was sent.
    first_sent: Option<Time>,
}

impl LossRun {
    /// Ends the run: one of its packets has been acknowledged after all.
    pub(super) fn interrupt(&mut self) {
        self.first_sent = None;
    }

    /// Records a skipped number.
    fn pass(&mut self, number: u64) {
        if self.next == number {
            self.next = number + 1;
        }
    }

    /// Adds a lost packet. Returns the time span of the run, from its first ack-eliciting packet to
    /// this one.
    fn extend(&mut self, number: u64, packet: &SentPacket, first_sample: Option<Time>) -> Duration {
        if self.next != number {
            self.first_sent = None;
        }
        self.next = number + 1;
        // Before the first sample the PTO was a guess (section 7.6.2).
        let counts = packet.ack_eliciting && first_sample.is_some_and(|at| packet.sent_at > at);
        if !counts {
            return Duration::ZERO;
        }
        let first_sent = *self.first_sent.get_or_insert(packet.sent_at);
        packet.sent_at.since(first_sent)
    }
}

/// The packets lost in one pass.
#[derive(Default)]
struct Lost {
    packets: u64,
    /// Bytes that were in flight on the path in use.
    bytes: u64,
    newest_sent: Time,
    persistent: bool,
    /// Whether the path no longer carries packets above the base size.
    black_hole: bool,
}

/// The rules of one pass.
struct LossRules {
    now: Time,
    /// The time after its sending at which a packet is lost if a later one has been acknowledged.
    delay: Duration,
    packet_threshold: u64,
    /// Losses that span more time than this are persistent congestion.
    persistent_span: Duration,
}

impl Recovery {
    /// Declares packets of a space lost and reports them to the controller in one event; drops
    /// losses older than a PTO. Returns the number of lost packets.
    pub(super) fn detect_lost(
        &mut self,
        now: Time,
        space: Space,
        path: &mut Path,
        sink: &mut impl FrameSink,
    ) -> u64 {
        let keep = self.pto(path);
        let rules = LossRules {
            now,
            delay: path.rtt.loss_delay(self.config.granularity),
            packet_threshold: self.config.packet_threshold,
            persistent_span: keep * u64::from(self.config.persistent_congestion_threshold),
        };
        let state = &mut self.spaces[space as usize];
        let lost = state.detect_lost(&rules, space, path, sink);
        state.packets.prune(now - keep);
        if lost.bytes > 0 {
            self.precision.on_loss();
            report(now, &lost, path);
        }
        let mut packets = lost.packets;
        if lost.black_hole {
            packets += self.give_up_large_packets(now, path, sink);
        }
        packets
    }

    /// Declares packets above the current size lost, so that their data is sent again in smaller
    /// ones: the path does not carry them. The controller is not informed, since packet size is no
    /// congestion signal. Returns the number of packets.
    pub(crate) fn give_up_large_packets(
        &mut self,
        now: Time,
        path: &mut Path,
        sink: &mut impl FrameSink,
    ) -> u64 {
        // Handshake packets are never larger than the base.
        let state = &mut self.spaces[Space::Data as usize];
        let mut from = state.first_outstanding;
        let mut packets = 0;
        while let Some(number) = state.packets.next_live(from, u64::MAX) {
            from = number + 1;
            let is_too_large = matches!(state.packets.get(number), Some(Slot::Outstanding(packet))
                if packet.path == path.id && packet.size as usize > path.discovery.current);
            if is_too_large && let Some(packet) = state.packets.mark_lost(number, now) {
                let lost = packet.lost(Space::Data, number, LossReason::TooLarge);
                sink.packet_lost(now, &lost);
                packet
                    .frames
                    .iter()
                    .for_each(|frame| sink.lost(Space::Data, frame));
                state.eliciting_outstanding -= u64::from(packet.ack_eliciting);
                leave_flight(packet, path);
                path.stats.packets_lost += 1;
                path.stats.bytes_lost += u64::from(packet.size);
                packets += 1;
            }
        }
        packets
    }
}

impl SpaceState {
    /// Whether the oldest packet must be dropped, whatever its fate.
    pub(super) fn is_overlong(&self) -> bool {
        self.packets.slots.len() as u64 > self.longest_span()
    }

    fn longest_span(&self) -> u64 {
        LONGEST_SPAN + 4 * self.eliciting_outstanding
    }

    fn detect_lost(
        &mut self,
        rules: &LossRules,
        space: Space,
        path: &mut Path,
        sink: &mut impl FrameSink,
    ) -> Lost {
        let mut lost = Lost::default();
        let next_number = self.packets.next_number();
        let too_old = next_number.saturating_sub(self.longest_span());
        self.loss_time = None;
        while let Some(number) = self.packets.next_live(self.first_outstanding, u64::MAX) {
            match self.packets.get(number) {
                Some(Slot::Outstanding(packet)) => {
                    // Numbers and times increase together: the first packet that is not lost ends
                    // the search, and it is the next one to be lost.
                    if number >= too_old && !self.is_lost(number, packet, rules) {
                        self.first_outstanding = number;
                        if self.largest_acked > Some(number) {
                            self.loss_time = Some(packet.sent_at + rules.delay);
                        }
                        return lost;
                    }
                }
                Some(Slot::Skipped) => {
                    self.run.pass(number);
                    self.first_outstanding = number + 1;
                    continue;
                }
                _ => {
                    self.first_outstanding = number + 1;
                    continue;
                }
            }
            self.first_outstanding = number + 1;
            self.declare_lost(number, rules, space, path, sink, &mut lost);
            if number < too_old {
                self.packets.clear(number);
            }
        }
        self.first_outstanding = next_number;
        lost
    }

    fn is_lost(&self, number: u64, packet: &SentPacket, rules: &LossRules) -> bool {
        self.largest_acked
            .and_then(|largest| largest.checked_sub(number))
            .is_some_and(|behind| {
                behind > 0
                    && (behind >= rules.packet_threshold
                        || packet.sent_at + rules.delay <= rules.now)
            })
    }

    #[cold]
    fn declare_lost(
        &mut self,
        number: u64,
        rules: &LossRules,
        space: Space,
        path: &mut Path,
        sink: &mut impl FrameSink,
        lost: &mut Lost,
    ) {
        let behind = self.largest_acked.unwrap_or(0).saturating_sub(number);
        let Some(packet) = self.packets.mark_lost(number, rules.now) else {
            return;
        };
        let is_overdue = behind > 0 && packet.sent_at + rules.delay <= rules.now;
        let cause = if behind >= rules.packet_threshold {
            LossReason::Reordering
        } else if is_overdue {
            LossReason::Time
        } else {
            LossReason::TooManyOutstanding
        };
        sink.packet_lost(rules.now, &packet.lost(space, number, cause));
        packet
            .frames
            .iter()
            .for_each(|frame| sink.lost(space, frame));
        self.eliciting_outstanding -= u64::from(packet.ack_eliciting);
        lost.packets += 1;
        if packet.path != path.id {
            return;
        }
        path.stats.packets_lost += 1;
        path.stats.bytes_lost += u64::from(packet.size);
        path.ecn.on_lost(packet.ecn);
        if packet.mtu_probe {
            self.run.pass(number);
            leave_flight(packet, path);
            path.discovery.on_probe_lost(packet.size as usize);
            return;
        }
        let (size, round_trip) = (packet.size as usize, path.rtt.smoothed);
        lost.black_hole |= space == Space::Data
            && path
                .discovery
                .on_lost(number, size, packet.sent_at, round_trip);
        let span = self.run.extend(number, packet, path.rtt.first_sample_at);
        if packet.in_flight {
            leave_flight(packet, path);
            path.delivery
                .on_lost(ByteSize::from_bytes(u64::from(packet.size)));
            lost.bytes += u64::from(packet.size);
            lost.newest_sent = packet.sent_at;
        }
        if span > rules.persistent_span {
            lost.persistent = true;
            self.run.interrupt();
        }
    }
}

fn report(now: Time, lost: &Lost, path: &mut Path) {
    let cause = if lost.persistent {
        LossCause::Timeout
    } else {
        LossCause::Acks
    };
    path.stats.congestion_events += 1;
    if lost.persistent {
        path.stats.persistent_congestion += 1;
        path.rtt.reset_min();
    }
    path.controller.on_loss(&LossSample {
        now,
        lost: ByteSize::from_bytes(lost.bytes),
        newest_sent: lost.newest_sent,
        cause,
        in_flight: ByteSize::from_bytes(path.in_flight),
    });
    path.update_pacing(now);
}
