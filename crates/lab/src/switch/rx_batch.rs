//! Reads frames from a host's interface into the network.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use weir_enforce::port::Port;
use weir_enforce::segment::{FramePools, Segment};
use weir_network::Network;
use weir_units::Time;

use crate::clock::Clock;

/// The limits on frames and segments read from one interface before other interfaces and due events have
/// their turn.
const FRAMES: usize = 32;
const SEGMENTS: u32 = 64;

/// Reads frames, and routes them to their destinations.
#[derive(Debug)]
pub(super) struct RxBatch {
    clock: Clock,
    pool: FramePools,
    /// The network's destination of each address.
    pub(super) destinations: FxHashMap<IpAddr, u32>,
    /// Frames read.
    pub(super) read: u64,
    /// Of these, frames that are not IP or have no destination here: neighbour discovery, for instance.
    pub(super) ignored: u64,
}

impl RxBatch {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            pool: FramePools::new(),
            destinations: FxHashMap::default(),
            read: 0,
            ignored: 0,
        }
    }

    /// Reads what a host has sent by its `port`, while its link has room. Frames may have been waiting
    /// since `there_since`. Returns whether the interface still exists.
    pub(super) fn read(
        &mut self,
        device: &Port,
        port: u32,
        there_since: Time,
        network: &mut Network<Segment>,
    ) -> bool {
        let mut segments = 0;
        for _ in 0..FRAMES {
            let now = self.clock.now();
            if !network.has_room(now, port) {
                return true;
            }
            let frame = self.pool.reading();
            let length = match device.receive(frame.buffer_mut()) {
                Ok(Some(length)) => length,
                Ok(None) => return true,
                // The interface is down; it may come up again.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => return true,
                Err(_) => return false,
            };
            self.read += 1;
            let known = match frame.parse(length) {
                Ok(()) => self.destinations.get(&frame.flow().destination),
                Err(_) => None,
            };
            let Some(&destination) = known else {
                self.ignored += 1;
                continue;
            };
            let frame = self.pool.keep(now.since(there_since));
            for index in 0..frame.frame.segments() {
                let segment = Segment::new(Arc::clone(&frame), index, destination);
                network.send(now, port, segment);
            }
            segments += u32::from(frame.frame.segments());
            if segments > SEGMENTS {
                return true;
            }
        }
        true
    }
}
