//! Fuzzes the DCUDP packet parser: parsing any bytes does not panic, and encoding a parsed packet
//! returns the same bytes.

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
