//! Recovery: ACKs, loss detection, PTO, ECN counts (RFC 9002; RFC 9000, section 13).
//!
//! Each connection has a [`Recovery`] with the packets of its three spaces. The state of an address
//! pair (RTT, congestion controller, bytes in flight) is in the [`Path`] that each call takes. The
//! connection reports sent packets ([`Recovery::on_sent`]) and ACK frames ([`Recovery::on_ack`]),
//! and calls back at [`Recovery::timeout`]. A [`FrameSink`] receives the fate of frames.
//! [`ReceivedPackets`] is the other direction: which packets to acknowledge, and when.
//!
//! Packets of a path that the connection has left are acknowledged and lost like all others, but do
//! not affect the path in use or its controller.

mod ack;
mod ack_requests;
mod ecn_feedback;
mod gathering;
mod loss;
mod precision;
mod received;
mod sent_frame;
mod sent_packets;
mod stream_end;
#[cfg(test)]
mod tests;
mod timer;

use weir_congestion::PacketSent;
use weir_units::{ByteSize, Duration, Time};

use crate::observe::LossReason;
use crate::path::Path;
use crate::{Side, Space};

pub(crate) use ack_requests::AckRequests;
pub(crate) use ecn_feedback::EcnFeedback;
pub(crate) use precision::Precision;
pub(crate) use received::{AckPolicy, ReceivedPackets};
pub(crate) use sent_frame::{FrameSink, SentFrame, SentFrames};
pub(crate) use sent_packets::SentPacket;
pub(crate) use timer::{HandshakeState, TimeoutAction};

use loss::LossRun;
use sent_packets::{SentPackets, Slot};

/// The most packet numbers for which a receiver's ACK-only packets are kept: the peer acknowledges
/// them only together with other packets.
const UNACCOUNTED_SPAN: usize = 256;

/// The configuration of recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryConfig {
    /// The side of the connection.
    pub(crate) side: Side,
    /// The timer granularity (kGranularity): 50 µs in a data center, 1 ms in a wide area network.
    pub(crate) granularity: Duration,
    /// A packet this far behind an acknowledged number is lost (kPacketThreshold).
    pub(crate) packet_threshold: u64,
    /// The PTOs of continuous loss that make persistent congestion
    /// (kPersistentCongestionThreshold).
    pub(crate) persistent_congestion_threshold: u32,
    /// The longest time between two probe timeouts of 1-RTT packets, if longer than the probe timeout;
    /// zero for no limit.
    pub(crate) max_probe_interval: Duration,
    /// The idle time after which the controller is restarted, if longer than a PTO. The pacer
    /// bounds bursts after shorter pauses.
    pub(crate) idle_restart: Duration,
}

/// The packets of one space.
#[derive(Debug, Default)]
struct SpaceState {
    packets: SentPackets,
    /// No packet below this number is outstanding.
    first_outstanding: u64,
    largest_acked: Option<u64>,
    /// When the next packet is declared lost, if no ACK arrives before.
    loss_time: Option<Time>,
    /// When the last ack-eliciting packet was sent.
    last_eliciting: Time,
    /// The number of outstanding ack-eliciting packets.
    eliciting_outstanding: u64,
    ecn: EcnFeedback,
    run: LossRun,
}

/// Loss recovery of one connection.
#[derive(Debug)]
pub(crate) struct Recovery {
    config: RecoveryConfig,
    spaces: [SpaceState; 3],
    /// PTOs since the last packet from the peer.
    pub(crate) pto_count: u32,
    /// The peer's longest ACK delay.
    peer_max_ack_delay: Duration,
    /// The same while its deadlines are exact.
    peer_exact_ack_delay: Duration,
    /// Which deadlines are exact.
    pub(crate) precision: Precision,
    /// When a client that waits for address validation last set its timer.
    handshake_event: Time,
}

impl Recovery {
    /// Creates the recovery of a new connection.
    pub(crate) fn new(config: RecoveryConfig, precision: Precision) -> Self {
        // RFC 9000, section 18.2.
        let peer_max_ack_delay = Duration::from_millis(25);
        Self {
            config,
            spaces: Default::default(),
            pto_count: 0,
            peer_max_ack_delay,
            peer_exact_ack_delay: peer_max_ack_delay,
            precision,
            handshake_event: Time::ZERO,
        }
    }

