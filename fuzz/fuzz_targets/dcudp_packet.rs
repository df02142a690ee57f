//! Any bytes where a DCUDP packet should be: reading them does not panic, and what was read is written
//! as it came.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_dcudp::packet::{Control, Packet};

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = Packet::decode(bytes) else {
        return;
    };
    let mut again = Vec::new();
    packet.encode(&mut again);
    assert_eq!(again, bytes);
    if let Packet::Control(_, Control::Nak(ranges)) = packet {
        assert!(ranges.iter().count() * 4 <= bytes.len());
    }
});
