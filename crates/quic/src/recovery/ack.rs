//! Processing of ACK frames (RFC 9002, sections 5 and 7, and appendix A.7).

use std::ops::RangeInclusive;

use weir_congestion::{AckSample, SpuriousLoss};
use weir_units::{ByteSize, Duration, Time};

use super::ecn_feedback::EctAcked;
use super::sent_packets::{SentPacket, Slot};
use super::{FrameSink, Recovery, SpaceState, leave_flight};
use crate::frame::Ack;
use crate::path::{EcnPhase, Path};
use crate::{Code, Side, Space, TransportError};

/// The frame type in errors.
const ACK_FRAME: u64 = 0x02;

/// The result of an ACK frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckOutcome {
    /// Newly acknowledged packets.
    pub(crate) packets_acked: u64,
    /// Packets declared lost by it.
    pub(crate) packets_lost: u64,
    /// Bytes removed from flight by the ACK, plus bytes of spurious losses.
    pub(crate) acked: ByteSize,
    /// Of these, the CE-marked bytes reported to the controller.
    pub(crate) ce_marked: ByteSize,
    /// The RTT sample, without the peer's delay.
    pub(crate) rtt: Option<Duration>,
    /// Whether its ECN counts ended the use of ECN on the path.
    pub(crate) ecn_failed: bool,
}

/// The sum of the packets that one ACK frame newly acknowledges.
#[derive(Default)]
struct Acked {
    packets: u64,
    eliciting: bool,
    /// When the largest number of the frame was sent, if it is newly acknowledged.
    largest_sent_at: Option<Time>,
    ect: EctAcked,
    /// Bytes that were in flight on the path in use.
    bytes: u64,
    /// When the newest of these packets was sent.
    newest_sent: Time,
    spurious_bytes: u64,
    spurious_newest_sent: Time,
}

impl Recovery {
    /// Handles an ACK frame; `ack_delay` is the delay that the peer reports.
    ///
    /// The controller receives at most one call each of `on_spurious_loss`, `on_loss` and `on_ack`,
    /// in this order. The bytes of spurious losses count among the acknowledged ones.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the frame acknowledges a packet that was never sent.
    #[expect(
        clippy::too_many_arguments,
        reason = "the frame, when and where it came, and who has to know"
    )]
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        space: Space,
        ack: &Ack<'_>,
        ack_delay: Duration,
        path: &mut Path,
        confirmed: bool,
        sink: &mut impl FrameSink,
    ) -> Result<AckOutcome, TransportError> {
        let state = &mut self.spaces[space as usize];
        if ack.largest >= state.packets.next_number() {
            return Err(violation("a packet is acknowledged that was not sent"));
        }
        let prior_in_flight = path.in_flight;
        let mut acked = Acked::default();
        for range in ack.ranges() {
            state.acknowledge(now, space, range, ack.largest, path, sink, &mut acked)?;
        }
        let in_order = state
            .largest_acked
            .is_none_or(|before| ack.largest > before);
        state.largest_acked = state.largest_acked.max(Some(ack.largest));

        let ecn_before = path.ecn.phase;
        let marks = state
            .ecn
            .on_ack(ack.ecn, in_order, acked.ect, &mut path.ecn);
        path.stats.ce_marks += marks;
        let ecn_failed = ecn_before != path.ecn.phase && path.ecn.phase == EcnPhase::Failed;
        if acked.packets == 0 {
            return Ok(AckOutcome {
                ecn_failed,
                ..AckOutcome::default()
            });
        }

        let rtt = self.sample_rtt(now, space, &acked, ack_delay, path, confirmed);
        report_spurious_losses(now, &acked, path);
        let packets_lost = self.detect_lost(now, space, path, sink);
        let ce_marked = if acked.bytes > 0 {
            let state = &mut self.spaces[space as usize];
            let ce_marked = state.ecn.take_bytes(acked.bytes);
            report_ack(now, &acked, ce_marked, rtt, prior_in_flight, path);
            ce_marked
        } else {
            0
        };
        path.update_pacing(now);

        // ACKs of another path's packets carry no information about the path in use.
        if self.is_address_validated(confirmed) && acked.eliciting {
            self.restart_backoff();
        }
        self.handshake_event = now;
        Ok(AckOutcome {
            packets_acked: acked.packets,
            packets_lost,
            acked: ByteSize::from_bytes(acked.bytes),
            ce_marked: ByteSize::from_bytes(ce_marked),
            rtt,
            ecn_failed,
        })
    }

    /// Takes an RTT sample if the largest acknowledged packet is newly acknowledged and an
    /// ack-eliciting packet is among the new ones (RFC 9002, section 5.1).
    fn sample_rtt(
        &self,
        now: Time,
        space: Space,
        acked: &Acked,
        ack_delay: Duration,
        path: &mut Path,
        confirmed: bool,
    ) -> Option<Duration> {
        let sent_at = acked.largest_sent_at.filter(|_| acked.eliciting)?;
        // RFC 9002, section 5.3: the delay is capped at the peer's max_ack_delay once the handshake
        // is confirmed. Handshake packets are acknowledged at once (RFC 9000, section 13.2.5).
        let delay = match (space, confirmed) {
            (Space::Data, true) => ack_delay.min(self.peer_max_ack_delay),
            (Space::Data, false) => ack_delay,
            (Space::Initial | Space::Handshake, _) => Duration::ZERO,
        };
        Some(path.rtt.on_sample(now, now.since(sent_at), delay))
    }

    /// Whether the peer has validated our address for certain (RFC 9002, appendix A.7).
    pub(super) fn is_address_validated(&self, confirmed: bool) -> bool {
        self.config.side == Side::Server
            || confirmed
            || self.largest_acked(Space::Handshake).is_some()
    }
}