    /// Returns the next packet number of a space.
    pub(crate) fn next_number(&self, space: Space) -> u64 {
        self.spaces[space as usize].packets.next_number()
    }

    /// Returns the largest number that the peer has acknowledged in a space.
    pub(crate) fn largest_acked(&self, space: Space) -> Option<u64> {
        self.spaces[space as usize].largest_acked
    }

    /// Whether ack-eliciting packets of a space are outstanding.
    pub(crate) fn has_eliciting_outstanding(&self, space: Space) -> bool {
        self.spaces[space as usize].eliciting_outstanding > 0
    }

    /// Sets the peer's max_ack_delay: always, and while its deadlines are exact.
    pub(crate) fn set_peer_max_ack_delay(&mut self, longest: Duration, exact: Duration) {
        self.peer_max_ack_delay = longest;
        self.peer_exact_ack_delay = exact.min(longest);
    }

    /// Skips a number. A peer that acknowledges it acknowledges packets that it has not received
    /// (RFC 9000, section 21.4).
    pub(crate) fn skip_number(&mut self, space: Space) {
        self.spaces[space as usize].packets.push(Slot::Skipped);
    }

    /// Records a sent packet with [`Recovery::next_number`] as its number. Times must not go
    /// backwards. Compiled into its callers, so that the packet is copied once only.
    #[inline(always)]
    pub(crate) fn on_sent(&mut self, space: Space, path: &mut Path, mut packet: SentPacket) {
        let now = packet.sent_at;
        let size = ByteSize::from_bytes(u64::from(packet.size));
        path.stats.packets_sent += 1;
        path.stats.bytes_sent += size.bytes();
        path.ecn.on_sent(packet.ecn);
        if packet.in_flight {
            if path.in_flight == 0 {
                self.restart_after_idle(now, path);
            }
            let prior = ByteSize::from_bytes(path.in_flight);
            packet.delivery = path.delivery.on_sent(now, size, prior);
            path.in_flight += size.bytes();
            path.controller.on_sent(&PacketSent {
                now,
                size,
                in_flight: ByteSize::from_bytes(path.in_flight),
            });
            path.on_in_flight(now, size.bytes());
        }
        if packet.ack_eliciting && space != Space::Data {
            self.handshake_event = now;
        }

        let state = &mut self.spaces[space as usize];
        if packet.ecn.is_capable() {
            state.ecn.on_sent();
        }
        if packet.ack_eliciting {
            state.last_eliciting = now;
            state.eliciting_outstanding += 1;
        }
        state.packets.push(Slot::Outstanding(packet));
        state.packets.drop_not_in_flight(UNACCOUNTED_SPAN);
        if state.is_overlong() {
            state.loss_time = Some(now);
        }
    }

    #[inline(never)]
    fn restart_after_idle(&self, now: Time, path: &mut Path) {
        let Some(since) = path.idle_since() else {
            return;
        };
        if now.since(since) > self.pto(path).max(self.config.idle_restart) {
            path.controller.on_idle_restart(now);
            path.update_pacing(now);
        }
    }

    /// Discards a space together with its keys (RFC 9002, section 6.4).
    pub(crate) fn discard(&mut self, space: Space, path: &mut Path) {
        let state = &mut self.spaces[space as usize];
        let next_number = state.packets.next_number();
        state.take_outstanding(|packet| leave_flight(packet, path));
        *state = SpaceState {
            packets: SentPackets::starting_at(next_number),
            ..SpaceState::default()
        };
        self.restart_backoff();
    }

    /// Sends rejected early data again as 1-RTT data; their fate carries no information about the
    /// path (RFC 9001, section 4.6.2).
    pub(crate) fn on_early_data_rejected(&mut self, path: &mut Path, sink: &mut impl FrameSink) {
        self.resend_all(Space::Data, path, sink);
    }

