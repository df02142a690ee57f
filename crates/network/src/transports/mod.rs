//! Transports: a scenario's options as configurations, for simulated and real endpoints.

mod dcudp;
mod quic;

pub use dcudp::dcudp_transport;
pub use quic::quic_transport;
