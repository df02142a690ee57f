//! Fuzzes the RPC's wire format: reading any bytes, in any pieces, does not panic, and a header or status that was
//! read can be written and read again.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use weir_rpc::wire::{FrameReader, FrameType, Limits, RequestHeader, ResponseStatus};

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (cuts, stream) = input;
    let limits = Limits::default();
    let mut reader = FrameReader::new(limits);
    let mut rest = Bytes::from(stream);
    for cut in cuts {
        reader.push(rest.split_to(usize::from(cut).min(rest.len())));
        read(&mut reader, &limits);
    }
    reader.push(rest);
    read(&mut reader, &limits);
    let _ = reader.finish();
});

fn read(reader: &mut FrameReader, limits: &Limits) {
    while let Ok(Some(frame)) = reader.next_frame() {
        let mut out = Vec::new();
        match frame.frame_type {
            FrameType::Header => {
                let Ok(header) = RequestHeader::read(&frame.payload, limits) else {
                    continue;
                };
                header.write(&mut out);
                assert_eq!(RequestHeader::read(&out.into(), limits), Ok(header));
            }
            FrameType::Status => {
                let Ok(status) = ResponseStatus::read(&frame.payload, limits) else {
                    continue;
                };
                status.write(&mut out);
                assert_eq!(ResponseStatus::read(&out.into(), limits), Ok(status));
            }
            FrameType::Message | FrameType::Unknown(_) => {}
        }
    }
}
