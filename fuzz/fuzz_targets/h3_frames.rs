//! Fuzzes what follows the frames of HTTP/3's streams: no bytes panic, what passes is what came without what was cut
//! out, and neither what passes nor what is wrong depends on where the chunks are cut.

#![no_main]

#[allow(dead_code, unused_imports, reason = "the connection uses the rest")]
#[path = "../../crates/h3/src/frames/mod.rs"]
mod frames;
#[path = "../../crates/h3/src/qpack.rs"]
mod qpack;

use bytes::Bytes;
use frames::{Frames, Violation};
use libfuzzer_sys::fuzz_target;
use qpack::Instructions;

/// The longest HEADERS frame.
const MAX_HEADERS: u64 = 4096;

/// What a stream shows: the bytes that pass, the identifiers of GOAWAY frames, and whether it may end there.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    passed: Vec<u8>,
    go_aways: Vec<u64>,
    end: Result<(), Violation>,
}

fn streams() -> [Frames; 4] {
    [
        Frames::of_request(MAX_HEADERS),
        Frames::of_response(MAX_HEADERS),
        Frames::of_client_control(),
        Frames::of_server_control(),
    ]
}

/// Follows chunks.
fn follow(mut frames: Frames, chunks: &[Bytes]) -> Result<Shown, Violation> {
    let mut passed = Vec::new();
    let mut go_aways = Vec::new();
    for chunk in chunks {
        let mut input = chunk.clone();
        while let Some(bytes) = frames.next(&mut input)? {
            assert!(!bytes.is_empty());
            passed.extend(bytes);
            go_aways.extend(frames.take_go_away());
        }
        assert!(input.is_empty());
        go_aways.extend(frames.take_go_away());
    }
    let end = frames.end();
    Ok(Shown {
        passed,
        go_aways,
        end,
    })
}

/// Cuts bytes into chunks of these lengths, and a last one.
fn cut(lengths: &[u8], mut rest: Bytes) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    for length in lengths {
        chunks.push(rest.split_to(usize::from(*length).min(rest.len())));
    }
    chunks.push(rest);
    chunks
}

/// Returns whether all of a sequence is in another one, in its order.
fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|byte| whole.any(|other| other == byte))
}

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (lengths, bytes) = input;
    let bytes = Bytes::from(bytes);
    let chunks = cut(&lengths, bytes.clone());
    for (once, pieces) in streams().into_iter().zip(streams()) {
        let once = follow(once, &[bytes.clone()]);
        assert_eq!(once, follow(pieces, &chunks));
        if let Ok(shown) = once {
            assert!(is_subsequence(&shown.passed, &bytes));
        }
    }
    for of in [Instructions::of_encoder, Instructions::of_decoder] {
        let mut pieces = of();
        let once = of().pass(&bytes);
        assert_eq!(once, chunks.iter().try_for_each(|chunk| pieces.pass(chunk)));
    }
});
