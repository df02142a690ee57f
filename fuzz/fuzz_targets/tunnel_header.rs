//! Fuzzes the header of `weir tunnel`: reading any bytes does not panic, and what was read can be written and
//! read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_tunnel::header::Header;

fuzz_target!(|input: &[u8]| {
    let Ok(Some((header, length))) = Header::decode(input) else {
        return;
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    assert!(length <= input.len());
    assert_eq!(Header::decode(&bytes), Ok(Some((header, bytes.len()))));
});
