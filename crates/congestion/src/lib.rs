//! Congestion control algorithms behind the trait [`Controller`], and a registry by name.
//!
//! A transport owns one boxed [`Controller`] per path. It reports packets sent, ACKs and losses,
//! and reads back a window, a pacing rate, or both. The algorithms read no clock and know no
//! protocol: every event carries its time, and randomness comes from a seed.
//!
//! [`AlgorithmSpec`] names an algorithm with its parameters (`dctcp,g=0.0625`) and builds it;
//! [`algorithms`] lists all algorithms. [`CappedController`] limits the window and rate of any
//! controller, and [`DirectController`] calls common ones without a vtable. A [`Plugin`] is an algorithm that the registry
//! does not know. [`DeliveryRate`] measures the delivery rate for algorithms that use it.

mod algorithm;
mod capped;
mod controller;
mod delivery;
mod direct;
mod filter;
mod loss_window;
mod pacing;
mod plugin;
mod registry;
mod reno;
mod round;
#[cfg(test)]
mod samples;
mod self_limited;

/// Declares a module for each algorithm, and collects the registrations of all modules.
macro_rules! algorithms {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+
        static ALGORITHMS: &[&Algorithm] = &[$(&$module::ALGORITHM),+];
    };
}

// One line for each algorithm, in the order in which they are listed.
algorithms! {
    newreno,
    cubic,
    dctcp,
    d2tcp,
    swift,
    bbr,
    bbr3,
    dcudp,
    dcudp_proportional,
    dcudp_rtt_fair,
}

pub use algorithm::{Algorithm, AlgorithmSpec, Context, Parameter, SpecError, Value};
pub use capped::CappedController;
pub use controller::{
    AckSample, Controller, Deadline, LossCause, LossSample, PacketSent, Snapshot, SpuriousLoss,
};
pub use delivery::{DeliveryRate, DeliverySample, PacketDelivery};
pub use direct::{DirectController, PlainAck};
pub use plugin::{FirstFailure, Plugin, PluginFailure, PluginReference};
pub use registry::algorithms;
