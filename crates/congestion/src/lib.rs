//! Congestion control algorithms behind one trait, and a registry by name.
//!
//! A transport owns a boxed [`Controller`] per path, tells it what happened (packets sent, ACKs,
//! losses) and asks it what may be sent: a window, a pacing rate, or both. The algorithms read no
//! clock and know no protocol; time comes in with every event and randomness as a seed.

mod controller;
mod delivery;

pub use controller::{
    AckSample, Controller, Deadline, LossCause, LossSample, PacketSent, Snapshot, SpuriousLoss,
};
pub use delivery::{DeliveryRate, DeliverySample, PacketDelivery};
