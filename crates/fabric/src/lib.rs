//! The network between hosts: queues, marking, links, faults and switches.
//!
//! The crate reads no clock and draws from no global generator. Time is an argument, the caller asks
//! for the next wake-up time, and every random choice follows from a seed. The caller defines its
//! packets by the [`Packet`] trait.
//!
//! A packet passes through an [`EgressPort`] in this order:
//!
//! - [`Queue`]: a list of [`Rule`]s marks, drops or queues it. [`discipline`] has named lists. An
//!   [`Occupancy`] keeps statistics of the queue length over time.
//! - [`Scheduler`], in few ports: several queues, of which the first with packets sends next, and [`Codel`],
//!   which drops packets that leave a queue.
//! - [`Link`]: sends packets one after the other at a rate, and delivers each after a delay.
//! - [`Faults`]: lose, duplicate, damage, reorder or delay it, at random or by [`Script`].
//!
//! A [`Switch`] has an [`EgressPort`] at each port. Before it, packets pass the switch's [`Element`]s,
//! which may rewrite, hold, drop and inject packets. [`Routes`] choose the port. The queues may share a
//! buffer ([`SharedBuffer`]). A [`Timeline`] schedules changes of a port.
//!
//! An element for TCP tracks its [`Connections`], and lowers the windows that receivers announce by a
//! [`WindowLimit`].
//!
//! Every part counts arrived, departed and dropped packets, the latter by [`DropReason`]; the
//! [`StageCounters`] always balance.
//!
//! ```
//! use weir_fabric::{EgressPort, FaultSettings, Faults, Link, Packet, Probability, Queue, Rule};
//! use weir_units::{ByteSize, Duration, Rate, Time};
//! use weir_wire::Ecn;
//!
//! #[derive(Clone)]
//! struct Datagram {
//!     ecn: Ecn,
//!     payload: Vec<u8>,
//! }
//!
//! impl Packet for Datagram {
//!     fn length(&self) -> ByteSize {
//!         // 20 bytes of IPv4 header, 8 of UDP.
//!         ByteSize::from_bytes(28 + self.payload.len() as u64)
//!     }
//!     fn ecn(&self) -> Ecn {
//!         self.ecn
//!     }
//!     fn set_ecn(&mut self, ecn: Ecn) {
//!         self.ecn = ecn;
//!     }
//!     fn corrupt(&mut self, entropy: u64) -> bool {
//!         weir_fabric::flip_byte(&mut self.payload, entropy)
//!     }
//! }
//!
//! // A port that marks above 15 kB and holds 150 kB; 10 Gbit/s, 25 µs delay; 1 % of the packets are
//! // lost.
//! let seed = 1;
//! let rules = [
//!     Rule::mark_above(ByteSize::from_bytes(15_000)),
//!     Rule::tail_drop(ByteSize::from_bytes(150_000)),
//! ];
//! let link = Link::new(Rate::from_gbps(10), Duration::from_micros(25))
//!     .with_mtu(ByteSize::from_bytes(1500));
//! let faults = FaultSettings { loss: Probability::new(0.01)?, ..FaultSettings::default() };
//! let mut port = EgressPort::new(Queue::new(rules, seed), link, Faults::new(faults, seed));
//!
//! for _ in 0..100 {
//!     port.send(Time::ZERO, Datagram { ecn: Ecn::Ect0, payload: vec![0; 1472] });
//! }
//! let mut marked = 0;
//! while let Some(now) = port.timeout() {
//!     while let Some(packet) = port.poll_delivered(now) {
//!         marked += usize::from(packet.ecn == Ecn::Ce);
//!     }
//! }
//! // One was being sent and eleven were waiting when the queue first exceeded 15 kB.
//! assert_eq!(port.queue().marked().packets, 88);
//! assert!(marked <= 88, "a mark may be lost with its packet");
//! assert!(port.counters().balance(port.inside()));
//! # Ok::<(), weir_fabric::ProbabilityError>(())
//! ```

mod clamp;
mod codel;
mod connections;
mod counters;
pub mod discipline;
mod egress_port;
mod faults;
mod flow_hash;
mod link;
mod occupancy;
mod packet;
mod prefetch;
mod queue;
mod random;
mod red;
mod rule;
mod scheduler;
mod switch;
mod timeline;
mod waiting;

pub use clamp::{Clamped, WindowLimit};
pub use codel::{Codel, CodelSettings, CodelVerdict};
pub use connections::{
    Connection, ConnectionCounters, ConnectionId, ConnectionLimits, Connections, Direction,
    Handshake, Offer,
};
pub use counters::{DropReason, Drops, PacketCount, StageCounters};
pub use egress_port::EgressPort;
pub use faults::{FaultCounters, FaultSettings, Faults, Reordering, Script, Verdict};
pub use flow_hash::mix;
pub use link::{ETHERNET_FRAMING, Link, SharedLinkSettings};
pub use occupancy::Occupancy;
pub use packet::{Burst, Packet, flip_byte};
pub use prefetch::{prefetch, prefetch_line};
pub use queue::{Admission, Queue};
pub use random::{Probability, ProbabilityError};
pub use red::{Ramp, Red};
pub use rule::{Action, Class, Rule, Trigger};
pub use scheduler::{ClassQueue, Classifier, Scheduler};
pub use switch::{
    BufferError, Element, LoadBalancing, Output, PortIndex, Routes, SharedBuffer, Switch,
    SwitchError,
};
pub use timeline::{ConflictingChanges, PortChange, Timeline};
