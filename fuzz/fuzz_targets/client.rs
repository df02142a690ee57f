//! A whole client against hostile servers that have the right keys, floods and jumps in time, with an
//! honest connection beside: see `crates/quic/tests/engine/attack`.

#![no_main]

#[path = "../../crates/quic/tests/engine/attack/mod.rs"]
mod attack;

use libfuzzer_sys::fuzz_target;
use weir_quic::Side;

fuzz_target!(|script: attack::Script| attack::run(Side::Client, &script));
