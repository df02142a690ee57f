//! Flows at a constant rate.

use weir_network::Random;
use weir_scenario::{Arrivals, Group, Transport, Workload};
use weir_units::{ByteSize, Duration, Rate, Time};

use super::{Application, HostPair, TimerQueue, stretched};
use crate::flows::FlowId;
use crate::world::{Side, World};

/// The packet intervals.
#[derive(Debug)]
pub(super) struct PacketSchedule {
    interval: Duration,
    arrivals: Arrivals,
    random: Random,
}

#[derive(Debug)]
pub(super) struct Cbr {
    group: u32,
    starts: TimerQueue<HostPair>,
    sends: TimerQueue<FlowId>,
    ticks: PacketSchedule,
    /// The data of each packet or write.
    payload: ByteSize,
    is_stream: bool,
}

impl PacketSchedule {
    pub(super) fn new(rate: Rate, packet: ByteSize, arrivals: Arrivals, random: Random) -> Self {
        Self {
            // With more than one packet per nanosecond time would stand still.
            interval: rate.time_for(packet).max(Duration::from_nanos(1)),
            arrivals,
            random,
        }
    }

    /// Sets the rate, and returns by how much intervals become longer.
    fn set_rate(&mut self, rate: Rate, packet: ByteSize) -> f64 {
        let before = self.interval;
        self.interval = rate.time_for(packet).max(Duration::from_nanos(1));
        self.interval.as_secs_f64() / before.as_secs_f64()
    }

    fn next(&mut self) -> Duration {
        match self.arrivals {
            Arrivals::Regular => self.interval,
            Arrivals::Poisson => self.random.exponential(self.interval),
        }
    }
}

impl Cbr {
    pub(super) fn new(
        number: u32,
        starts: TimerQueue<HostPair>,
        group: &Group,
        packet: ByteSize,
        ticks: PacketSchedule,
    ) -> Self {
        let is_stream = !matches!(group.transport, Transport::Udp { .. });
        Self {
            group: number,
            starts,
            sends: TimerQueue::new(),
            ticks,
            payload: group.transport.data_of(packet),
            is_stream,
        }
    }
}

impl Application for Cbr {
    fn timeout(&self) -> Option<Time> {
        let times = [self.starts.timeout(), self.sends.timeout()];
        times.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while let Some(pair) = self.starts.due(now) {
            let flow = world.open(now, self.group, pair, None);
            self.sends.note(now, flow);
        }
        while let Some(flow) = self.sends.due(now) {
            if self.is_stream {
                world.write(now, flow, Side::Initiator, self.payload)
            } else {
                world.send_datagram(now, flow, self.payload.bytes() as u32)
            }
            self.sends.note(now + self.ticks.next(), flow);
        }
    }

    fn change_load(&mut self, now: Time, group: &Group) {
        let Workload::Cbr { rate, packet, .. } = group.workload else {
            return;
        };
        let factor = self.ticks.set_rate(rate, packet);
        self.sends
            .move_all(|time| stretched(time, now.min(time), factor));
    }

    fn on_delivered(&mut self, _: Time, _: FlowId, _: &mut World) {}
}
