//! Fuzzes a whole server with hostile clients that have the right keys, floods and time jumps, beside
//! an honest connection: see `crates/quic/tests/engine/attack`.

#![no_main]

#[path = "../../crates/quic/tests/engine/attack/mod.rs"]
mod attack;

use libfuzzer_sys::fuzz_target;
use weir_quic::Side;

fuzz_target!(|script: attack::Script| attack::run(Side::Server, &script));
