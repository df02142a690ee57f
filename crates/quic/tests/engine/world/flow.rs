//! Flows that measure silences, over paths with a changing MTU.

use weir_quic::{ConnectionHandle, Direction, PathSnapshot, StreamId, TransportConfig};
use weir_units::{ByteSize, Duration, Rate, Time};

use super::{Plan, World, pattern};

pub(crate) fn bytes(count: u64) -> ByteSize {
    ByteSize::from_bytes(count)
}

pub(crate) fn data_center(packet_size: u64) -> TransportConfig {
    TransportConfig {
        packet_size: Some(bytes(packet_size)),
        ..TransportConfig::data_center()
    }
}

pub(crate) fn plan(transport: TransportConfig) -> Plan {
    Plan {
        client: transport.clone(),
        server: transport,
        ..Plan::default()
    }
}

pub(crate) fn wan_plan() -> Plan {
    Plan {
        rate: Rate::from_mbps(100),
        delay: Duration::from_millis(20),
        ..plan(TransportConfig::wan())
    }
}

/// Both directions carry IP packets of this size.
pub(crate) fn set_path_mtu(world: &mut World, mtu: u64) {
    for pipe in &mut world.egress_ports {
        pipe.set_mtu(bytes(mtu));
    }
}

pub(crate) fn path(world: &mut World, host: usize, handle: ConnectionHandle) -> PathSnapshot {
    world.connection(host, handle).stats().paths.swap_remove(0)
}

/// A stream from one host to the other, with the arrival times of its data.
pub(crate) struct Flow {
    from: (usize, ConnectionHandle),
    to: (usize, ConnectionHandle),
    id: StreamId,
    accepted: Option<StreamId>,
    data: Vec<u8>,
    written: usize,
    received: Vec<u8>,
    ended: bool,
    heard: Time,
    pub(crate) longest_silence: Duration,
}

impl Flow {
    pub(crate) fn new(
        world: &mut World,
        from: (usize, ConnectionHandle),
        to: (usize, ConnectionHandle),
        length: usize,
    ) -> Self {
        let direction = Direction::Unidirectional;
        let id = world.connection(from.0, from.1).open(direction).unwrap();
        Self {
            from,
            to,
            id,
            accepted: None,
            data: pattern(length),
            written: 0,
            received: Vec::new(),
            ended: false,
            heard: world.now,
            longest_silence: Duration::ZERO,
        }
    }

    /// Writes and reads as much as possible; `true` at the end.
    pub(crate) fn poll(&mut self, world: &mut World) -> bool {
        let sender = world.connection(self.from.0, self.from.1);
        while self.written < self.data.len() {
            match sender.write(self.id, &self.data[self.written..]) {
                Ok(count) => self.written += count,
                Err(_) => break,
            }
            if self.written == self.data.len() {
                sender.finish(self.id).unwrap();
            }
        }
        world.transmit();
        let now = world.now;
        let receiver = world.connection(self.to.0, self.to.1);
        self.accepted = self
            .accepted
            .or_else(|| receiver.accept(Direction::Unidirectional));
        let Some(id) = self.accepted else {
            return false;
        };
        while !self.ended {
            match receiver.read(id, usize::MAX) {
                Ok(Some(bytes)) => {
                    self.received.extend_from_slice(&bytes);
                    self.longest_silence = self.longest_silence.max(now.since(self.heard));
                    self.heard = now;
                }
                Ok(None) => self.ended = true,
                Err(_) => break,
            }
        }
        // Sends the limits raised by reading.
        world.transmit();
        self.ended
    }

    /// Runs until `received` bytes have arrived.
    pub(crate) fn run_to(&mut self, world: &mut World, received: usize, limit: Duration) {
        let arrived = world.run_until(limit, |world| {
            self.poll(world);
            self.received.len() >= received
        });
        assert!(arrived, "{} of {received} bytes", self.received.len());
        assert_eq!(self.received, self.data[..self.received.len()]);
    }
}
