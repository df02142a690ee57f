//! Fuzzes the TCP segment parser: parsing any bytes does not panic, and a parsed segment can be encoded and
//! parsed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::tcp::Segment;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((ports, segment)) = Segment::parse(bytes) {
        let mut again = segment.emit(ports).as_bytes().to_vec();
        again.resize(again.len() + segment.payload as usize, 0);
        assert_eq!(Segment::parse(&again), Ok((ports, segment)));
    }
});
