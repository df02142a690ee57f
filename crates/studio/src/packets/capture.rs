//! The hops of packets as a simulation shows them.

use std::collections::VecDeque;

use weir_results::capture::CapturedPacket;
use weir_results::{Observation, OutputError, Recorder};

/// A packet that has arrived at the other end of a port's link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Captured {
    /// The place of the port in the topology.
    pub(super) port: usize,
    pub(super) packet: CapturedPacket,
}

/// Keeps the last hops, from when it is opened.
#[derive(Debug)]
pub(super) struct Hops {
    is_open: bool,
    /// The ports of the only flow that is wanted, if only one is; none of its ports while it is not known.
    only: Option<Option<(u16, u16)>>,
    most: usize,
    hops: VecDeque<Captured>,
    is_full: bool,
}

impl Hops {
    /// Keeps nothing yet, and at most this many then.
    pub(super) fn closed(most: usize) -> Self {
        Self {
            is_open: false,
            only: None,
            most,
            hops: VecDeque::new(),
            is_full: false,
        }
    }

    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    /// Keeps only the packets of the flow with these ports.
    pub(super) fn only(&mut self, ports: Option<(u16, u16)>) {
        self.only = Some(ports);
    }

    /// Returns whether earlier hops had to be forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn taken(&mut self) -> Vec<Captured> {
        std::mem::take(&mut self.hops).into()
    }

    fn is_wanted(&self, packet: &CapturedPacket) -> bool {
        let ports = (packet.source.port(), packet.destination.port());
        match self.only {
            None => true,
            Some(None) => false,
            Some(Some(wanted)) => ports == wanted || (ports.1, ports.0) == wanted,
        }
    }
}

impl Recorder for Hops {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        if let Observation::Packet(port, packet) = observation
            && self.is_wanted(packet)
        {
            if self.hops.len() == self.most {
                self.hops.pop_front();
                self.is_full = true;
            }
            self.hops.push_back(Captured {
                port,
                packet: *packet,
            });
        }
        Ok(())
    }

    fn wants_packets(&self) -> bool {
        self.is_open
    }

    fn wants_samples(&self) -> bool {
        false
    }
}
