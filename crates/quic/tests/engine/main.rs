//! The engine over simulated networks, in one program: `cargo test -p weir-quic --test engine handshake::`
//! runs one file.
#![allow(clippy::print_stdout, reason = "a script from a file is shown")]
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod attack;
mod attacks;
mod black_holes;
mod bursts;
mod clients;
mod ecn;
mod engines;
mod extensions;
mod go_away;
mod handshake;
mod hostile;
mod interactions;
mod key_updates;
mod known_peers;
mod liveness;
mod observe;
mod packet_size;
mod paths;
mod proactive;
mod resets;
mod ticks;
mod transfer;
mod validation;
mod versions;
mod world;