impl SpaceState {
    #[expect(clippy::too_many_arguments, reason = "as for `Recovery::on_ack`")]
    fn acknowledge(
        &mut self,
        now: Time,
        space: Space,
        range: RangeInclusive<u64>,
        largest: u64,
        path: &mut Path,
        sink: &mut impl FrameSink,
        acked: &mut Acked,
    ) -> Result<(), TransportError> {
        let (mut from, to) = range.into_inner();
        while let Some(number) = self.packets.next_live(from, to) {
            from = number + 1;
            let packet = match self.packets.get(number) {
                Some(Slot::Outstanding(packet)) => {
                    self.eliciting_outstanding -= u64::from(packet.ack_eliciting);
                    leave_flight(packet, path);
                    packet
                }
                Some(Slot::Lost { packet, .. }) => {
                    self.run.interrupt();
                    acked.add_spurious(packet, path);
                    packet
                }
                Some(Slot::Skipped) => {
                    return Err(violation(
                        "a packet number is acknowledged that was left out",
                    ));
                }
                Some(Slot::Gone) | None => continue,
            };
            packet
                .frames
                .iter()
                .for_each(|frame| sink.acked(space, frame));
            acked.add(now, packet, number == largest, path);
            if packet.path == path.id {
                if packet.mtu_probe {
                    path.discovery.on_probe_acked(packet.size as usize)
                } else {
                    path.discovery.on_acked(number, packet.size as usize)
                }
            }
            self.packets.clear(number);
        }
        Ok(())
    }
}

impl Acked {
    fn add(&mut self, now: Time, packet: &SentPacket, is_largest: bool, path: &mut Path) {
        let size = u64::from(packet.size);
        let on_path = packet.path == path.id;
        self.packets += 1;
        path.stats.packets_acked += 1;
        if packet.ecn.is_capable() {
            self.ect.packets += 1;
            self.ect.on_path += u64::from(on_path);
            self.ect.bytes += size;
            path.stats.ect_acked += 1;
        }
        if !on_path {
            return;
        }
        self.eliciting |= packet.ack_eliciting;
        if is_largest {
            self.largest_sent_at = Some(packet.sent_at);
        }
        if packet.in_flight {
            self.bytes += size;
            self.newest_sent = self.newest_sent.max(packet.sent_at);
            path.delivery.on_acked(
                now,
                &packet.delivery,
                packet.sent_at,
                ByteSize::from_bytes(size),
            );
        }
    }

    fn add_spurious(&mut self, packet: &SentPacket, path: &mut Path) {
        if packet.in_flight && packet.path == path.id && !packet.mtu_probe {
            path.stats.spurious_losses += 1;
            self.spurious_bytes += u64::from(packet.size);
            self.spurious_newest_sent = self.spurious_newest_sent.max(packet.sent_at);
        }
    }
}

fn report_spurious_losses(now: Time, acked: &Acked, path: &mut Path) {
    if acked.spurious_bytes > 0 {
        path.controller.on_spurious_loss(&SpuriousLoss {
            now,
            bytes: ByteSize::from_bytes(acked.spurious_bytes),
            newest_sent: acked.spurious_newest_sent,
        });
    }
}

fn report_ack(
    now: Time,
    acked: &Acked,
    ce_marked: u64,
    rtt: Option<Duration>,
    prior_in_flight: u64,
    path: &mut Path,
) {
    // Without an RTT there is no minimum interval for a rate sample.
    let min_interval = if path.rtt.has_sample() {
        path.rtt.min
    } else {
        Duration::ZERO
    };
    let delivery = path.delivery.sample(min_interval);
    if let Some(delivery) = &delivery {
        path.on_delivery(delivery);
    }
    let sample = AckSample {
        now,
        acked: ByteSize::from_bytes(acked.bytes),
        ce_marked: ByteSize::from_bytes(ce_marked),
        ece: false,
        rtt,
        smoothed_rtt: path.rtt.smoothed,
        min_rtt: path.rtt.min,
        prior_in_flight: ByteSize::from_bytes(prior_in_flight),
        in_flight: ByteSize::from_bytes(path.in_flight),
        newest_sent: acked.newest_sent,
        delivery,
        app_limited: path.is_app_limited(acked.newest_sent),
        is_recovering: false,
        round_ended: path.ends_round(now, acked.newest_sent),
    };
    path.stats.congestion_events += u64::from(ce_marked > 0);
    path.controller.on_ack(&sample);
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(Code::PROTOCOL_VIOLATION, reason).in_frame(ACK_FRAME)
}
