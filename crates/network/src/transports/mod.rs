//! From a scenario's options to the configurations of transports, for simulated and real endpoints alike.

mod dcudp;
mod quic;

pub use dcudp::dcudp_transport;
pub use quic::quic_transport;
