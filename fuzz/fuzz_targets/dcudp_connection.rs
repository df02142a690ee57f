//! Fuzzes a DCUDP connection with a peer that knows its identifiers and sends anything: see
//! `crates/dcudp/tests/hostile/peer.rs`.

#![no_main]

#[path = "../../crates/dcudp/tests/hostile/peer.rs"]
mod peer;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    messages: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Say {
        kind: u8,
        marks: u8,
        words: [u32; 5],
        ce: bool,
    },
    Bytes(Vec<u8>),
    Wait(u32),
    Write(u16),
    Close,
}

fuzz_target!(|input: Input| {
    let mut victim = peer::Victim::new(input.messages);
    for step in input.steps {
        victim.apply(match step {
            Step::Say {
                kind,
                marks,
                words,
                ce,
            } => peer::Step::Say {
                kind,
                marks,
                words,
                ce,
            },
            Step::Bytes(bytes) => peer::Step::Bytes(bytes),
            Step::Wait(micros) => peer::Step::Wait(micros),
            Step::Write(length) => peer::Step::Write(length),
            Step::Close => peer::Step::Close,
        });
    }
    victim.assert_ends_once_peer_is_silent();
});
