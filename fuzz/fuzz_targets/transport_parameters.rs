//! Fuzzes the transport parameter parser: parsing any bytes does not panic, and parsed parameters can
//! be encoded and parsed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_quic::Side;
use weir_quic::transport_parameters::TransportParameters;

fuzz_target!(|bytes: &[u8]| {
    for side in [Side::Client, Side::Server] {
        if let Ok(parameters) = TransportParameters::decode(side, bytes) {
            let mut out = Vec::new();
            parameters.encode(side, &mut out, None);
            assert_eq!(TransportParameters::decode(side, &out), Ok(parameters));
        }
    }
});