    /// Sends everything of an attempt without a handshake again, once there are keys; its fate
    /// carries no information about the path.
    pub(crate) fn on_attempt_abandoned(&mut self, path: &mut Path, sink: &mut impl FrameSink) {
        self.resend_all(Space::Data, path, sink);
        self.restart_backoff();
    }

    /// Returns the number of consecutive probe timeouts.
    pub(crate) fn probe_timeouts(&self) -> u32 {
        self.pto_count
    }

    /// Sends everything again after a Retry packet; packet numbers continue (RFC 9000, section
    /// 17.2.5.3).
    pub(crate) fn on_retry(&mut self, path: &mut Path, sink: &mut impl FrameSink) {
        self.resend_all(Space::Initial, path, sink);
        self.resend_all(Space::Data, path, sink);
        self.restart_backoff();
    }

    /// Declares the packets in flight on a path that the connection has left lost, so that they are
    /// sent again at once. This affects no path. ACKs may still arrive for them.
    pub(crate) fn on_path_left(&mut self, now: Time, path: &mut Path, sink: &mut impl FrameSink) {
        let state = &mut self.spaces[Space::Data as usize];
        let mut from = state.first_outstanding;
        while let Some(number) = state.packets.next_live(from, u64::MAX) {
            from = number + 1;
            let on_path =
                |slot: &Slot| matches!(slot, Slot::Outstanding(packet) if packet.path == path.id);
            if !state.packets.get(number).is_some_and(on_path) {
                continue;
            }
            if let Some(packet) = state.packets.mark_lost(number, now) {
                let lost = packet.lost(Space::Data, number, LossReason::PathLeft);
                sink.packet_lost(now, &lost);
                state.eliciting_outstanding -= u64::from(packet.ack_eliciting);
                path.stats.packets_lost += 1;
                path.stats.bytes_lost += u64::from(packet.size);
                packet
                    .frames
                    .iter()
                    .for_each(|frame| sink.lost(Space::Data, frame));
            }
        }
        state.loss_time = None;
        state.run.interrupt();
        path.discovery.on_path_left();
        path.in_flight = 0;
        self.restart_backoff();
    }

    fn resend_all(&mut self, space: Space, path: &mut Path, sink: &mut impl FrameSink) {
        let state = &mut self.spaces[space as usize];
        state.take_outstanding(|packet| {
            leave_flight(packet, path);
            packet
                .frames
                .iter()
                .for_each(|frame| sink.lost(space, frame));
        });
    }

    /// Reports the frames of the oldest `packets` ack-eliciting packets of a space as lost, for
    /// probes (RFC 9002, section 6.2.4), while the packets stay in flight. Returns the number of
    /// packets.
    pub(crate) fn oldest_unacked_frames(
        &self,
        space: Space,
        packets: usize,
        sink: &mut impl FrameSink,
    ) -> usize {
        let state = &self.spaces[space as usize];
        let mut found = 0;
        let mut from = state.first_outstanding;
        while found < packets
            && let Some(number) = state.packets.next_live(from, u64::MAX)
        {
            if let Some(Slot::Outstanding(packet)) = state.packets.get(number)
                && packet.ack_eliciting
                && !packet.mtu_probe
            {
                packet
                    .frames
                    .iter()
                    .for_each(|frame| sink.lost(space, frame));
                found += 1;
            }
            from = number + 1;
        }
        found
    }
}

impl SpaceState {
    /// Removes all outstanding packets from the ring.
    fn take_outstanding(&mut self, mut taken: impl FnMut(&SentPacket)) {
        while let Some(number) = self.packets.next_live(self.first_outstanding, u64::MAX) {
            self.first_outstanding = number + 1;
            if let Some(Slot::Outstanding(packet)) = self.packets.get(number) {
                taken(packet);
                self.packets.clear(number);
            }
        }
        self.eliciting_outstanding = 0;
        self.loss_time = None;
    }
}

/// Removes a packet from the bytes in flight of the path that it was sent on.
fn leave_flight(packet: &SentPacket, path: &mut Path) {
    if packet.in_flight && packet.path == path.id {
        path.in_flight = path.in_flight.saturating_sub(u64::from(packet.size));
    }
}
