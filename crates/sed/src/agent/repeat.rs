//! Duplicate ACKs for packets that a queue has dropped (RSED).

use weir_fabric::{ConnectionId, Direction, Output, Packet};
use weir_units::Time;

use super::Agent;
use super::queue::DroppedPacket;

impl<P: Packet + Clone + Send + 'static> Agent<P> {
    /// Queues a dropped packet until everything before it has arrived. Duplicates of an earlier ACK
    /// would retransmit another packet, which is not lost.
    pub(super) fn await_repeat(&mut self, now: Time, repeat: DroppedPacket) {
        let Some(connection) = self.connections.get_mut(repeat.id) else {
            return;
        };
        let half = connection.state.half_mut(repeat.direction);
        if let Some(port) = half.egress {
            half.awaited += 1;
            self.queues.wait(port, repeat);
            self.queues.schedule_check(port, now);
        }
    }

    pub(super) fn look_for_repeats(&mut self, now: Time, id: ConnectionId, direction: Direction) {
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        let half = connection.state.half(direction);
        if half.awaited > 0
            && let Some(port) = half.egress
        {
            self.queues.schedule_check(port, now);
        }
    }

    /// Makes duplicate ACKs for the due packets, one packet at a time, and only while the queue is
    /// below the threshold: all retransmissions at once would overflow it again.
    pub(super) fn repeat(&mut self, now: Time, out: &mut Output<'_, P>) {
        while let Some(port) = self.queues.repeat_due(now) {
            let Some(egress_port) = out.egress_port(port) else {
                return;
            };
            let (backlog, rate) = (
                egress_port.queue().backlog().size,
                egress_port.link().rate(),
            );
            if backlog >= self.config.threshold {
                let excess = backlog - self.config.threshold + self.config.packet;
                self.queues
                    .schedule_check(port, now + rate.time_for(excess));
                continue;
            }
            let connections = &mut self.connections;
            let ready = self.queues.next_ready(port, |repeat| {
                let half = connections
                    .get_mut(repeat.id)?
                    .state
                    .half_mut(repeat.direction);
                half.is_due(repeat.sequence)
            });
            if let Some(repeat) = ready {
                self.send_duplicates(repeat, out);
                let turn = rate.time_for(self.config.packet);
                self.queues.schedule_check(port, now + turn);
            }
        }
    }

    pub(super) fn send_duplicates(&mut self, repeat: DroppedPacket, out: &mut Output<'_, P>) {
        let Some(connection) = self.connections.get_mut(repeat.id) else {
            return;
        };
        let half = connection.state.half_mut(repeat.direction);
        let Some((ingress, mut packet)) = half.template.clone() else {
            return;
        };
        half.on_repeated();
        packet.set_window(half.forwarded_window);
        self.counters.repeats += 1;
        for _ in 0..DUPLICATES {
            out.inject(ingress, packet.clone());
        }
    }
}

/// How many duplicate ACKs report a loss (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;
