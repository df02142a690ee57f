//! Window limits: lowered in passing packets, and released by order or when the lease expires.

use weir_fabric::{Clamped, ConnectionId, Direction, Output, Packet, PortIndex, WindowLimit};
use weir_units::{ByteSize, Time};
use weir_wire::FlowKey;
use weir_wire::tcp::{Flags, Segment};

use super::Agent;
use super::flow::FlowDirection;

impl<P: Packet + Clone + Send + 'static> Agent<P> {
    /// Lowers the window that a packet offers to the other end, and keeps a copy of pure ACKs.
    pub(super) fn clamp(
        &mut self,
        now: Time,
        id: ConnectionId,
        direction: Direction,
        ingress: PortIndex,
        packet: &mut P,
        segment: &Segment,
    ) {
        let gentle = self.opening_window(id, direction, segment);
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let handshake = connection.handshake;
        // A sender that may not even send one segment gets no ACK that could later resume it.
        let full = handshake.segment_size(direction.reversed()).unwrap_or(1);
        let scale = handshake.scale_of(segment, direction);
        let half = connection.state.half_mut(direction.reversed());
        let plain = segment.payload == 0 && !segment.flags.intersects(SPECIAL);
        if plain {
            half.template = Some((ingress, packet.clone()));
        }
        let limit = if segment.flags.contains(Flags::SYN) {
            half.limit.map(|limit| limit.max(full)).or(gentle)
        } else {
            half.limit
        };
        let clamped = limit.map(|limit| limit_of(limit).clamp(packet, &handshake, direction));
        let shown = match clamped {
            Some(Clamped::Lowered) => {
                self.counters.clamped += 1;
                packet.tcp().map_or(0, |segment| segment.window)
            }
            Some(Clamped::UnknownScale) => {
                self.counters.unknown_scale += 1;
                segment.window
            }
            Some(Clamped::Kept) | None => segment.window,
        };
        // The window of a SYN is not scaled.
        if !segment.flags.contains(Flags::SYN) {
            half.forwarded_window = shown;
        }
        if let (true, true, Some(scale)) = (
            self.config.never_stops,
            segment.flags.contains(Flags::ACK),
            scale,
        ) {
            half.note_window_end(now, segment.acknowledgment + (u32::from(shown) << scale));
        }
    }

    /// Whether a segment is to be dropped because its sender ignores its window.
    pub(super) fn is_policed(
        &self,
        id: ConnectionId,
        direction: Direction,
        segment: &Segment,
    ) -> bool {
        if !self.config.never_stops || segment.payload == 0 {
            return false;
        }
        let half = self.connections.get(id).map(|it| it.state.half(direction));
        half.is_some_and(|half| half.limit.is_some() && half.exceeds_window(segment.end()))
    }

    /// Returns the window of a SYN-ACK where there are many flows already.
    pub(super) fn opening_window(
        &self,
        id: ConnectionId,
        direction: Direction,
        segment: &Segment,
    ) -> Option<u32> {
        let above = self.config.single_segment_above?;
        if !segment.flags.contains(Flags::SYN | Flags::ACK) {
            return None;
        }
        let connection = self.connections.get(id)?;
        let port = connection.state.half(direction.reversed()).egress?;
        let open = self.open.get(port.index()).copied().unwrap_or(0);
        (open > above).then(|| connection.handshake.segment_size(direction.reversed()))?
    }

    /// Sets a flow's limit. A flow that waits for its window and may continue gets a window update, as
    /// no ACK may be on its way.
    pub(super) fn set_limit(
        &mut self,
        now: Time,
        flow: &FlowKey,
        limit: Option<u32>,
        out: &mut Output<'_, P>,
    ) {
        let Some((id, direction)) = self.find(flow) else {
            return;
        };
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let handshake = connection.handshake;
        let half = connection.state.half_mut(direction);
        let was_stopped = half.limit == Some(0);
        let full = handshake.segment_size(direction).unwrap_or(1);
        let limit = limit.map(|limit| {
            if self.config.never_stops {
                limit.max(full)
            } else {
                limit
            }
        });
        half.limit = limit;
        half.is_inherited = false;
        let scale = handshake.window_scale(direction.reversed()).unwrap_or(0);
        let shown = u32::from(half.forwarded_window) << scale;
        let waits = if self.config.never_stops {
            half.in_flight().saturating_add(full) > shown
        } else {
            was_stopped && limit != Some(0)
        };
        if !waits {
            return;
        }
        let Some((ingress, mut packet)) = half.template.clone() else {
            return;
        };
        if let Some(limit) = limit {
            limit_of(limit).clamp(&mut packet, &handshake, direction.reversed());
        }
        let window = packet.tcp().map_or(0, |segment| segment.window);
        if self.config.never_stops {
            if window <= half.forwarded_window {
                return;
            }
            // Data may have carried later ACKs than the kept one; a sender ignores an old ACK's window.
            if let Some(upto) = half.acknowledged_upto() {
                packet.set_acknowledgment(upto);
                half.note_window_end(now, upto + (u32::from(window) << scale));
            }
        }
        half.forwarded_window = window;
        self.counters.updates += 1;
        out.inject(ingress, packet);
    }

    /// Releases all flows after the controller has been silent for a lease.
    pub(super) fn expire(&mut self, now: Time, out: &mut Output<'_, P>) {
        self.leased_until = None;
        self.inherited_until = None;
        self.counters.expired += 1;
        self.release_where(now, out, |_| true);
    }

    /// Marks the limits as inherited when another controller has started: they hold for a lease, until
    /// it orders new ones.
    pub(super) fn inherit(&mut self, now: Time) {
        for (_, connection) in self.connections.iter_mut() {
            for direction in [Direction::Forward, Direction::Reverse] {
                let half = connection.state.half_mut(direction);
                half.is_inherited = half.limit.is_some();
            }
        }
        self.inherited_until = Some(now + self.config.lease);
    }

    /// Releases the limits of an earlier controller that the current one has not renewed.
    pub(super) fn release_inherited(&mut self, now: Time, out: &mut Output<'_, P>) {
        self.inherited_until = None;
        self.release_where(now, out, |half| half.is_inherited);
    }

    fn release_where(
        &mut self,
        now: Time,
        out: &mut Output<'_, P>,
        is_over: impl Fn(&FlowDirection<P>) -> bool,
    ) {
        let mut limited = Vec::new();
        for (_, connection) in self.connections.iter() {
            let flow = connection.flow;
            for (direction, flow) in [
                (Direction::Forward, flow),
                (Direction::Reverse, flow.reversed()),
            ] {
                let half = connection.state.half(direction);
                if half.limit.is_some() && is_over(half) {
                    limited.push(flow);
                }
            }
        }
        for flow in limited {
            self.set_limit(now, &flow, None, out);
        }
    }
}

/// Segments that are not kept for retransmission.
const SPECIAL: Flags = Flags::from_bits(Flags::SYN.bits() | Flags::FIN.bits() | Flags::RST.bits());

/// Whole segments, or nothing: a window that is rounded below one segment would stop the flow.
fn limit_of(window: u32) -> WindowLimit {
    let allowed = ByteSize::from_bytes(window.into());
    WindowLimit {
        allowed,
        floor: allowed,
    }
}
