//! Fuzzes the frame parser: parsing any payload does not panic, and a parsed frame can be encoded
//! and parsed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_quic::frame::{Frame, Frames};

fuzz_target!(|payload: &[u8]| {
    let mut out = Vec::new();
    for frame in Frames::new(payload).flatten() {
        out.clear();
        frame.write(&mut out);
        let again: Vec<_> = Frames::new(&out).map(Result::unwrap).collect();
        match (&frame, &again[..]) {
            (Frame::Ack(frame), [Frame::Ack(again)]) => {
                assert!(frame.ranges().eq(again.ranges()));
                assert_eq!(frame.delay, again.delay);
                assert_eq!(frame.ecn, again.ecn);
            }
            (frame, again) => assert_eq!(again, std::slice::from_ref(frame)),
        }
    }
});
