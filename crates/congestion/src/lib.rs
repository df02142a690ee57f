//! Congestion control algorithms behind one trait, and a registry by name.
//!
//! A transport owns a boxed [`Controller`] per path, tells it what happened (packets sent, ACKs,
//! losses) and asks it what may be sent: a window, a pacing rate, or both. The algorithms read no
//! clock and know no protocol; time comes in with every event and randomness as a seed.
//!
//! [`AlgorithmSpec`] names an algorithm with its parameters (`dctcp,g=0.0625`) and builds it;
//! [`algorithms`] lists what exists. [`CappedController`] puts a limit from outside around any controller.
//! [`DeliveryRate`] measures the delivery rate for transports that feed an algorithm which wants
//! it.

mod algorithm;
mod bbr;
mod bbr3;
mod capped;
mod controller;
mod cubic;
mod d2tcp;
mod dctcp;
mod dcudp;
mod delivery;
mod filter;
mod loss_window;
mod newreno;
mod pacing;
mod registry;
mod reno;
mod round;
#[cfg(test)]
mod samples;
mod self_limited;
mod swift;

pub use algorithm::{Algorithm, AlgorithmSpec, Context, Parameter, SpecError, Value};
pub use capped::CappedController;
pub use controller::{
    AckSample, Controller, Deadline, LossCause, LossSample, PacketSent, Snapshot, SpuriousLoss,
};
pub use delivery::{DeliveryRate, DeliverySample, PacketDelivery};
pub use registry::algorithms;
