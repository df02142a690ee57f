//! Frames on their way from a host into the network.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use weir_enforce::port::Port;
use weir_enforce::segment::{FramePools, Segment};
use weir_network::Network;
use weir_units::Time;

use crate::clock::Clock;

/// How many frames are taken from one interface before the others, and what is due, have their turn; and
/// how many segments.
const FRAMES: usize = 32;
const SEGMENTS: u32 = 64;

/// What frames are read into, and where they are to go.
#[derive(Debug)]
pub(super) struct RxBatch {
    clock: Clock,
    pool: FramePools,
    /// Which destination of the network an address is.
    pub(super) destinations: FxHashMap<IpAddr, u32>,
    /// Frames that were read.
    pub(super) read: u64,
    /// Of these, what is not IP or for nobody: neighbour discovery, for instance.
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

    /// Takes what a host has sent by its `port`, while its link has room; what is there may have been
    /// `there_since`. Tells whether the interface still exists.
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
                // It may come back.
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
